#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

TEST_CASE("a dot of two matrices contracts the dim that the result lacks") {
  // [[1 2 3] [4 5 6]] [[1 0] [2 1] [0 3]] = [[5 11] [14 23]]
  const Tensor lhs = tensor({dim(kSeq, 2), dim(kEmbed, 3)}, {1, 2, 3, 4, 5, 6});
  const Tensor rhs = tensor({dim(kEmbed, 3), dim(kMlp, 2)}, {1, 0, 2, 1, 0, 3});
  const auto y = evaluate(ir::Dot{}, {lhs, rhs}, ir::DType::f64, {dim(kSeq, 2), dim(kMlp, 2)});
  CHECK(y[0].to_doubles() == std::vector<double>{5, 11, 14, 23});
  const auto flipped = evaluate(ir::Dot{}, {lhs, rhs}, ir::DType::f64, {dim(kMlp, 2), dim(kSeq, 2)});
  CHECK(flipped[0].to_doubles() == std::vector<double>{5, 14, 11, 23});
}

TEST_CASE("a dim of both operands and the result is a batch dim, wherever it stands") {
  // batch 2: [1 2] . [3 4] = 11; [5 6] . [7 8] = 83
  const Tensor lhs = tensor({dim(kEmbed, 2), dim(kBatch, 2)}, {1, 5, 2, 6});
  const Tensor rhs = tensor({dim(kBatch, 2), dim(kEmbed, 2)}, {3, 4, 7, 8});
  CHECK(evaluate(ir::Dot{}, {lhs, rhs}, ir::DType::f64, {dim(kBatch, 2)})[0].to_doubles() ==
        std::vector<double>{11, 83});
}

TEST_CASE("a dot without a contracted dim is an outer product") {
  const Tensor lhs = tensor({dim(kSeq, 2)}, {2, 3}), rhs = tensor({dim(kEmbed, 2)}, {5, 7});
  CHECK(evaluate(ir::Dot{}, {lhs, rhs}, ir::DType::f64, {dim(kSeq, 2), dim(kEmbed, 2)})[0].to_doubles() ==
        std::vector<double>{10, 14, 15, 21});
}

TEST_CASE("Eigen's product and three plain loops agree exactly on integers, and count the same operations") {
  const ir::Shape lhs = {dim(kBatch, 3), dim(kSeq, 17), dim(kHeads, 2), dim(kEmbed, 33)};
  const ir::Shape rhs = {dim(kHeads, 2), dim(kEmbed, 33), dim(kMlp, 19), dim(kBatch, 3)};
  const ir::Shape result = {dim(kSeq, 17), dim(kBatch, 3), dim(kMlp, 19), dim(kHeads, 2)};
  for (ir::DType dtype : {ir::DType::f64, ir::DType::f32, ir::DType::bf16}) {
    const Tensor a = integers(lhs, 1, dtype), b = integers(rhs, 2, dtype);
    const auto y = evaluate(ir::Dot{}, {a, b}, dtype, result);
    const numeric::Evaluation naive = numeric::evaluate_naive_dot(a, b, y[0].type());
    CHECK(y[0] == naive.results[0]);
    // 2 x (all distinct dims) = 2 x 3 x 17 x 2 x 33 x 19
    CHECK(naive.flops == 127908);
    CHECK(ir::cost(ir::Dot{}, {a.type(), b.type()}, {y[0].type()}).executed_flops == 127908);
  }
}

TEST_CASE("a bf16 dot accumulates in f32 and rounds once") {
  // 256 + 1 + 1 + 1 + 1 = 260; rounding each sum to bf16 would stay at 256.
  const Tensor lhs = tensor({dim(kEmbed, 5)}, {256, 1, 1, 1, 1}, ir::DType::bf16);
  const Tensor rhs = tensor({dim(kEmbed, 5)}, {1, 1, 1, 1, 1}, ir::DType::bf16);
  CHECK(evaluate(ir::Dot{}, {lhs, rhs}, ir::DType::bf16, {})[0].at(0) == 260);
  // 256 + 1 = 257 is no bf16: one rounding to 256, and in f32 it stays.
  const Tensor two = tensor({dim(kEmbed, 2)}, {256, 1}, ir::DType::bf16),
               ones = tensor({dim(kEmbed, 2)}, {1, 1}, ir::DType::bf16);
  CHECK(evaluate(ir::Dot{}, {two, ones}, ir::DType::bf16, {})[0].at(0) == 256);
  CHECK(evaluate(ir::Dot{}, {two, ones}, ir::DType::f32, {})[0].at(0) == 257);
}

TEST_CASE("the gradient of a dot is that of finite differences, batch dims and transposes included") {
  const Tensor lhs = uniform({dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, 4)}, 1);
  const Tensor rhs = uniform({dim(kMlp, 2), dim(kEmbed, 4), dim(kBatch, 2)}, 2);
  for (std::size_t operand : {0u, 1u})
    check_gradient(ir::Dot{}, {lhs, rhs}, operand, {dim(kSeq, 3), dim(kBatch, 2), dim(kMlp, 2)});
}
