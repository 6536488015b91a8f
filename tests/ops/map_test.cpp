#include <cmath>

#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;
using E = ir::Elementwise;

namespace {
const ir::Shape kRow = {dim(kEmbed, 4)};
std::vector<double> map1(E kind, const std::vector<double>& x, double a = 0) {
  return evaluate(ir::Map{kind, a}, {tensor({dim(kEmbed, static_cast<std::int64_t>(x.size()))}, x)})[0].to_doubles();
}
std::vector<double> map2(E kind, const std::vector<double>& x, const std::vector<double>& y) {
  const ir::Shape shape = {dim(kEmbed, static_cast<std::int64_t>(x.size()))};
  return evaluate(ir::Map{kind, 0}, {tensor(shape, x), tensor(shape, y)})[0].to_doubles();
}
void close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 1e-15 * std::max(1.0, std::abs(b[i])) * 4);
}
}  // namespace

TEST_CASE("elementwise functions of one operand have their known values") {
  using V = std::vector<double>;
  CHECK(map1(E::copy, {1, -2}) == V{1, -2});
  CHECK(map1(E::neg, {1, -2}) == V{-1, 2});
  CHECK(map1(E::scale, {1, -2}, 3) == V{3, -6});
  CHECK(map1(E::add_scalar, {1, -2}, 3) == V{4, 1});
  CHECK(map1(E::sqrt, {4, 0}) == V{2, 0});
  CHECK(map1(E::rsqrt, {4, 0.25}) == V{0.5, 2});
  CHECK(map1(E::reciprocal, {4, -0.5}) == V{0.25, -2});
  CHECK(map1(E::square, {3, -2}) == V{9, 4});
  CHECK(map1(E::relu, {3, -2, 0}) == V{3, 0, 0});
  CHECK(map1(E::minimum_scalar, {3, -2}, 1) == V{1, -2});
  close(map1(E::exp, {0, 1}), {1, 2.718281828459045});
  close(map1(E::log, {1, 2}), {0, 0.6931471805599453});
  close(map1(E::tanh, {0, 1}), {0, 0.7615941559557649});
  close(map1(E::sigmoid, {0, 1, -1}), {0.5, 0.7310585786300049, 0.2689414213699951});
  close(map1(E::silu, {0, 1, -1}), {0, 0.7310585786300049, -0.2689414213699951});
  // gelu, tanh form: 0.5 (1 + tanh(0.7978845608 x 1.044715)) = 0.5 (1 + tanh(0.8335624)) = 0.8411919906
  close(map1(E::gelu, {0, 1, -1}), {0, 0.8411919906082768, -0.15880800939172324});
}

TEST_CASE("sigmoid and silu neither overflow nor lose their limits") {
  CHECK(map1(E::sigmoid, {1000, -1000}) == std::vector<double>{1, 0});
  CHECK(map1(E::silu, {1000, -1000}) == std::vector<double>{1000, 0});
}

TEST_CASE("elementwise functions of two operands have their known values") {
  using V = std::vector<double>;
  CHECK(map2(E::add, {1, 2}, {3, -4}) == V{4, -2});
  CHECK(map2(E::sub, {1, 2}, {3, -4}) == V{-2, 6});
  CHECK(map2(E::mul, {1, 2}, {3, -4}) == V{3, -8});
  CHECK(map2(E::div, {1, 2}, {4, -4}) == V{0.25, -0.5});
  CHECK(map2(E::maximum, {1, 2}, {3, -4}) == V{3, 2});
  CHECK(map2(E::relu_grad, {1, -2, 0}, {5, 6, 7}) == V{5, 0, 0});
  CHECK(map2(E::tanh_grad, {0.5, 0}, {4, 3}) == V{3, 3});  // dy (1 - y^2)
  // At 0: sigmoid(0) = 1/2 is silu's slope, and 1/2 is gelu's.
  CHECK(map2(E::silu_grad, {0, 0}, {2, -4}) == V{1, -2});
  CHECK(map2(E::gelu_grad, {0, 0}, {2, -4}) == V{1, -2});
}

TEST_CASE("an operand that lacks a dim is broadcast along it, on either side") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kEmbed, 3)}, {1, 2, 3, 4, 5, 6});
  const Tensor row = tensor({dim(kEmbed, 3)}, {10, 20, 30}), column = tensor({dim(kSeq, 2)}, {1, -1}),
               one = tensor({}, {2});
  CHECK(evaluate(ir::Map{E::add, 0}, {x, row})[0].to_doubles() == std::vector<double>{11, 22, 33, 14, 25, 36});
  CHECK(evaluate(ir::Map{E::mul, 0}, {x, column})[0].to_doubles() == std::vector<double>{1, 2, 3, -4, -5, -6});
  CHECK(evaluate(ir::Map{E::mul, 0}, {x, one})[0].to_doubles() == std::vector<double>{2, 4, 6, 8, 10, 12});
  // A dim only in the second operand comes last: [seq, embed] from a column and a row.
  CHECK(evaluate(ir::Map{E::mul, 0}, {column, row})[0].to_doubles() == std::vector<double>{10, 20, 30, -10, -20, -30});
}

TEST_CASE("every op rounds its result to bf16 once") {
  const Tensor x = tensor({dim(kEmbed, 2)}, {256, 1}, ir::DType::bf16),
               y = tensor({dim(kEmbed, 2)}, {1, 0.1}, ir::DType::bf16);
  // 257 -> 256; 1 + 0.10009765625 -> 1.1015625 (spacing 1/128: 141/128)
  CHECK(evaluate(ir::Map{E::add, 0}, {x, y}, ir::DType::bf16)[0].to_doubles() == std::vector<double>{256, 1.1015625});
  CHECK(evaluate(ir::Map{E::cast, 0}, {tensor({dim(kEmbed, 1)}, {0.1}, ir::DType::f32)}, ir::DType::bf16)[0].at(0) ==
        0.10009765625);
  CHECK(evaluate(ir::Map{E::cast, 0}, {y}, ir::DType::f32)[0].at(1) == 0.10009765625);
}

TEST_CASE("f32 is computed in f32") {
  const Tensor x = tensor({dim(kEmbed, 1)}, {16777216}, ir::DType::f32),
               y = tensor({dim(kEmbed, 1)}, {1}, ir::DType::f32);
  CHECK(evaluate(ir::Map{E::add, 0}, {x, y}, ir::DType::f32)[0].at(0) == 16777216);  // 2^24 + 1 is no float
}

TEST_CASE("gradients of one-operand functions are those of finite differences") {
  for (E kind : {E::copy, E::cast, E::neg, E::exp, E::square, E::tanh, E::sigmoid, E::silu, E::gelu})
    check_gradient(ir::Map{kind, 0}, {tensor(kRow, {-1.3, -0.2, 0.4, 2.1})}, 0);
  for (E kind : {E::log, E::sqrt, E::rsqrt, E::reciprocal})
    check_gradient(ir::Map{kind, 0}, {tensor(kRow, {0.5, 0.9, 1.7, 3})}, 0);
  // Away from their kinks.
  check_gradient(ir::Map{E::relu, 0}, {tensor(kRow, {-1.3, -0.2, 0.4, 2.1})}, 0);
  for (E kind : {E::scale, E::add_scalar, E::minimum_scalar})
    check_gradient(ir::Map{kind, 0.7}, {tensor(kRow, {-1.3, -0.2, 0.4, 2.1})}, 0);
}

TEST_CASE("gradients of two-operand functions are those of finite differences, broadcasts included") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kEmbed, 3)}, {1, -2, 3, 0.4, 5, -0.6});
  const Tensor same = tensor({dim(kSeq, 2), dim(kEmbed, 3)}, {2, 1.5, -1, 3, 0.7, -2});
  const Tensor row = tensor({dim(kEmbed, 3)}, {1.2, -0.8, 2}), one = tensor({}, {0.9}),
               column = tensor({dim(kSeq, 2)}, {1.5, -2.5});
  for (E kind : {E::add, E::sub, E::mul, E::div, E::maximum})
    for (const Tensor& y : {same, row, column, one})
      for (std::size_t operand : {0u, 1u}) check_gradient(ir::Map{kind, 0}, {x, y}, operand);
  for (E kind : {E::sub, E::mul, E::div})
    for (std::size_t operand : {0u, 1u}) check_gradient(ir::Map{kind, 0}, {column, row}, operand);
}
