#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const spmd::Mesh kMesh{{{"tensor", 2, "tensor"}}};
const Tensor kIds = tensor({dim(kSeq, 2)}, {2, 1}, ir::DType::i32);
}  // namespace

TEST_CASE("pick takes the class that each id names") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kVocab, 4)}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(evaluate(ir::Pick{kVocab, {}}, {x, kIds})[0] == tensor({dim(kSeq, 2)}, {3, 6}));
  const Tensor turned = tensor({dim(kVocab, 2), dim(kSeq, 2)}, {1, 2, 3, 4});
  CHECK(evaluate(ir::Pick{kVocab, {}}, {turned, tensor({dim(kSeq, 2)}, {1, 0}, ir::DType::i32)})[0].to_doubles() ==
        std::vector<double>{3, 2});
}

TEST_CASE("pick on split classes gives 0 where another device holds the class") {
  const Tensor low = tensor({dim(kSeq, 2), dim(kVocab, 2)}, {1, 2, 5, 6}),
               high = tensor({dim(kSeq, 2), dim(kVocab, 2)}, {3, 4, 7, 8});
  CHECK(evaluate(ir::Pick{kVocab, {0}}, {low, kIds}, ir::DType::f64, {}, {&kMesh, 0})[0].to_doubles() ==
        std::vector<double>{0, 6});
  CHECK(evaluate(ir::Pick{kVocab, {0}}, {high, kIds}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() ==
        std::vector<double>{3, 0});
}

TEST_CASE("the gradient of pick puts dy at the picked class") {
  const Tensor dy = tensor({dim(kSeq, 2)}, {10, 20});
  CHECK(evaluate(ir::PickGrad{dim(kVocab, 4), {}}, {kIds, dy})[0] ==
        tensor({dim(kSeq, 2), dim(kVocab, 4)}, {0, 0, 10, 0, 0, 20, 0, 0}));
  CHECK(evaluate(ir::PickGrad{dim(kVocab, 2), {0}}, {kIds, dy}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() ==
        std::vector<double>{10, 0, 0, 0});
}

TEST_CASE("pick's gradient is that of finite differences") {
  check_gradient(ir::Pick{kVocab, {}}, {uniform({dim(kSeq, 2), dim(kVocab, 4)}, 1), kIds}, 0);
}
