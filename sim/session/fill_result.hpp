// From a plan and its timing to the result document.
#pragma once

#include "sim/result/result.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"

namespace tpusim::session {

// Memory is of the fullest stage; `fits` compares its peak and the runtime's reserve with the chip's capacity.
result::Memory memory_of(const plan::StepProgram& program, const topologies::Chip& chip);
// Step, startup, throughput, communication, classes, timeline.
void fill_timing(const Job& job, const plan::StepProgram& program, const timing::StepTiming& timing,
                 result::Result& out);
// The catalogue's facts that the answer rests on, and every default that the scenario left open.
void fill_assumptions(const scenario::Scenario& scenario, const Job& job, result::Result& out);
// Model FLOPs of attention's two products and their gradients, in full, of one step of the whole job.
double attention_model_flops(const plan::StepProgram& program);

}  // namespace tpusim::session
