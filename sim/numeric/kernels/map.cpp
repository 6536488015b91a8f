// Elementwise ops over the union of the operands' dims; a missing dim is broadcast.
#include <cmath>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

// gelu in its tanh form: x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3). Source: Hendrycks and Gimpel 2016,
// section 2.
template <class T>
T gelu_argument(T x) {
  return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
}
template <class T>
T gelu(T x) {
  return T(0.5) * x * (T(1) + std::tanh(gelu_argument(x)));
}
// Derivative: (1 + t)/2 + x/2 (1 - t^2) u'(x), t = tanh(u), u' = sqrt(2/pi) (1 + 3 * 0.044715 x^2).
template <class T>
T gelu_slope(T x) {
  const T t = std::tanh(gelu_argument(x));
  return T(0.5) * (T(1) + t) +
         T(0.5) * x * (T(1) - t * t) * T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
}
// Stable on both sides: exp never gets a large positive argument.
template <class T>
T sigmoid(T x) {
  if (x >= 0) return T(1) / (T(1) + std::exp(-x));
  const T e = std::exp(x);
  return e / (T(1) + e);
}
template <class T>
T silu_slope(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

template <class T, class F>
Tensor unary(const Tensor& x, const ir::TensorType& type, F&& f) {
  const Read<T> in(x);
  TPUSIM_CHECK(x.size() == ir::element_count(type.shape), "an elementwise op of one operand changes the size");
  std::vector<T> out;
  if (x.shape() == type.shape || x.shape().size() <= 1) {
    out.assign(in.span().begin(), in.span().end());
  } else {
    out = permuted<T>(in.span(), x.shape(), type.shape);
  }
  for (T& v : out) v = f(v);
  return make_tensor<T>(type, std::span<const T>(out));
}

template <class T, class F>
Tensor binary(const Tensor& x, const Tensor& y, const ir::TensorType& type, F&& f) {
  const Read<T> a(x), b(y);
  const std::array<Strides, 2> strides{strides_over(type.shape, x.shape()), strides_over(type.shape, y.shape())};
  const std::int64_t step_a = inner_stride(strides[0]), step_b = inner_stride(strides[1]);
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(ir::element_count(type.shape)));
  for_each_row(type.shape, strides, [&](const std::array<std::int64_t, 2>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out.push_back(f(a[first[0] + i * step_a], b[first[1] + i * step_b]));
  });
  return make_tensor<T>(type, std::span<const T>(out));
}

template <class T>
Tensor map_as(const ir::Map& op, const Operands& x, const ir::TensorType& type) {
  using E = ir::Elementwise;
  const T a = static_cast<T>(op.a);
  const auto one = [&](auto f) { return unary<T>(*x[0], type, f); };
  const auto two = [&](auto f) {
    TPUSIM_CHECK(x.size() == 2, "an elementwise op of two operands got another number");
    return binary<T>(*x[0], *x[1], type, f);
  };
  switch (op.kind) {
    case E::copy:
    case E::cast:
      return one([](T v) { return v; });
    case E::neg:
      return one([](T v) { return -v; });
    case E::scale:
      return one([a](T v) { return a * v; });
    case E::add_scalar:
      return one([a](T v) { return v + a; });
    case E::exp:
      return one([](T v) { return std::exp(v); });
    case E::log:
      return one([](T v) { return std::log(v); });
    case E::sqrt:
      return one([](T v) { return std::sqrt(v); });
    case E::rsqrt:
      return one([](T v) { return T(1) / std::sqrt(v); });
    case E::reciprocal:
      return one([](T v) { return T(1) / v; });
    case E::square:
      return one([](T v) { return v * v; });
    case E::tanh:
      return one([](T v) { return std::tanh(v); });
    case E::sigmoid:
      return one([](T v) { return sigmoid(v); });
    case E::relu:
      return one([](T v) { return v > 0 ? v : T(0); });
    case E::silu:
      return one([](T v) { return v * sigmoid(v); });
    case E::gelu:
      return one([](T v) { return gelu(v); });
    case E::minimum_scalar:
      return one([a](T v) { return v < a ? v : a; });
    case E::add:
      return two([](T v, T w) { return v + w; });
    case E::sub:
      return two([](T v, T w) { return v - w; });
    case E::mul:
      return two([](T v, T w) { return v * w; });
    case E::div:
      return two([](T v, T w) { return v / w; });
    case E::maximum:
      return two([](T v, T w) { return v > w ? v : w; });
    case E::relu_grad:
      return two([](T v, T dy) { return v > 0 ? dy : T(0); });
    case E::silu_grad:
      return two([](T v, T dy) { return dy * silu_slope(v); });
    case E::gelu_grad:
      return two([](T v, T dy) { return dy * gelu_slope(v); });
    case E::tanh_grad:
      return two([](T y, T dy) { return dy * (T(1) - y * y); });
  }
  TPUSIM_CHECK(false, "an elementwise op without a kernel");
  return {};
}

}  // namespace

Tensor map(const ir::Map& op, const Operands& operands, const ir::TensorType& type) {
  TPUSIM_CHECK(!operands.empty(), "an elementwise op without operands");
  return with_compute_type(is_wide(operands, {type}),
                           [&](auto zero) { return map_as<decltype(zero)>(op, operands, type); });
}

}  // namespace tpusim::numeric::kernels
