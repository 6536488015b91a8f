// Masks by global position, and constants.
#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

std::size_t dim_index(const ir::Shape& shape, ir::DimName name) {
  const int at = ir::find_dim(shape, name);
  TPUSIM_CHECK(at >= 0, "a kernel's operand has no dim " + ir::to_string(name));
  return static_cast<std::size_t>(at);
}

// Strides that count the local position along one dim of `shape`: 1 there, 0 elsewhere.
Strides position_of(const ir::Shape& shape, ir::DimName name) {
  Strides result;
  const std::size_t at = dim_index(shape, name);
  for (std::size_t d = 0; d < shape.size(); ++d) result.push_back(d == at ? 1 : 0);
  return result;
}

// x where keep(position along a, position along b), else fill; positions are local.
template <class Keep>
Tensor masked(const Tensor& x, const ir::TensorType& type, ir::DimName a, ir::DimName b, double fill, Keep&& keep) {
  Tensor result = x.relabelled(type);
  const std::array<Strides, 3> strides{strides_over(type.shape, type.shape), position_of(type.shape, a),
                                       position_of(type.shape, b)};
  const std::int64_t step_a = inner_stride(strides[1]), step_b = inner_stride(strides[2]);
  for_each_row(type.shape, strides, [&](const std::array<std::int64_t, 3>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      if (!keep(first[1] + i * step_a, first[2] + i * step_b)) result.set(first[0] + i, fill);
  });
  return result;
}

}  // namespace

Tensor mask_padding(const ir::MaskPadding& op, const Tensor& x, const ir::TensorType& type, const Location& where) {
  const ir::Dim& dim = type.shape[dim_index(type.shape, op.dim)];
  const std::int64_t offset = where.offset(op.axes, dim.size);
  return masked(x, type, op.dim, op.dim, op.fill,
                [&](std::int64_t position, std::int64_t) { return offset + position < dim.valid; });
}

Tensor mask_causal(const ir::MaskCausal& op, const Tensor& x, const ir::TensorType& type, const Location& where) {
  const std::int64_t query = where.offset(op.query_axes, type.shape[dim_index(type.shape, op.query)].size);
  const std::int64_t key = where.offset(op.key_axes, type.shape[dim_index(type.shape, op.key)].size);
  return masked(x, type, op.query, op.key, op.fill,
                [&](std::int64_t q, std::int64_t k) { return key + k <= query + q; });
}

Tensor fill(const ir::Fill& op, const ir::TensorType& type) {
  Tensor result(type);
  for (std::int64_t i = 0; i < result.size(); ++i) result.set(i, op.value);
  return result;
}

Tensor slice(const ir::Slice& op, const Tensor& x, const ir::TensorType& type, const Location& where) {
  const std::size_t at = dim_index(type.shape, op.dim);
  const std::int64_t offset = where.offset(op.axes, type.shape[at].size);
  TPUSIM_CHECK(offset + type.shape[at].size <= x.shape()[dim_index(x.shape(), op.dim)].size,
               "a slice reaches beyond its operand");
  const Strides strides = strides_over(type.shape, x.shape());
  const std::int64_t step = inner_stride(strides), start = offset * strides[at];
  Tensor result(type);
  std::int64_t next = 0;
  const std::array<Strides, 1> walk{strides};
  for_each_row(type.shape, walk, [&](const std::array<std::int64_t, 1>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) result.set(next++, x.at(start + first[0] + i * step));
  });
  return result;
}

}  // namespace tpusim::numeric::kernels
