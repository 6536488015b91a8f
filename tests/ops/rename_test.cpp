#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

TEST_CASE("a rename keeps the data and changes one dim's name") {
  const Tensor x = tensor({dim(kSeq, 2), dim(kEmbed, 2)}, {1, 2, 3, 4});
  const auto y = evaluate(ir::Rename{kSeq, kKeySeq}, {x});
  CHECK(y[0] == tensor({dim(kKeySeq, 2), dim(kEmbed, 2)}, {1, 2, 3, 4}));
}

TEST_CASE("the gradient of a rename is renamed back") {
  check_gradient(ir::Rename{kSeq, kKeySeq}, {uniform({dim(kSeq, 2), dim(kEmbed, 2)}, 1)}, 0);
}
