#include "sim/strategies/strategies.hpp"

#include <fmt/format.h>

#include "sim/base/checked.hpp"
#include "sim/strategies/draft.hpp"

namespace tpusim::strategies {
namespace {

// The largest divisor of the share that gives at least four microbatches a stage, else 1; without a pipeline all of it.
std::int64_t default_microbatch(std::int64_t share, std::int64_t stages) {
  if (stages == 1) return share;
  std::int64_t best = 1;
  for (const std::int64_t d : divisors(share))
    if (share / d >= 4 * stages) best = d;
  return best;
}

// Each replica's share of the batch, and the microbatches that it is cut into.
void count_microbatches(Draft& draft) {
  Setup& out = draft.out;
  const Request& request = draft.request;
  out.replicas = checked_mul(draft.requested("data"), draft.requested("fsdp"), "the number of replicas");
  if (request.global_batch % out.replicas != 0) {
    draft.refuse(fmt::format("the batch does not divide over data {} x fsdp {}", draft.requested("data"),
                             draft.requested("fsdp")),
                 fmt::format("a multiple of {}", out.replicas), fmt::format("global_batch {}", request.global_batch),
                 "/training/global_batch");
    return;
  }
  const std::int64_t share = request.global_batch / out.replicas;
  out.microbatch = request.microbatch > 0 ? request.microbatch : default_microbatch(share, draft.requested("pipeline"));
  if (share % out.microbatch != 0) {
    draft.refuse("the microbatch does not divide a replica's share of the batch",
                 fmt::format("a size that divides {}: {}", share, list_text(divisors(share))),
                 fmt::format("microbatch {}", out.microbatch), "/training/microbatch");
    return;
  }
  out.microbatches = share / out.microbatch;
  out.padded[at(Axis::batch)] = checked_mul(out.microbatch, out.replicas, "the batch of a microbatch");
}

}  // namespace

void register_builtin(Registry<Strategy>& registry) {
  registry.add("tensor", "splits heads, mlp and vocab of every layer; with sequence_parallel the residual stream too",
               Strategy{tensor_split, tensor_shard, nullptr});
  registry.add("data", "replicas of the model, each with its share of the batch; gradients are all-reduced",
               Strategy{nullptr, data_shard, nullptr});
  registry.add("fsdp", "replicas that share optimizer state (zero_stage 1), gradients (2) and parameters (3)",
               Strategy{fsdp_split, fsdp_shard, nullptr});
  registry.add("pipeline", "stages of whole layers that pass microbatches on, by gpipe or 1f1b",
               Strategy{pipeline_split, nullptr, pipeline_schedule});
}

Setup decide(const Request& request) {
  Setup out;
  Draft draft(request, out);
  out.padded = request.sizes;
  Registry<Strategy> registry;
  register_builtin(registry);
  for (std::size_t i = 0; i < request.mesh.size(); ++i) {
    const RequestedAxis& axis = request.mesh[i];
    const std::string pointer = "/mesh/" + axis.name;
    if (registry.find(axis.name) == nullptr)
      draft.refuse("no strategy is called " + axis.name, "tensor, data, fsdp or pipeline", axis.name, pointer);
    if (axis.size < 1)
      draft.refuse("a mesh axis has at least one device", "a size of 1 or more", fmt::format("{}", axis.size), pointer);
    for (std::size_t j = 0; j < i; ++j)
      if (request.mesh[j].name == axis.name)
        draft.refuse("the mesh names an axis twice", "each axis once", axis.name, pointer);
  }
  if (out.refusals.empty()) {
    count_microbatches(draft);
    const auto in_mesh = [&draft](const std::string& name) { return draft.out.mesh.find(name).size() > 0; };
    for (const auto& entry : registry.entries())
      if (entry.value.split != nullptr && draft.requested(entry.name) > 1) entry.value.split(draft);
    draft.make_mesh();
    for (const auto& entry : registry.entries())
      if (entry.value.shard != nullptr && in_mesh(entry.name)) entry.value.shard(draft);
    draft.apply_by_hand();
  }
  if (out.refusals.empty()) {
    out.schedule = make_schedule(PipelineSchedule::one_f_one_b, balance_stages(request.sites, 1), out.microbatches);
    for (const auto& entry : registry.entries())
      if (entry.value.schedule != nullptr && draft.requested(entry.name) > 1) entry.value.schedule(draft);
  }
  if (!out.refusals.empty()) out.verdict = out.refusals.front();
  return out;
}

}  // namespace tpusim::strategies
