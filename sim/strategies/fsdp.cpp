// Fully sharded data parallelism: data parallelism whose replicas also share the optimizer state (ZeRO stage 1), the
// gradients (2) and the parameters (3).
#include <fmt/format.h>

#include <numeric>

#include "sim/base/checked.hpp"
#include "sim/strategies/draft.hpp"

namespace tpusim::strategies {
namespace {

constexpr std::string_view kName = "fsdp";

std::vector<Table> split_tables(int zero_stage) {
  std::vector<Table> tables = {Table::optimizer};
  if (zero_stage >= 2) tables.push_back(Table::gradients);
  if (zero_stage >= 3) tables.push_back(Table::parameters);
  return tables;
}

}  // namespace

void fsdp_split(Draft& draft) {
  const std::int64_t fsdp = draft.requested(kName);
  const int stage = draft.request.options.zero_stage;
  if (stage < 1 || stage > 3)
    draft.refuse("there is no such ZeRO stage", "1, 2 or 3", fmt::format("{}", stage), "/strategies/fsdp/zero_stage");
  const std::int64_t embed = draft.request.sizes[at(Axis::embed)];
  if (embed == 0) return;
  const std::int64_t over_embed = std::gcd(fsdp, embed);
  const std::int64_t rest = fsdp / over_embed;
  draft.sub_axes(kName, {over_embed, rest});
  if (rest == 1) return;
  const std::int64_t split = checked_mul(draft.requested("tensor"), rest, "what splits mlp and vocab");
  draft.pad(Axis::mlp, split, kName);
  draft.pad(Axis::vocab, split, kName);
  draft.note(
      fmt::format("fsdp {} splits embed {} over {} of its devices; the other factor of {} splits mlp, vocab or, where "
                  "one divides, another dim of a parameter; a parameter with none of these is whole over it",
                  fsdp, embed, over_embed, rest));
}

void fsdp_shard(Draft& draft) {
  const spmd::MeshAxes all = draft.requested(kName) == 1 ? spmd::MeshAxes{} : draft.out.mesh.find(kName);
  draft.split({Table::activations}, Axis::batch, all, kName);
  // Behind tensor's axes on the same dim, so that a ZeRO-1 state is a slice of what a tensor-parallel device holds.
  const spmd::MeshAxes rest = draft.sub_axis(kName, 1);
  for (const Table table : split_tables(draft.request.options.zero_stage)) {
    draft.split({table}, Axis::embed, draft.sub_axis(kName, 0), kName);
    for (const Axis axis : {Axis::mlp, Axis::vocab, Axis::kv_heads, Axis::q_group, Axis::head_dim, Axis::position})
      draft.split({table}, axis, rest, kName);
  }
}

}  // namespace tpusim::strategies
