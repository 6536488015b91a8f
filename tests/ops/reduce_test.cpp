#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const Tensor kX = tensor({dim(kBatch, 2), dim(kSeq, 2), dim(kEmbed, 3)}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
}

TEST_CASE("a sum leaves the dims that it does not name") {
  using V = std::vector<double>;
  CHECK(evaluate(ir::Reduce{ir::Reduction::sum, {kEmbed}}, {kX})[0].to_doubles() == V{6, 15, -6, -15});
  CHECK(evaluate(ir::Reduce{ir::Reduction::sum, {kSeq}}, {kX})[0].to_doubles() == V{5, 7, 9, -5, -7, -9});
  CHECK(evaluate(ir::Reduce{ir::Reduction::sum, {kBatch, kEmbed}}, {kX})[0].to_doubles() == V{0, 0});
  CHECK(evaluate(ir::Reduce{ir::Reduction::sum, {kBatch, kSeq, kEmbed}}, {kX})[0].to_doubles() == V{0});
}

TEST_CASE("a maximum of negative entries is negative") {
  using V = std::vector<double>;
  CHECK(evaluate(ir::Reduce{ir::Reduction::max, {kEmbed}}, {kX})[0].to_doubles() == V{3, 6, -1, -4});
  CHECK(evaluate(ir::Reduce{ir::Reduction::max, {kSeq, kEmbed}}, {kX})[0].to_doubles() == V{6, -1});
}

TEST_CASE("a bf16 sum is kept in f32 and rounded once") {
  const Tensor x = tensor({dim(kEmbed, 5)}, {256, 1, 1, 1, 1}, ir::DType::bf16);
  CHECK(evaluate(ir::Reduce{ir::Reduction::sum, {kEmbed}}, {x}, ir::DType::bf16)[0].at(0) == 260);
}

TEST_CASE("the gradient of a sum is that of finite differences") {
  check_gradient(ir::Reduce{ir::Reduction::sum, {kEmbed}}, {kX}, 0);
  check_gradient(ir::Reduce{ir::Reduction::sum, {kBatch, kEmbed}}, {kX}, 0);
}
