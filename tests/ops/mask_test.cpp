#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const spmd::Mesh kMesh{{{"data", 2, "data"}, {"tensor", 2, "tensor"}}};
}

TEST_CASE("padding is filled from the valid size on") {
  const Tensor x = tensor({dim(kSeq, 2), padded(kVocab, 4, 3)}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(evaluate(ir::MaskPadding{kVocab, -9, {}}, {x})[0].to_doubles() ==
        std::vector<double>{1, 2, 3, -9, 5, 6, 7, -9});
}

TEST_CASE("a shard's padding is found by its global position") {
  // Vocab of 4 over tensor (axis 1), valid 3: device 1 holds columns 2 and 3, device 2 (tensor 0) columns 0 and 1.
  const Tensor x = tensor({padded(kVocab, 2, 3)}, {7, 8});
  const ir::MaskPadding mask{kVocab, 0, {1}};
  CHECK(evaluate(mask, {x}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() == std::vector<double>{7, 0});
  CHECK(evaluate(mask, {x}, ir::DType::f64, {}, {&kMesh, 2})[0].to_doubles() == std::vector<double>{7, 8});
}

TEST_CASE("a causal mask keeps keys up to the query, wherever the dims stand") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kKeySeq, 2)}, {1, 2, 3, 4});
  CHECK(evaluate(ir::MaskCausal{kSeq, kKeySeq, -9, {}, {}}, {x})[0].to_doubles() == std::vector<double>{1, -9, 3, 4});
  const Tensor t = tensor({dim(kKeySeq, 2), dim(kBatch, 2), dim(kSeq, 2)}, {1, 2, 3, 4, 5, 6, 7, 8});
  // Only key 1 of query 0 is hidden: entries (1, b, 0).
  CHECK(evaluate(ir::MaskCausal{kSeq, kKeySeq, 0, {}, {}}, {t})[0].to_doubles() ==
        std::vector<double>{1, 2, 3, 4, 0, 6, 0, 8});
}

TEST_CASE("a causal mask on shards compares global positions") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kKeySeq, 2)}, {1, 2, 3, 4});
  // Device 3 has queries 2, 3 (data 1) and keys 2, 3 (tensor 1); device 1 queries 0, 1 and keys 2, 3; device 2 the
  // reverse.
  const ir::MaskCausal mask{kSeq, kKeySeq, 0, {0}, {1}};
  CHECK(evaluate(mask, {x}, ir::DType::f64, {}, {&kMesh, 3})[0].to_doubles() == std::vector<double>{1, 0, 3, 4});
  CHECK(evaluate(mask, {x}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() == std::vector<double>{0, 0, 0, 0});
  CHECK(evaluate(mask, {x}, ir::DType::f64, {}, {&kMesh, 2})[0].to_doubles() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("the gradients of masks are those of finite differences") {
  check_gradient(ir::MaskPadding{kVocab, -3, {}}, {uniform({dim(kSeq, 2), padded(kVocab, 4, 3)}, 1)}, 0);
  check_gradient(ir::MaskCausal{kSeq, kKeySeq, -3, {}, {}}, {uniform({dim(kSeq, 3), dim(kKeySeq, 3)}, 2)}, 0);
}
