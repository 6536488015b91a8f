// Rows and entries that ids name: embedding lookup, the picked logit, and their gradients. An id that another device's
// shard holds gives 0 here, so that results of a split table are partial sums.
#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

// `all` without the dim `name`.
ir::Shape without(const ir::Shape& all, ir::DimName name) {
  ir::Shape rest;
  for (const ir::Dim& dim : all)
    if (dim.name != name) rest.push_back(dim);
  return rest;
}

std::size_t find(const ir::Shape& shape, ir::DimName name) {
  const int at = ir::find_dim(shape, name);
  TPUSIM_CHECK(at >= 0, "a lookup lacks the dim " + ir::to_string(name));
  return static_cast<std::size_t>(at);
}

// Walks `shape` (every dim of the data but the indexed one) and calls f(offset under a, offset under b, id relative to
// this shard, whether this shard holds it) for each entry.
template <class F>
void for_each_id(const ir::Shape& shape, const Strides& a, const Strides& b, const Tensor& ids, std::int64_t offset,
                 std::int64_t rows, F&& f) {
  const std::array<Strides, 3> strides{a, b, strides_over(shape, ids.shape())};
  const std::int64_t step_a = inner_stride(a), step_b = inner_stride(b), step_id = inner_stride(strides[2]);
  for_each_row(shape, strides, [&](const std::array<std::int64_t, 3>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(ids.at(first[2] + i * step_id)) - offset;
      f(first[0] + i * step_a, first[1] + i * step_b, row, row >= 0 && row < rows);
    }
  });
}

}  // namespace

Tensor lookup(const ir::Lookup& op, const Tensor& table, const Tensor& ids, const ir::TensorType& type,
              const Location& where) {
  const std::size_t at = find(table.shape(), op.rows);
  const std::int64_t rows = table.shape()[at].size;
  const std::int64_t apart = strides_over(table.shape(), table.shape())[at];
  Tensor result(type);
  for_each_id(type.shape, strides_over(type.shape, type.shape), strides_over(type.shape, table.shape()), ids,
              where.offset(op.axes, rows), rows, [&](std::int64_t to, std::int64_t from, std::int64_t row, bool here) {
                if (here) result.set(to, table.at(from + row * apart));
              });
  return result;
}

Tensor lookup_grad(const ir::LookupGrad& op, const Tensor& ids, const Tensor& dy, const ir::TensorType& type,
                   const Location& where) {
  const std::size_t at = find(type.shape, op.rows.name);
  const std::int64_t rows = type.shape[at].size;
  const std::int64_t apart = strides_over(type.shape, type.shape)[at];
  const auto scatter = [&](auto zero) {
    using T = decltype(zero);
    const Read<T> in(dy);
    std::vector<T> out(static_cast<std::size_t>(ir::element_count(type.shape)), T(0));
    for_each_id(dy.shape(), strides_over(dy.shape(), dy.shape()), strides_over(dy.shape(), type.shape), ids,
                where.offset(op.axes, rows), rows,
                [&](std::int64_t from, std::int64_t to, std::int64_t row, bool here) {
                  if (here) out[static_cast<std::size_t>(to + row * apart)] += in[from];
                });
    return make_tensor<T>(type, std::span<const T>(out));
  };
  return with_compute_type(is_wide({&dy}, {type}), scatter);
}

Tensor pick(const ir::Pick& op, const Tensor& x, const Tensor& ids, const ir::TensorType& type, const Location& where) {
  const std::size_t at = find(x.shape(), op.classes);
  const std::int64_t classes = x.shape()[at].size;
  const std::int64_t apart = strides_over(x.shape(), x.shape())[at];
  Tensor result(type);
  for_each_id(type.shape, strides_over(type.shape, type.shape), strides_over(type.shape, x.shape()), ids,
              where.offset(op.axes, classes), classes,
              [&](std::int64_t to, std::int64_t from, std::int64_t row, bool here) {
                if (here) result.set(to, x.at(from + row * apart));
              });
  return result;
}

Tensor pick_grad(const ir::PickGrad& op, const Tensor& ids, const Tensor& dy, const ir::TensorType& type,
                 const Location& where) {
  const std::size_t at = find(type.shape, op.classes.name);
  const std::int64_t classes = type.shape[at].size;
  const std::int64_t apart = strides_over(type.shape, type.shape)[at];
  const ir::Shape picked = without(type.shape, op.classes.name);
  Tensor result(type);
  for_each_id(picked, strides_over(picked, dy.shape()), strides_over(picked, type.shape), ids,
              where.offset(op.axes, classes), classes,
              [&](std::int64_t from, std::int64_t to, std::int64_t row, bool here) {
                if (here) result.set(to + row * apart, dy.at(from));
              });
  return result;
}

}  // namespace tpusim::numeric::kernels
