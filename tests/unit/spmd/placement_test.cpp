#include "sim/spmd/placement.hpp"

#include <doctest/doctest.h>

#include <set>

#include "sim/base/random.hpp"

namespace tpusim::spmd {
namespace {

using fabric::Fabric;
using fabric::Level;
using fabric::Link;
using fabric::PhysicalAxis;

Fabric slice(const std::vector<std::int64_t>& sizes, bool wrapped = true, std::int64_t slices = 1) {
  static const char* const kNames[] = {"x", "y", "z"};
  Fabric f;
  if (slices > 1) f.axes.push_back({"slice", slices, Level::slice, Link::switched, Seconds(1e-5), BytesPerSecond(1e9)});
  for (std::size_t i = 0; i < sizes.size(); ++i)
    f.axes.push_back(
        {kNames[i], sizes[i], Level::chip, wrapped ? Link::ring : Link::line, Seconds(1e-6), BytesPerSecond(1e11)});
  return f;
}
Fabric hosts(std::int64_t count, std::int64_t chips) {
  Fabric f;
  f.axes.push_back({"host", count, Level::host, Link::switched, Seconds(1e-5), BytesPerSecond(2e10)});
  f.axes.push_back({"chip", chips, Level::chip, Link::switched, Seconds(1e-6), BytesPerSecond(3e11)});
  return f;
}
Mesh mesh_of(std::initializer_list<std::pair<const char*, std::int64_t>> axes) {
  Mesh mesh;
  for (const auto& [name, size] : axes) {
    const std::string text = name;
    mesh.axes.push_back({text, size, text.substr(0, text.find('.'))});
  }
  return mesh;
}
// Every device has its own chip, and steps along a mesh axis's part are `stride` chips of that physical axis apart.
void check_bijective(const Placement& p, const Mesh& mesh, const Fabric& f) {
  std::set<std::int64_t> seen;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    const std::int64_t chip = p.chip(d, mesh, f);
    CHECK(chip >= 0);
    CHECK(chip < f.chips());
    seen.insert(chip);
  }
  CHECK(static_cast<std::int64_t>(seen.size()) == mesh.devices());
}

TEST_CASE("Tensor takes the whole axis that fits it and fsdp the other two") {
  const Mesh mesh = mesh_of({{"fsdp", 16}, {"tensor", 8}});
  const Fabric f = slice({4, 4, 8});
  const PlacementResult r = place(mesh, f);
  CHECK(r.verdict.feasible);
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 4, 1}, {1, 4, 1}}, {{2, 8, 1}}});
  CHECK(r.description == "fsdp on x, y; tensor on z");
  check_bijective(r.placement, mesh, f);
}

TEST_CASE("One mesh axis takes the whole slice") {
  const Mesh mesh = mesh_of({{"fsdp", 16}});
  const PlacementResult r = place(mesh, slice({4, 4}));
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 4, 1}, {1, 4, 1}}});
  CHECK(r.description == "fsdp on x, y");
}

TEST_CASE("PaLM: data over two slices, fsdp and tensor inside") {
  const Mesh mesh = mesh_of({{"data", 2}, {"fsdp", 256}, {"tensor", 12}});
  const Fabric f = slice({12, 16, 16}, true, 2);
  const PlacementResult r = place(mesh, f);
  CHECK(r.description == "data on slice; fsdp on y, z; tensor on x");
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 2, 1}}, {{2, 16, 1}, {3, 16, 1}}, {{1, 12, 1}}});
  check_bijective(r.placement, mesh, f);
}

TEST_CASE("A tensor axis shorter than every physical axis takes the minor part of one; fsdp strides over it") {
  const Mesh mesh = mesh_of({{"fsdp", 64}, {"tensor", 4}});
  const Fabric f = slice({16, 16});
  const PlacementResult r = place(mesh, f);
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 16, 1}, {1, 4, 4}}, {{1, 4, 1}}});
  CHECK(r.description == "fsdp on x, y (4 of 16); tensor on y (4 of 16)");
  check_bijective(r.placement, mesh, f);
  // Device 1 is the next member of tensor, one chip on; device 4 the next of fsdp, four chips on the same axis.
  CHECK(r.placement.chip(1, mesh, f) == 1);
  CHECK(r.placement.chip(4, mesh, f) == 4);
  CHECK(r.placement.chip(16, mesh, f) == 16);
}

TEST_CASE("A tensor axis of the size of a host stays inside the hosts") {
  const Mesh mesh = mesh_of({{"pipeline", 8}, {"data", 4}, {"tensor", 8}});
  const Fabric f = hosts(32, 8);
  const PlacementResult r = place(mesh, f);
  // data chooses before pipeline and takes the minor part of the hosts.
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 8, 4}}, {{0, 4, 1}}, {{1, 8, 1}}});
  CHECK(r.description == "pipeline on host (8 of 32); data on host (4 of 32); tensor on chip");
  check_bijective(r.placement, mesh, f);
}

TEST_CASE("A tensor axis wider than a host takes all its chips and as few hosts as needed") {
  const Mesh mesh = mesh_of({{"data", 4}, {"tensor", 16}});
  const Fabric f = hosts(8, 8);
  const PlacementResult r = place(mesh, f);
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 4, 2}}, {{0, 2, 1}, {1, 8, 1}}});
  CHECK(r.description == "data on host (4 of 8); tensor on host (2 of 8), chip");
  check_bijective(r.placement, mesh, f);
}

TEST_CASE("On 16x16x24 each axis of a fitting mesh is whole") {
  const Mesh mesh = mesh_of({{"data", 16}, {"fsdp", 16}, {"tensor", 24}});
  const PlacementResult r = place(mesh, slice({16, 16, 24}));
  CHECK(r.description == "data on x; fsdp on y; tensor on z");
}

TEST_CASE("Of two whole choices the one with more links at work is taken") {
  // 16 as 4 x 4 has four links a chip, as one ring of 16 two.
  const PlacementResult r = place(mesh_of({{"data", 16}, {"tensor", 16}}), slice({4, 4, 16}));
  CHECK(r.description == "data on z; tensor on x, y");
}

TEST_CASE("A priority of one's own turns the choice round") {
  const Mesh mesh = mesh_of({{"data", 16}, {"tensor", 16}});
  const PlacementResult r = place(mesh, slice({4, 4, 16}), {"data", "tensor"});
  CHECK(r.description == "data on x, y; tensor on z");
}

TEST_CASE("Sub-axes lie inside what their axis takes, the minor one nearest") {
  const Mesh mesh = mesh_of({{"fsdp", 16}, {"tensor.0", 8}, {"tensor.1", 2}});
  const Fabric f = slice({16, 16});
  const PlacementResult r = place(mesh, f);
  CHECK(r.placement.parts == std::vector<std::vector<AxisPart>>{{{0, 16, 1}}, {{1, 8, 2}}, {{1, 2, 1}}});
  CHECK(r.description == "fsdp on x; tensor on y");
  check_bijective(r.placement, mesh, f);
}

TEST_CASE("A mesh axis that cannot be factored over the machine is named") {
  const PlacementResult r = place(mesh_of({{"fsdp", 8}, {"tensor", 6}}), slice({4, 4}));
  CHECK_FALSE(r.verdict.feasible);
  CHECK(r.verdict.reason == "the mesh axis tensor of 6 does not factor over the machine");
  CHECK(r.verdict.needed == "a physical axis with the factor 3");
  CHECK(r.verdict.available == "16 chips: x 4 x y 4");
  CHECK(r.verdict.pointer == "/mesh/tensor");
}

TEST_CASE("A mesh of too few devices is refused as a whole") {
  const PlacementResult r = place(mesh_of({{"fsdp", 4}, {"tensor", 2}}), slice({4, 4}));
  CHECK_FALSE(r.verdict.feasible);
  CHECK(r.verdict.reason == "the mesh does not fit the machine");
  CHECK(r.verdict.needed == "8 devices");
  CHECK(r.verdict.pointer == "/mesh");
}

TEST_CASE("Any mesh that multiplies to the chips is placed, one chip a device") {
  Random random(20);
  static const std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8};
  for (int round = 0; round < 300; ++round) {
    Fabric f;
    std::int64_t rest = 1;
    const std::size_t axes = 1 + random.below(3);
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t size = kSizes[random.below(6)];
      const Link link = random.below(2) == 0 ? Link::ring : random.below(2) == 0 ? Link::line : Link::switched;
      const Level level = random.below(2) == 0 ? Level::chip : random.below(2) == 0 ? Level::host : Level::slice;
      f.axes.push_back({"p" + std::to_string(i), size, level, link, Seconds(1e-6), BytesPerSecond(1e11)});
      rest *= size;
    }
    Mesh mesh;
    for (const char* name : {"pipeline", "data", "fsdp", "tensor"}) {
      std::int64_t size = 1;
      for (std::int64_t prime : {2, 3})
        while (rest % prime == 0 && random.below(2) == 0) size *= prime, rest /= prime;
      mesh.axes.push_back({name, size, name});
    }
    mesh.axes[random.below(4)].size *= rest;
    const PlacementResult r = place(mesh, f);
    REQUIRE(r.verdict.feasible);
    check_bijective(r.placement, mesh, f);
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
      std::int64_t product = 1;
      for (const AxisPart& part : r.placement.parts[a]) product *= part.size;
      CHECK(product == mesh.axes[a].size);
    }
  }
}

}  // namespace
}  // namespace tpusim::spmd
