#include <doctest/doctest.h>

#include "sim/spmd/partition_spec.hpp"

namespace tpusim::spmd {
namespace {

using ir::Axis;
using ir::Place;
using ir::Table;

const Mesh kMesh{{{"data", 2, "data"}, {"tensor.0", 3, "tensor"}, {"tensor.1", 2, "tensor"}}};

TEST_CASE("Device numbers are row-major over the mesh axes, first axis major") {
  // 11 = 1 * 6 + 2 * 2 + 1.
  CHECK(kMesh.devices() == 12);
  CHECK(kMesh.coordinate(11, 0) == 1);
  CHECK(kMesh.coordinate(11, 1) == 2);
  CHECK(kMesh.coordinate(11, 2) == 1);
  CHECK(kMesh.index_in(11, {1, 2}) == 5);
  CHECK(kMesh.index_in(11, {2, 1}) == 5);  // 1 * 3 + 2
  CHECK(kMesh.index_in(10, {2, 1}) == 2);  // 0 * 3 + 2
}

TEST_CASE("A name stands for its axis or for all its sub-axes, major to minor") {
  CHECK(kMesh.find("tensor") == MeshAxes{1, 2});
  CHECK(kMesh.find("tensor.1") == MeshAxes{2});
  CHECK(kMesh.find("data") == MeshAxes{0});
  CHECK(kMesh.find("fsdp") == MeshAxes{});
  CHECK(kMesh.size({1, 2}) == 6);
  CHECK(kMesh.to_string({1, 2}) == "tensor.0,tensor.1");
}

TEST_CASE("The members of a replica group are in the order of their index in it") {
  for (const MeshAxes& list : {MeshAxes{0}, MeshAxes{2, 0}, MeshAxes{1, 2}, MeshAxes{0, 1, 2}, MeshAxes{}})
    for (std::int64_t device = 0; device < kMesh.devices(); ++device) {
      const std::vector<std::int64_t> group = kMesh.group_of(device, list);
      REQUIRE(static_cast<std::int64_t>(group.size()) == kMesh.size(list));
      CHECK(group[static_cast<std::size_t>(kMesh.index_in(device, list))] == device);
      for (std::size_t i = 0; i < group.size(); ++i) {
        CHECK(kMesh.index_in(group[i], list) == static_cast<std::int64_t>(i));
        for (int axis = 0; axis < 3; ++axis)
          if (!list.contains(static_cast<std::uint8_t>(axis)))
            CHECK(kMesh.coordinate(group[i], axis) == kMesh.coordinate(device, axis));
      }
    }
}

ir::TensorType type_of(std::initializer_list<std::pair<Axis, std::int64_t>> dims, Place place = Place::none) {
  ir::TensorType type{ir::DType::f32, {}, place};
  for (const auto& [axis, size] : dims) type.shape.push_back({{axis, 0}, size, size});
  return type;
}
std::string wanted(const std::vector<Rule>& rules, const ir::TensorType& type) {
  ShardingTables tables;
  tables.activations = rules;
  return to_string(wanted_spec(tables, Table::activations, type, kMesh), type.shape, kMesh);
}

TEST_CASE("A mesh axis splits one dim of a tensor; the earlier rule wins") {
  const Rule embed{Axis::embed, Place::none, {0}, ""}, mlp{Axis::mlp, Place::none, {0, 1}, ""};
  const ir::TensorType type = type_of({{Axis::mlp, 12}, {Axis::embed, 12}});
  CHECK(wanted({embed, mlp}, type) == "[mlp: tensor.0, embed: data]");
  CHECK(wanted({mlp, embed}, type) == "[mlp: data,tensor.0, embed]");
}

TEST_CASE("A rule for the value's own place stands before one for everywhere") {
  const Rule everywhere{Axis::seq, Place::none, {0}, ""}, residual{Axis::seq, Place::residual, {1, 2}, ""};
  CHECK(wanted({everywhere, residual}, type_of({{Axis::seq, 12}}, Place::residual)) == "[seq: tensor.0,tensor.1]");
  CHECK(wanted({everywhere, residual}, type_of({{Axis::seq, 12}}, Place::attention)) == "[seq: data]");
  const Rule whole{Axis::seq, Place::residual, {}, ""};
  CHECK(wanted({everywhere, whole}, type_of({{Axis::seq, 12}}, Place::residual)) == "[seq]");
}

TEST_CASE("Axes of a rule are taken as far as their product divides the dim") {
  const Rule all{Axis::mlp, Place::none, {0, 1, 2}, ""};
  CHECK(wanted({all}, type_of({{Axis::mlp, 24}})) == "[mlp: data,tensor.0,tensor.1]");
  CHECK(wanted({all}, type_of({{Axis::mlp, 6}})) == "[mlp: data,tensor.0]");
  CHECK(wanted({all}, type_of({{Axis::mlp, 4}})) == "[mlp: data,tensor.1]");
  CHECK(wanted({all}, type_of({{Axis::mlp, 5}})) == "[mlp]");
}

TEST_CASE("What a rule could not have is explained") {
  ShardingTables tables;
  tables.parameters = {{Axis::embed, Place::none, {0}, "strategy fsdp"},
                       {Axis::vocab, Place::none, {1, 0, 2}, "by hand"}};
  const ir::TensorType type = type_of({{Axis::vocab, 9}, {Axis::embed, 4}, {Axis::mlp, 4}});
  CHECK(explain_wanted(tables, Table::parameters, type, kMesh) ==
        "vocab: tensor.0 (by hand); not data: it splits embed; not tensor.1: 3 is no multiple of 2\n"
        "embed: data (strategy fsdp)\n");
}

TEST_CASE("The tables are printed a rule a line, with where each comes from") {
  ShardingTables tables;
  tables.parameters = {{Axis::embed, Place::none, {0}, "strategy fsdp"}, {Axis::mlp, Place::none, {}, "by hand"}};
  tables.activations = {{Axis::seq, Place::residual, {1, 2}, "strategy tensor"}};
  CHECK(print(tables, kMesh) ==
        "parameters   embed -> data  (strategy fsdp)\n"
        "parameters   mlp -> whole  (by hand)\n"
        "activations  residual.seq -> tensor.0,tensor.1  (strategy tensor)\n");
}

TEST_CASE("The first of two dims of one logical axis takes the mesh axes") {
  ir::TensorType scores = type_of({{Axis::seq, 12}});
  scores.shape.push_back({{Axis::seq, 1}, 12, 12});
  CHECK(wanted({{Axis::seq, Place::none, {0}, ""}}, scores) == "[seq: data, key_seq]");
}

}  // namespace
}  // namespace tpusim::spmd
