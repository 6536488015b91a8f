#include "sim/numeric/shards.hpp"

#include <doctest/doctest.h>

using namespace tpusim;
using numeric::Tensor;

namespace {
const ir::DimName kSeq{ir::Axis::seq, 0}, kEmbed{ir::Axis::embed, 0};
const spmd::Mesh kMesh{{{"data", 2, "data"}, {"tensor", 2, "tensor"}}};

ir::TensorType matrix(std::int64_t rows, std::int64_t columns) {
  return {ir::DType::f64, {{kSeq, rows, rows}, {kEmbed, columns, columns}}, ir::Place::none};
}
Tensor iota(const ir::TensorType& type) {
  Tensor t(type);
  for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(i));
  return t;
}
spmd::PartitionSpec spec(ir::MeshAxes rows, ir::MeshAxes columns, ir::MeshAxes partial = {}) {
  spmd::PartitionSpec s;
  s.dims = {rows, columns};
  s.partial = partial;
  return s;
}
std::vector<Tensor> shards_of(const Tensor& whole, const spmd::PartitionSpec& s) {
  std::vector<Tensor> shards;
  for (std::int64_t d = 0; d < kMesh.devices(); ++d) shards.push_back(numeric::shard(whole, s, kMesh, d));
  return shards;
}
numeric::Assembled assembled(const std::vector<Tensor>& shards, const spmd::PartitionSpec& s) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : shards) pointers.push_back(&t);
  return numeric::assemble(pointers, s, kMesh);
}
}  // namespace

TEST_CASE("a device's shard is the block of the whole that its coordinates name") {
  // [[0 1 2 3] [4 5 6 7]], rows over data, columns over tensor; device 2 has data 1, tensor 0.
  const auto shards = shards_of(iota(matrix(2, 4)), spec({0}, {1}));
  CHECK(shards[0].to_doubles() == std::vector<double>{0, 1});
  CHECK(shards[1].to_doubles() == std::vector<double>{2, 3});
  CHECK(shards[2].to_doubles() == std::vector<double>{4, 5});
  CHECK(shards[3].to_doubles() == std::vector<double>{6, 7});
  // Both axes on the columns, tensor major: device (data d, tensor t) has block 2t + d.
  const auto nested = shards_of(iota(matrix(1, 4)), spec({}, {1, 0}));
  CHECK(nested[1].to_doubles() == std::vector<double>{2});
  CHECK(nested[2].to_doubles() == std::vector<double>{1});
}

TEST_CASE("a whole value cut into shards comes together again, under any spec") {
  const Tensor whole = iota(matrix(4, 8));
  for (const auto& s : {spec({}, {}), spec({0}, {}), spec({}, {1}), spec({0}, {1}), spec({1}, {0}), spec({0, 1}, {}),
                        spec({}, {1, 0}), spec({0}, {}, {1}), spec({}, {}, {0, 1})}) {
    const numeric::Assembled back = assembled(shards_of(whole, s), s);
    CHECK(back.value == whole);
    CHECK(back.replica_difference == 0);
  }
}

TEST_CASE("partial shards are summed, or their maximum taken") {
  spmd::PartitionSpec s = spec({}, {}, {1});
  const ir::TensorType type = matrix(1, 2);
  std::vector<Tensor> shards = {Tensor(type, {1, 5}), Tensor(type, {10, -2}), Tensor(type, {1, 5}),
                                Tensor(type, {10, -2})};
  CHECK(assembled(shards, s).value.to_doubles() == std::vector<double>{11, 3});
  s.partial_kind = ir::Reduction::max;
  CHECK(assembled(shards, s).value.to_doubles() == std::vector<double>{10, 5});
}

TEST_CASE("replicas that differ are reported by how much") {
  const spmd::PartitionSpec s = spec({}, {1});
  auto shards = shards_of(iota(matrix(1, 4)), s);
  shards[3].set(0, 2.5);  // device 1 has 2 there
  CHECK(assembled(shards, s).replica_difference == 0.5);
}

TEST_CASE("padding is cleared where a dim's valid size ends, and only there") {
  ir::TensorType type = matrix(2, 4);
  type.shape[1].valid = 3;
  Tensor t = iota(type);
  numeric::clear_padding(t);
  CHECK(t.to_doubles() == std::vector<double>{0, 1, 2, 0, 4, 5, 6, 0});
}

TEST_CASE("shard and global types are inverse and a split that does not divide is an error") {
  const spmd::PartitionSpec s = spec({0}, {1});
  CHECK(numeric::global_type(numeric::shard_type(matrix(4, 6), s, kMesh), s, kMesh) == matrix(4, 6));
  CHECK_THROWS_AS(numeric::shard_type(matrix(3, 6), s, kMesh), InternalError);
}
