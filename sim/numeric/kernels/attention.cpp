#include "sim/numeric/kernels/attention.hpp"

namespace tpusim::numeric::kernels {
namespace {

const ir::Dim& dim_of(const ir::Shape& shape, ir::Axis axis, std::uint8_t variant = 0) {
  const int at = ir::find_dim(shape, {axis, variant});
  TPUSIM_CHECK(at >= 0, "attention lacks the dim " + ir::to_string(ir::DimName{axis, variant}));
  return shape[static_cast<std::size_t>(at)];
}

}  // namespace

AttentionLayout attention_layout(const Tensor& q, const Tensor& k, bool causal, std::int64_t block,
                                 const ir::MeshAxes& query_axes, const Location& where) {
  using ir::Axis;
  const ir::Dim batch = dim_of(q.shape(), Axis::batch), heads = dim_of(q.shape(), Axis::kv_heads);
  const ir::Dim group = dim_of(q.shape(), Axis::q_group), seq = dim_of(q.shape(), Axis::seq);
  const ir::Dim width = dim_of(q.shape(), Axis::head_dim), keys = dim_of(k.shape(), Axis::seq, 1);
  AttentionLayout layout;
  layout.q = {batch, heads, group, seq, width};
  layout.k = {batch, heads, keys, width};
  layout.lse = {batch, heads, group, seq};
  layout.pairs = batch.size * heads.size;
  layout.groups = group.size;
  layout.queries = seq.size;
  layout.keys = keys.size;
  layout.head_dim = width.size;
  layout.offset = where.offset(query_axes, seq.size);
  layout.valid_queries = seq.valid - layout.offset;
  layout.valid_keys = keys.valid;
  layout.block = block;
  layout.causal = causal;
  layout.skip = causal && query_axes.empty();
  TPUSIM_CHECK(block >= 1, "attention in blocks of nothing");
  return layout;
}

}  // namespace tpusim::numeric::kernels
