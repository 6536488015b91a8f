#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

TEST_CASE("slice takes the shard of a whole dim that the device's coordinates name") {
  const spmd::Mesh mesh{{{"data", 2, "data"}, {"tensor", 2, "tensor"}}};
  const Tensor x = tensor({dim(kSeq, 2), dim(kEmbed, 4)}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto slice = [&](const ir::Slice& op, const ir::Shape& shape, std::int64_t device) {
    return numeric::evaluate(op, {&x}, {type(ir::DType::f64, shape)}, {&mesh, device}).results[0].to_doubles();
  };
  // Device 3: data 1, tensor 1.
  CHECK(slice({kEmbed, {1}}, {dim(kSeq, 2), dim(kEmbed, 2)}, 3) == std::vector<double>{3, 4, 7, 8});
  CHECK(slice({kSeq, {0}}, {dim(kSeq, 1), dim(kEmbed, 4)}, 3) == std::vector<double>{5, 6, 7, 8});
  // Over both axes, tensor major: device 1 (data 0, tensor 1) has index 2.
  CHECK(slice({kEmbed, {1, 0}}, {dim(kSeq, 2), dim(kEmbed, 1)}, 1) == std::vector<double>{3, 7});
}
