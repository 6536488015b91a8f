#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

TEST_CASE("a collective has no kernel: its plan carries it out") {
  const Tensor x = tensor({dim(kEmbed, 2)}, {1, 2});
  for (const ir::OpKind& kind : {ir::OpKind(ir::AllGather{kEmbed, {0}}), ir::OpKind(ir::ReduceScatter{kEmbed, {0}}),
                                 ir::OpKind(ir::AllReduce{ir::Reduction::sum, {0}})})
    CHECK_THROWS_AS(numeric::evaluate(kind, {&x}, {x.type()}, {}), InternalError);
}
