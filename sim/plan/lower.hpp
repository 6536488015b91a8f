// From per-device programs to the StepProgram: fuse, schedule, memory order; each pass one small file, each followed by
// the verifier.
#pragma once

#include "sim/base/verdict.hpp"
#include "sim/plan/step_program.hpp"

namespace tpusim::plan {

// One entry of a pipeline stage's schedule: a phase of one microbatch over the sites of the stage.
struct Unit {
  ir::Phase phase = ir::Phase::forward;  // forward (sites ascending), backward (descending), update (ascending)
  std::int64_t microbatch = 0;
};
struct UnitSegment {
  std::vector<Unit> body;
  std::int64_t repeat = 1;  // microbatch + r in repeat r
};
// What a strategy says about order; the rest is derived.
struct ScheduleSpec {
  std::vector<std::vector<UnitSegment>>
      stages;  // by stage; each covers every microbatch forward and backward once, then one update
  std::vector<std::int64_t> first_site;  // by stage, plus one past the end
  std::int64_t microbatches = 1;
};

struct LowerOptions {
  int prefetch = 1;  // blocks ahead that parameters are gathered; 0: at use (only 0 and 1 in this version)
  // One block's reductions of gradients, and its gathers of parameters, are merged up to this size (whole tensors).
  std::int64_t bucket_bytes = 26214400;
  bool overlap = true;  // gradient reductions run beside backward; else all after it
  ir::OptimizerSettings optimizer;
  ir::DType gradient_dtype = ir::DType::f32;
  ir::DType master_dtype = ir::DType::f32;
  bool verify = true;  // run plan::verify on the result (a search switches it off for speed)
};

struct LowerInput {
  const ir::Model& model;  // differentiated blocks, global shapes of one microbatch of the whole mesh (all replicas)
  const spmd::ShardingTables& tables;
  const spmd::Mesh& mesh;
  const spmd::Placement& placement;
  const fabric::Fabric& fabric;
  ScheduleSpec schedule;
  LowerOptions options;
};
// Throws InternalError if a pass breaks a verifier rule.
StepProgram lower(const LowerInput& input);

}  // namespace tpusim::plan
