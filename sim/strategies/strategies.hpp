// What a strategy is: sharding rules and an order of work. No strategy holds a formula of its own cost.
//
// `decide` joins the strategies of a mesh, one per axis that the user wrote, into what the partitioner and the plan
// read: the mesh with its sub-axes, the four sharding tables, padded sizes and the schedule of the pipeline stages.
//   data, fsdp  activations: batch -> data, fsdp.  fsdp with ZeRO stage 3 splits parameters, gradients and optimizer
//   state,
//               2 gradients and state, 1 the state (S. Rajbhandari et al., "ZeRO", SC 2020): embed -> fsdp as far as it
//               divides; the rest of fsdp to another dim of the parameter, or nowhere.
//   tensor      kv_heads, q_group, mlp, vocab -> tensor in all tables (M. Shoeybi et al., "Megatron-LM", 2019);
//               sequence_parallel: residual.seq -> tensor (V. Korthikanti et al., MLSys 2023).
//   pipeline    stages of whole layers; GPipe (Y. Huang et al., NeurIPS 2019) or 1F1B (D. Narayanan et al., SC 2021).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/registry.hpp"
#include "sim/base/verdict.hpp"
#include "sim/plan/lower.hpp"
#include "sim/spmd/partition_spec.hpp"

namespace tpusim::strategies {

enum class PipelineSchedule { gpipe, one_f_one_b };

struct Options {
  int zero_stage = 3;              // of fsdp: 1, 2 or 3
  bool sequence_parallel = false;  // of tensor
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
};

struct RequestedAxis {  // as the user wrote it; its name is its strategy
  std::string name;
  std::int64_t size = 1;
};

// A rule by hand: replaces the strategies' rule for the same axis and place of one table, and claims mesh axes before
// them.
struct HandRule {
  ir::Table table = ir::Table::parameters;
  ir::Axis axis = ir::Axis::mlp;
  ir::Place place = ir::Place::none;
  std::vector<std::string> mesh_axes;  // empty: whole
  std::string pointer;                 // "/sharding/parameters/mlp"
};

// Sizes per logical axis; 0 where the model has none. Indexed by ir::Axis.
using AxisSizes = std::array<std::int64_t, ir::kAxisCount>;

// The sites of a model in forward order: some before the layers (embedding), the layers, some after them (head, loss).
struct SiteCosts {
  std::int64_t before = 1, layers = 1, after = 1;
  // Relative cost of each site, before + layers + after of them; empty: layers cost 1, the others nothing.
  std::vector<double> cost;
};

struct Request {
  std::vector<RequestedAxis> mesh;  // major to minor
  Options options;
  AxisSizes sizes{};  // of the model, and seq; batch is not read
  SiteCosts sites;
  std::int64_t global_batch = 1;  // examples of a step
  std::int64_t microbatch = 0;    // examples of one microbatch of one replica; 0: the default of the scenario contract
  std::vector<HandRule> by_hand;
};

struct Setup {
  spmd::Mesh mesh;
  int pipeline_axis = -1;  // index into mesh.axes
  spmd::ShardingTables tables;
  AxisSizes padded{};           // sizes to build the model with; batch: one microbatch of all replicas together
  std::int64_t replicas = 1;    // data x fsdp
  std::int64_t microbatch = 1;  // examples of one microbatch of one replica
  std::int64_t microbatches = 1;
  plan::ScheduleSpec schedule;
  std::vector<std::string> notes;  // what a user should know: padding, what stays whole
  Verdict verdict;                 // the first refusal, if any
  std::vector<Verdict> refusals;   // all of them; the rest of the setup is then of no use
};
Setup decide(const Request& request);

// --- parts of it, for those who need them alone
// ------------------------------------------------------------------------ Sizes of the tensor axis that the heads
// allow: gcd(t, kv_heads) of it goes to kv_heads, the rest must divide q_group.
std::vector<std::int64_t> valid_tensor_sizes(std::int64_t kv_heads, std::int64_t q_group);

// First site of each stage and one past the last site: whole layers, at least one a stage, what is before and after
// them on the outer stages; the largest stage cost is least, and among such the split is the most even. Cost O(sites x
// 64).
std::vector<std::int64_t> balance_stages(const SiteCosts& sites, std::int64_t stages);
double stage_cost(const SiteCosts& sites, const std::vector<std::int64_t>& first_site, std::size_t stage);

// The order of work of every stage; a few segments whatever the number of microbatches. Stages 1: each microbatch
// forward, then backward. Then one update.
plan::ScheduleSpec make_schedule(PipelineSchedule kind, const std::vector<std::int64_t>& first_site,
                                 std::int64_t microbatches);

// --- plug-ins
// ------------------------------------------------------------------------------------------------------------
class Draft;  // draft.hpp
struct Strategy {
  void (*split)(Draft&) = nullptr;     // says into which sub-axes its mesh axis falls; refuses what cannot be
  void (*shard)(Draft&) = nullptr;     // adds its sharding rules
  void (*schedule)(Draft&) = nullptr;  // adds its order of work
};
// In the order in which they claim mesh axes: tensor, data, fsdp, pipeline.
void register_builtin(Registry<Strategy>& registry);

}  // namespace tpusim::strategies
