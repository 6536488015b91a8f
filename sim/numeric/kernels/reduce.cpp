// Sums and maxima over named dims, in row-major order of the operand.
#include <limits>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
Tensor reduce_as(const ir::Reduce& op, const Tensor& x, const ir::TensorType& type) {
  const Read<T> in(x);
  const T start = op.kind == ir::Reduction::sum ? T(0) : -std::numeric_limits<T>::infinity();
  std::vector<T> out(static_cast<std::size_t>(ir::element_count(type.shape)), start);
  const std::array<Strides, 2> strides{strides_over(x.shape(), x.shape()), strides_over(x.shape(), type.shape)};
  const std::int64_t step = inner_stride(strides[1]);
  for_each_row(x.shape(), strides, [&](const std::array<std::int64_t, 2>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      T& to = out[static_cast<std::size_t>(first[1] + i * step)];
      const T value = in[first[0] + i];
      to = op.kind == ir::Reduction::sum ? to + value : (value > to ? value : to);
    }
  });
  return make_tensor<T>(type, std::span<const T>(out));
}

}  // namespace

Tensor reduce(const ir::Reduce& op, const Tensor& x, const ir::TensorType& type) {
  return with_compute_type(is_wide({&x}, {type}), [&](auto zero) { return reduce_as<decltype(zero)>(op, x, type); });
}

Tensor rename(const ir::Rename&, const Tensor& x, const ir::TensorType& type) {
  return x.relabelled(type);
}

}  // namespace tpusim::numeric::kernels
