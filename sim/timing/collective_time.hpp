// How long a collective takes on links that nobody else uses: its own transfer steps, played as flows on the fluid
// network.
//
// Every line of a phase does the same, and so does every member of a ring in a step, so one line's busiest link in each
// direction stands for all. A group that strides over others shares its links with them (they run the same collective
// at the same time): its flow crosses `stride` links, each shared by `stride` flows. Steps with equal moves are played
// once. Phases are in lockstep, each as long as its slowest work. Played once per plan, size and place; the interpreter
// reuses the duration.
#pragma once

#include "sim/plan/step_program.hpp"
#include "sim/timing/chip_cost.hpp"

namespace tpusim::timing {

// `overhead` is the fixed cost of starting a collective (Fabric::collective_overhead); 0 phases cost nothing at all.
SimTime collective_time(const plan::CollectivePlan& plan, Seconds overhead, const fabric::Fabric& fabric,
                        const SpeedUp& speed_up = {});

// A boundary value to the neighbouring stage: alpha + bytes / beta.
SimTime permute_time(const plan::Permute& permute, const SpeedUp& speed_up = {});
// Each of s stages sends its tensor to every other through its own port: (s-1)(alpha + bytes / beta).
SimTime stage_reduce_time(const plan::StageReduce& reduce, const SpeedUp& speed_up = {});

}  // namespace tpusim::timing
