// A job: everything that a scenario asks for, resolved against the catalogues, and its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/builders.hpp"
#include "sim/plan/lower.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/strategies/strategies.hpp"
#include "sim/timing/host_input.hpp"
#include "topologies/builders.hpp"

namespace tpusim::session {

// What a plan is made from; a shrunken copy of it is what verification executes.
struct JobSpec {
  models::ModelConfig model;
  std::int64_t sequence_length = 1;
  std::int64_t global_batch = 1;
  std::int64_t microbatch = 0;                  // examples of a replica's microbatch; 0: the contract's default
  std::vector<strategies::RequestedAxis> mesh;  // major to minor
  strategies::Options strategies;
  std::vector<strategies::HandRule> by_hand;
  ir::DType compute_dtype = ir::DType::bf16, parameter_dtype = ir::DType::f32, gradient_dtype = ir::DType::f32;
  ir::DType master_dtype = ir::DType::f32;
  ir::OptimizerSettings optimizer;
  ir::Remat remat = ir::Remat::none;
  ir::AttentionKind attention = ir::AttentionKind::flash;
  std::int32_t flash_block = 128;
  int prefetch = 1;
  std::int64_t bucket_bytes = 26214400;
  bool overlap = true;
  bool verify_plan = true;  // play the plan's verifier rules; a search that plays many plans leaves it out
  std::int64_t devices() const;
};

// A plan and what it was made of. `program` is meaningless when the verdict is not feasible.
struct Planned {
  Verdict verdict;
  std::vector<Verdict> refusals;  // every reason, when there are several
  strategies::Setup setup;
  ir::Model model;
  spmd::Placement placement;
  std::string placement_text;
  plan::StepProgram program;
};
Planned make_plan(const JobSpec& spec, const fabric::Fabric& fabric);

// The mesh that strategies make of the spec's (an axis may be split), laid on the machine: as in make_plan, without a
// model or a plan. A step of fixed length keeps its mesh as it is.
struct Placed {
  Verdict verdict;
  spmd::Mesh mesh;
  spmd::Placement placement;
  std::string description;  // "tensor on x; fsdp on y, z"
};
Placed place_mesh(const JobSpec& spec, const fabric::Fabric& fabric);

// The StepProgram of family `fixed`: one kernel of known length on every chip, which reads its batch.
plan::StepProgram fixed_program(const JobSpec& spec);

struct Job {
  JobSpec spec;
  topologies::Cluster cluster;
  std::optional<timing::HostInput> input;
  bool causal_flops = false;                 // count half of attention's scores for MFU
  std::vector<std::string> chip_facts_used;  // names for topologies::facts
};
// Adds every fault to `sink`; nullopt after an error. Warnings do not stop it.
std::optional<Job> resolve(const scenario::Scenario& scenario, const std::string& folder, DiagnosticSink& sink);

}  // namespace tpusim::session
