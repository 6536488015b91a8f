// What each elementwise function is, in double precision and as a textbook writes it: for the plain evaluators of the
// tests, which know nothing of tpusim's kernels.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/ir/op.hpp"

namespace tpusim::testing {

// Of one element x (and y, where there are two operands); `a` is the op's constant.
inline double plain_elementwise(ir::Elementwise kind, double a, double x, double y = 0) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  // GELU by its tanh form, u = sqrt(2 / pi) (x + 0.044715 x^3).
  constexpr double c = 0.7978845608028654;
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  switch (kind) {
    case ir::Elementwise::copy:
    case ir::Elementwise::cast:
      return x;
    case ir::Elementwise::neg:
      return -x;
    case ir::Elementwise::scale:
      return a * x;
    case ir::Elementwise::add_scalar:
      return x + a;
    case ir::Elementwise::exp:
      return std::exp(x);
    case ir::Elementwise::log:
      return std::log(x);
    case ir::Elementwise::sqrt:
      return std::sqrt(x);
    case ir::Elementwise::rsqrt:
      return 1 / std::sqrt(x);
    case ir::Elementwise::reciprocal:
      return 1 / x;
    case ir::Elementwise::square:
      return x * x;
    case ir::Elementwise::tanh:
      return std::tanh(x);
    case ir::Elementwise::sigmoid:
      return sigmoid(x);
    case ir::Elementwise::relu:
      return std::max(x, 0.0);
    case ir::Elementwise::silu:
      return x * sigmoid(x);
    case ir::Elementwise::gelu:
      return 0.5 * x * (1 + t);
    case ir::Elementwise::minimum_scalar:
      return std::min(x, a);
    case ir::Elementwise::add:
      return x + y;
    case ir::Elementwise::sub:
      return x - y;
    case ir::Elementwise::mul:
      return x * y;
    case ir::Elementwise::div:
      return x / y;
    case ir::Elementwise::maximum:
      return std::max(x, y);
    case ir::Elementwise::relu_grad:
      return x > 0 ? y : 0;
    case ir::Elementwise::silu_grad:
      return y * sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case ir::Elementwise::gelu_grad:
      return y * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x));
    case ir::Elementwise::tanh_grad:
      return y * (1 - x * x);
  }
  return 0;
}

}  // namespace tpusim::testing
