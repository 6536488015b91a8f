// A played step split by phase: what each phase computes, and how long its collectives keep each mesh axis busy.
//
// A collective belongs to the phase of the operation that it carries out, wherever the plan runs it: a gather that is
// prefetched during the call before is the forward pass's as much as one that is not.
#pragma once

#include <cmath>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sim/timing/chip_cost.hpp"
#include "tests/analytic/plan_support.hpp"

namespace tpusim::testing {

struct PhasePart {
  double compute = 0;                    // seconds of one device
  std::map<std::string, double> busy;    // seconds of one device, by mesh axes ("fsdp")
  std::map<std::string, double> passes;  // collectives, an all-reduce being two
  double busy_over(const std::string& axes) const {
    const auto at = busy.find(axes);
    return at == busy.end() ? 0 : at->second;
  }
  double all_busy() const {
    double sum = 0;
    for (const auto& [axes, seconds] : busy) sum += seconds;
    return sum;
  }
};

struct PhaseSplit {
  std::map<ir::Phase, PhasePart> phases;
  PhasePart over(std::initializer_list<ir::Phase> wanted) const {
    PhasePart out;
    for (ir::Phase phase : wanted) {
      const auto at = phases.find(phase);
      if (at == phases.end()) continue;
      out.compute += at->second.compute;
      for (const auto& [axes, seconds] : at->second.busy) out.busy[axes] += seconds;
      for (const auto& [axes, count] : at->second.passes) out.passes[axes] += count;
    }
    return out;
  }
  PhasePart forward() const { return over({ir::Phase::forward}); }
  // All but the update, as the literature counts a block.
  PhasePart forward_and_backward() const {
    return over({ir::Phase::forward, ir::Phase::recompute, ir::Phase::backward});
  }
};

// For a plan without pipeline stages. The kernels' times are added up call by call; that they sum to the compute time
// that the step had is checked here, so that a part of it can be trusted.
inline PhaseSplit split_by_phase(const Played& p, const topologies::Cluster& cluster) {
  const plan::StepProgram& program = p.plan.program;
  TPUSIM_CHECK(program.schedules.size() == 1, "one stage");
  PhaseSplit out;
  double sum = 0;
  std::vector<std::int32_t> kinds;  // of the calls of a step, one microbatch and so in order
  for (const plan::Segment& segment : program.schedules[0].segments)
    for (std::int64_t r = 0; r < segment.repeat; ++r)
      for (const plan::Call& call : segment.body) kinds.push_back(call.kind);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int32_t found =
        program.find_template(kinds[i], i == 0 ? -1 : kinds[i - 1], i + 1 == kinds.size() ? -1 : kinds[i + 1]);
    TPUSIM_CHECK(found >= 0, "a call without a template");
    for (const plan::Instr& instr : program.templates[static_cast<std::size_t>(found)].instrs) {
      if (instr.kind != plan::InstrKind::kernel) continue;
      const plan::Kernel& kernel = program.kernels[static_cast<std::size_t>(instr.body)];
      const double seconds = timing::kernel_time(kernel, cluster.chip).total().value();
      const ir::Program& local = program.programs[static_cast<std::size_t>(kernel.program)].local;
      out.phases[local.op(kernel.ops[0]).phase].compute += seconds;
      sum += seconds;
    }
  }
  TPUSIM_CHECK(std::abs(sum - p.timing.compute.value()) <= 1e-6 * sum, "kernels do not add up to the step's compute");
  for (std::size_t i = 0; i < program.collectives.size(); ++i) {
    const plan::Collective& c = program.collectives[i];
    const ir::Program& local = program.programs[static_cast<std::size_t>(c.program)].local;
    PhasePart& part = out.phases[local.op(c.ops[0]).phase];
    const std::string axes = program.mesh.to_string(c.mesh_axes);
    const bool twice = program.plans[static_cast<std::size_t>(c.plan)].kind == plan::CollectiveKind::all_reduce;
    part.busy[axes] += p.timing.transfers[i].busy.value();
    part.passes[axes] += p.timing.transfers[i].count * (twice ? 2 : 1);
  }
  return out;
}

}  // namespace tpusim::testing
