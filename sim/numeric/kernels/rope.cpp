// Rotary position embedding (Su et al. 2021, RoFormer, section 3.2), half-split pairs as in Llama: entry i and entry i
// + d/2 turn by the angle position * theta^(-2i/d). The inverse turns back, which is also the transposed map.
#include <cmath>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
Tensor rope_as(const ir::Rope& op, const Tensor& x, const ir::TensorType& type, const Location& where) {
  const int rotated = ir::find_dim(x.shape(), op.rotated), along = ir::find_dim(x.shape(), op.positions);
  TPUSIM_CHECK(rotated >= 0 && along >= 0, "rope's operand lacks a dim");
  const ir::Dim turning = x.shape()[static_cast<std::size_t>(rotated)];
  const std::int64_t half = turning.valid / 2;
  TPUSIM_CHECK(turning.valid % 2 == 0 && turning.valid <= turning.size, "rope needs an even, whole dim to rotate");
  const std::int64_t offset = where.offset(op.axes, x.shape()[static_cast<std::size_t>(along)].size);

  const Read<T> in(x);
  std::vector<T> out(in.span().begin(), in.span().end());
  // Over all dims but the rotated one: the offset of the first entry, and the position.
  ir::Shape others;
  Strides position;
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (static_cast<int>(d) == rotated) continue;
    others.push_back(x.shape()[d]);
    position.push_back(static_cast<int>(d) == along ? 1 : 0);
  }
  const std::array<Strides, 2> strides{strides_over(others, x.shape()), position};
  const std::int64_t apart = strides_over(x.shape(), x.shape())[static_cast<std::size_t>(rotated)];
  const std::int64_t step = inner_stride(strides[0]), step_position = inner_stride(strides[1]);
  for_each_row(others, strides, [&](const std::array<std::int64_t, 2>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t pair = 0; pair < half; ++pair) {
        const double angle = static_cast<double>(offset + first[1] + i * step_position) *
                             std::pow(op.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(turning.valid));
        const T cosine = static_cast<T>(std::cos(angle));
        const T sine = static_cast<T>(op.inverse ? -std::sin(angle) : std::sin(angle));
        const std::int64_t a = first[0] + i * step + pair * apart, b = a + half * apart;
        const T u = in[a], v = in[b];
        out[static_cast<std::size_t>(a)] = u * cosine - v * sine;
        out[static_cast<std::size_t>(b)] = v * cosine + u * sine;
      }
  });
  return make_tensor<T>(type, std::span<const T>(out));
}

}  // namespace

Tensor rope(const ir::Rope& op, const Tensor& x, const ir::TensorType& type, const Location& where) {
  TPUSIM_CHECK(x.shape() == type.shape, "rope changes no dims");
  return with_compute_type(is_wide({&x}, {type}),
                           [&](auto zero) { return rope_as<decltype(zero)>(op, x, type, where); });
}

}  // namespace tpusim::numeric::kernels
