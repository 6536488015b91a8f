#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;

TEST_CASE("fill makes every entry one value, rounded to the dtype") {
  const ir::Shape shape = {dim(kSeq, 2), dim(kEmbed, 2)};
  CHECK(evaluate(ir::Fill{0.1}, {}, ir::DType::f64, shape)[0] == tensor(shape, {0.1, 0.1, 0.1, 0.1}));
  CHECK(evaluate(ir::Fill{0.1}, {}, ir::DType::bf16, shape)[0].at(3) == 0.10009765625);
  CHECK(evaluate(ir::Fill{-2}, {}, ir::DType::f64, {})[0].to_doubles() == std::vector<double>{-2});
}
