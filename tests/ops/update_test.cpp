#include <cmath>

#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const ir::Shape kRow = {dim(kEmbed, 2)};
const Tensor kP = tensor(kRow, {1, -2}), kG = tensor(kRow, {0.5, 4}), kHalf = tensor({}, {0.5});

ir::Update update(ir::Optimizer kind) {
  ir::Update u;
  u.kind = kind;
  u.learning_rate = 0.25;
  u.eps = 0;
  return u;
}
}  // namespace

TEST_CASE("sgd moves against the clipped gradient") {
  // p - 0.25 x 0.5 g
  CHECK(evaluate(update(ir::Optimizer::sgd), {kP, kG, kHalf})[0].to_doubles() == std::vector<double>{0.9375, -2.5});
}

TEST_CASE("momentum keeps a decaying sum of gradients") {
  ir::Update u = update(ir::Optimizer::momentum);
  u.momentum = 0.5;
  const auto y = evaluate(u, {kP, kG, kHalf, tensor(kRow, {1, 2})});
  // v = 0.5 v + 0.5 g = {0.75, 3}; p - 0.25 v
  CHECK(y[1].to_doubles() == std::vector<double>{0.75, 3});
  CHECK(y[0].to_doubles() == std::vector<double>{0.8125, -2.75});
}

TEST_CASE("adam's first step has the length of the learning rate, whatever the gradient's size") {
  ir::Update u = update(ir::Optimizer::adam);
  u.beta1 = 0.5;
  u.beta2 = 0.75;
  const Tensor zero = tensor(kRow, {0, 0}), one = tensor({}, {1});
  const auto y = evaluate(u, {kP, kG, one, zero, zero, one});
  // m = g/2, v = g^2/4; corrected by 1/(1 - 0.5) and 1/(1 - 0.75): g / |g| = 1.
  CHECK(y[0].to_doubles() == std::vector<double>{0.75, -2.25});
  CHECK(y[1].to_doubles() == std::vector<double>{0.25, 2});
  CHECK(y[2].to_doubles() == std::vector<double>{0.0625, 4});
}

TEST_CASE("adam's second step corrects its moments by the step number") {
  ir::Update u = update(ir::Optimizer::adam);
  u.beta1 = 0.5;
  u.beta2 = 0.75;
  u.eps = 1;
  const auto y = evaluate(u, {tensor(kRow, {0, 0}), tensor(kRow, {1, 2}), tensor({}, {1}), tensor(kRow, {2, 0}),
                              tensor(kRow, {4, 0}), tensor({}, {2})});
  // m = {1.5, 1}, v = {3.25, 1}; / (1 - 1/4) = 4/3 m, / (1 - 9/16) = 16/7 v.
  const double a = 1.5 * 4 / 3 / (std::sqrt(3.25 * 16 / 7) + 1), b = 1.0 * 4 / 3 / (std::sqrt(16.0 / 7) + 1);
  check_close(y[0], {-0.25 * a, -0.25 * b}, 1e-15);
}

TEST_CASE("adamw decays the parameter apart from the gradient") {
  ir::Update u = update(ir::Optimizer::adamw);
  u.weight_decay = 0.5;
  const Tensor zero = tensor(kRow, {0, 0}), one = tensor({}, {1});
  const auto y = evaluate(u, {kP, kG, one, zero, zero, one});
  // p - 0.25 (sign g + 0.5 p) = {1 - 0.25 x 1.5, -2 - 0.25 x (1 - 1)}
  check_close(y[0], {0.625, -2}, 1e-15);
  check_close(y[1], {0.05, 0.4}, 1e-15);  // m = 0.1 g: the decay is not in the moments
}

TEST_CASE("padded entries stay 0 through an update") {
  ir::Update u = update(ir::Optimizer::adamw);
  u.eps = 1e-8;
  u.weight_decay = 0.5;
  const ir::Shape shape = {padded(kEmbed, 2, 1)};
  const Tensor one = tensor({}, {1}), zero = tensor(shape, {0, 0});
  const auto y = evaluate(u, {tensor(shape, {1, 0}), tensor(shape, {1, 0}), one, zero, zero, one});
  for (const Tensor& t : y) CHECK(t.at(1) == 0);
}

TEST_CASE("f32 updates are made in f32") {
  const Tensor p = tensor(kRow, {16777216, 1}, ir::DType::f32), g = tensor(kRow, {-4, 0}, ir::DType::f32);
  // 2^24 + 0.25 x 4 = 2^24 + 1, which f32 rounds back to 2^24.
  CHECK(evaluate(update(ir::Optimizer::sgd), {p, g, tensor({}, {1}, ir::DType::f32)}, ir::DType::f32)[0].at(0) ==
        16777216);
}
