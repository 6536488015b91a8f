#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
const spmd::Mesh kMesh{{{"tensor", 2, "tensor"}}};
const Tensor kIds = tensor({dim(kSeq, 3)}, {2, 0, 2}, ir::DType::i32);
}  // namespace

TEST_CASE("a lookup takes the rows that the ids name") {
  const Tensor table = tensor({dim(kVocab, 3), dim(kEmbed, 2)}, {1, 2, 3, 4, 5, 6});
  CHECK(evaluate(ir::Lookup{kVocab, {}}, {table, kIds})[0] ==
        tensor({dim(kSeq, 3), dim(kEmbed, 2)}, {5, 6, 1, 2, 5, 6}));
  const Tensor turned = tensor({dim(kEmbed, 2), dim(kVocab, 3)}, {1, 3, 5, 2, 4, 6});
  CHECK(evaluate(ir::Lookup{kVocab, {}}, {turned, kIds})[0].to_doubles() == std::vector<double>{5, 6, 1, 2, 5, 6});
}

TEST_CASE("a split table gives 0 for the rows of others, so that the parts sum to the whole") {
  const ir::Lookup op{kVocab, {0}};
  const Tensor low = tensor({dim(kVocab, 2), dim(kEmbed, 1)}, {10, 11}),
               high = tensor({dim(kVocab, 2), dim(kEmbed, 1)}, {12, 13});
  CHECK(evaluate(op, {low, kIds}, ir::DType::f64, {}, {&kMesh, 0})[0].to_doubles() == std::vector<double>{0, 10, 0});
  CHECK(evaluate(op, {high, kIds}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() == std::vector<double>{12, 0, 12});
}

TEST_CASE("the gradient of a lookup adds up the rows of one id") {
  const Tensor dy = tensor({dim(kSeq, 3), dim(kEmbed, 2)}, {1, 2, 3, 4, 10, 20});
  CHECK(evaluate(ir::LookupGrad{dim(kVocab, 3), {}}, {kIds, dy})[0] ==
        tensor({dim(kVocab, 3), dim(kEmbed, 2)}, {3, 4, 0, 0, 11, 22}));
  // The upper half of a table of 4 rows: id 2 is its row 0.
  CHECK(evaluate(ir::LookupGrad{dim(kVocab, 2), {0}}, {kIds, dy}, ir::DType::f64, {}, {&kMesh, 1})[0].to_doubles() ==
        std::vector<double>{11, 22, 0, 0});
}

TEST_CASE("a lookup's gradient is that of finite differences") {
  const Tensor ids = tensor({dim(kBatch, 2), dim(kSeq, 3)}, {0, 3, 3, 1, 0, 3}, ir::DType::i32);
  check_gradient(ir::Lookup{kVocab, {}}, {uniform({dim(kVocab, 4), dim(kEmbed, 3)}, 1), ids}, 0);
}
