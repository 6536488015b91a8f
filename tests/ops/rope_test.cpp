#include <cmath>

#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const spmd::Mesh kMesh{{{"data", 2, "data"}}};
constexpr ir::DimName kW = kWidth;
}  // namespace

TEST_CASE("rope turns the pair (i, i + d/2) by position times theta^(-2i/d)") {
  // d = 4, theta = 100: pair 0 turns by the position, pair 1 by position x 100^(-1/2) = position / 10.
  const Tensor x = tensor({dim(kSeq, 2), dim(kW, 4)}, {1, 2, 3, 4, 1, 0, 0, 1});
  const auto y = evaluate(ir::Rope{kSeq, kW, 100, false, {}}, {x});
  // Position 0 stays. Position 1: (1, 0) by 1 -> (cos 1, sin 1); (0, 1) by 0.1 -> (-sin 0.1, cos 0.1).
  check_close(y[0], {1, 2, 3, 4, std::cos(1.0), -std::sin(0.1), std::sin(1.0), std::cos(0.1)}, 1e-15);
}

TEST_CASE("the inverse turns back") {
  const Tensor x = uniform({dim(kBatch, 2), dim(kSeq, 3), dim(kHeads, 2), dim(kW, 6)}, 1);
  const auto there = evaluate(ir::Rope{kSeq, kW, 10000, false, {}}, {x});
  const auto back = evaluate(ir::Rope{kSeq, kW, 10000, true, {}}, {there[0]});
  check_close(back[0], x.to_doubles(), 1e-15);
}

TEST_CASE("a shard of the sequence turns by its global positions") {
  const Tensor whole = uniform({dim(kSeq, 4), dim(kW, 2)}, 2);
  const std::vector<double> all = evaluate(ir::Rope{kSeq, kW, 10000, false, {}}, {whole})[0].to_doubles();
  const std::vector<double> values = whole.to_doubles();
  const Tensor second = tensor({dim(kSeq, 2), dim(kW, 2)}, {values.begin() + 4, values.end()});
  const auto y = evaluate(ir::Rope{kSeq, kW, 10000, false, {0}}, {second}, ir::DType::f64, {}, {&kMesh, 1});
  CHECK(y[0].to_doubles() == std::vector<double>(all.begin() + 4, all.end()));
}

TEST_CASE("the gradient of rope is that of finite differences") {
  check_gradient(ir::Rope{kSeq, kW, 100, false, {}}, {uniform({dim(kSeq, 3), dim(kHeads, 2), dim(kW, 4)}, 3)}, 0);
}
