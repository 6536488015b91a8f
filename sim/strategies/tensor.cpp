// Tensor parallelism: heads, mlp and vocab are split, so each of a layer's two halves is one pair of products whose
// second contracts the split dim; sequence parallelism splits what lies between them over the sequence.
#include <fmt/format.h>

#include <numeric>

#include "sim/base/checked.hpp"
#include "sim/strategies/draft.hpp"

namespace tpusim::strategies {
namespace {

constexpr std::string_view kName = "tensor";

}  // namespace

std::vector<std::int64_t> valid_tensor_sizes(std::int64_t kv_heads, std::int64_t q_group) {
  std::vector<std::int64_t> valid;
  for (const std::int64_t t : divisors(checked_mul(kv_heads, q_group, "the number of heads")))
    if (q_group % (t / std::gcd(t, kv_heads)) == 0) valid.push_back(t);
  return valid;
}

void tensor_split(Draft& draft) {
  const std::int64_t tensor = draft.requested(kName);
  const AxisSizes& sizes = draft.request.sizes;
  const std::int64_t kv_heads = sizes[at(Axis::kv_heads)];
  const std::int64_t q_group = sizes[at(Axis::q_group)] == 0 ? 1 : sizes[at(Axis::q_group)];
  if (kv_heads > 0) {
    const std::int64_t over_kv = std::gcd(tensor, kv_heads);
    draft.sub_axes(kName, {over_kv, tensor / over_kv});
    if (q_group % (tensor / over_kv) != 0)
      draft.refuse(fmt::format("tensor {} does not divide the heads", tensor),
                   fmt::format("a size that divides {} kv_heads x {} query heads each: {}", kv_heads, q_group,
                               list_text(valid_tensor_sizes(kv_heads, q_group))),
                   fmt::format("tensor {}", tensor), "/mesh/tensor");
  }
  draft.pad(Axis::mlp, tensor, kName);
  draft.pad(Axis::vocab, tensor, kName);
  const std::int64_t seq = sizes[at(Axis::seq)];
  if (draft.request.options.sequence_parallel && seq % tensor != 0)
    draft.refuse(fmt::format("sequence parallelism over tensor {} does not divide the sequence", tensor),
                 fmt::format("a multiple of {}", tensor), fmt::format("sequence_length {}", seq),
                 "/training/sequence_length");
}

void tensor_shard(Draft& draft) {
  const auto everywhere = {Table::activations, Table::parameters, Table::gradients, Table::optimizer};
  const spmd::MeshAxes all = draft.requested(kName) == 1 ? spmd::MeshAxes{} : draft.out.mesh.find(kName);
  if (draft.request.sizes[at(Axis::kv_heads)] > 0) {
    draft.split(everywhere, Axis::kv_heads, draft.sub_axis(kName, 0), kName);
    draft.split(everywhere, Axis::q_group, draft.sub_axis(kName, 1), kName);
  }
  draft.split(everywhere, Axis::mlp, all, kName);
  draft.split(everywhere, Axis::vocab, all, kName);
  if (draft.request.options.sequence_parallel)
    draft.split({Table::activations}, Axis::seq, all, kName, Place::residual);
}

}  // namespace tpusim::strategies
