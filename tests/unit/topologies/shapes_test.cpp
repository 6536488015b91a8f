// What each builder of topologies/shapes makes: nodes, links, rates. Routes and metrics have tests of their own.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/check.hpp"
#include "topologies/catalogue.hpp"
#include "topologies/shapes/circulant.hpp"
#include "topologies/shapes/dragonfly.hpp"
#include "topologies/shapes/fat_tree.hpp"
#include "topologies/shapes/full_mesh.hpp"
#include "topologies/shapes/grid.hpp"
#include "topologies/shapes/pcie_tree.hpp"
#include "topologies/shapes/slices.hpp"
#include "topologies/shapes/star.hpp"
#include "topology_support.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

namespace {

std::int64_t links_of(const Topology& t, std::int32_t node) {
  const Adjacency out = links_from(t);
  return out.first[static_cast<std::size_t>(node) + 1] - out.first[static_cast<std::size_t>(node)];
}

std::int64_t count(const Topology& t, NodeKind kind, int tier = 0) {
  return std::count_if(t.nodes.begin(), t.nodes.end(), [&](const Node& n) { return n.kind == kind && n.tier == tier; });
}

const LinkClass& class_between(const Topology& t, std::int32_t a, std::int32_t b) {
  for (const Link& l : t.links)
    if (l.from == a && l.to == b) return t.classes[static_cast<std::size_t>(l.cls)];
  FAIL("no link");
  return t.classes[0];
}

Cluster cluster(const char* chip, const char* shape, std::int64_t n = 1) {
  ClusterRequest request;
  request.chip = *find_chip(chip);
  request.slice_shape = *parse_shape(shape);
  request.slices = n;
  DiagnosticSink sink;
  return *build(request, sink);
}

}  // namespace

TEST_CASE("every family is a legal topology with a name of its own") {
  std::vector<std::string> names;
  for (const Topology& t : one_of_each()) {
    CAPTURE(t.name);
    CHECK_NOTHROW(verify(t));
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("a topology built twice is the same") {
  CHECK(one_of_each() == one_of_each());
}

TEST_CASE("a closed axis of two has one link, open or not") {
  // Each link counts once for each direction.
  CHECK(ring(2, ici()).links.size() == 2);
  CHECK(mesh({2}, ici()).links.size() == 2);
  CHECK(ring(3, ici()).links.size() == 6);
  CHECK(ring(1, ici()).links.empty());
  CHECK(torus({4, 4, 8}, ici()).links.size() == 128 * 6);
  CHECK(mesh({4, 4}, ici()).links.size() == 2 * 24);  // 2 axes x 4 lines x 3 links
}

TEST_CASE("a partly wrapped torus is wrapped on its ring only") {
  const Topology t = grid({{4, 6}, {false, true}, {ici()}, {}});
  CHECK(t.links.size() == 2 * (6 * 3 + 4 * 6));  // 6 lines of 4, 4 rings of 6
  CHECK(links_of(t, 0) == 3);
  CHECK(t.steps.empty());
  CHECK_FALSE(torus({4, 6}, ici()).steps.empty());
}

TEST_CASE("a turn around a short axis of a twisted torus moves the long one half-way") {
  const Topology t = twisted_torus({4, 4, 8}, ici());
  const auto chip = [&](std::int64_t x, std::int64_t y, std::int64_t z) { return chip_at(t.grid, {x, y, z}); };
  CHECK(neighbour(t.grid, chip(3, 1, 1), 0, 1) == chip(0, 1, 5));
  CHECK(neighbour(t.grid, chip(3, 1, 6), 0, 1) == chip(0, 1, 2));
  CHECK(neighbour(t.grid, chip(0, 1, 5), 0, -1) == chip(3, 1, 1));
  CHECK(neighbour(t.grid, chip(2, 0, 0), 1, -1) == chip(2, 3, 4));
  CHECK(neighbour(t.grid, chip(2, 0, 0), 2, -1) == chip(2, 0, 7));
  const Topology u = twisted_torus({4, 8, 8}, ici());
  CHECK(neighbour(u.grid, chip_at(u.grid, {3, 1, 7}), 0, 1) == chip_at(u.grid, {0, 5, 3}));
  CHECK(slice_twist({4, 4, 4}).empty());
  CHECK(slice_twist({8, 4, 4}).empty());  // the long axis comes last
  CHECK(slice_twist({2, 2, 4}).empty());
  CHECK_THROWS_AS(twisted_torus({4, 4, 4}, ici()), InternalError);
}

TEST_CASE("a hypercube links chips whose numbers differ in one bit") {
  const Topology t = hypercube(4, ici());
  CHECK(t.chips == 16);
  CHECK(t.links.size() == 16 * 4);
  for (const Link& l : t.links) CHECK(__builtin_popcount(static_cast<unsigned>(l.from ^ l.to)) == 1);
  CHECK(hypercube(0, ici()).chips == 1);
}

TEST_CASE("the 128-chip pod has ten links a chip, 640 in all") {
  for (const auto& generators : {pod_generators_for_rings(), pod_generators_for_latency()}) {
    const Topology t = circulant(128, generators, ici());
    CHECK(t.links.size() == 2 * 640);
    CHECK(links_of(t, 77) == 10);
  }
  CHECK(circulant(16, {1, 8}, ici()).links.size() == 16 * 3);  // half of all is one link a chip
  CHECK_THROWS_AS(circulant(16, {9}, ici()), InternalError);
  CHECK_THROWS_AS(circulant(16, {1, 1}, ici()), InternalError);
}

TEST_CASE("eight MI300X have 28 links of 64 GB/s") {
  const Topology t = full_mesh();
  CHECK(t.links.size() == 2 * 28);
  CHECK(class_between(t, 7, 2).bandwidth == BytesPerSecond(64e9));
}

TEST_CASE("NVSwitch nodes and NVL72 give each chip its rate over all their switches") {
  const Topology node = star(nvswitch_node(*find_chip("h100")));
  CHECK(node.chips == 8);
  CHECK(count(node, NodeKind::switch_node) == 4);
  CHECK(class_between(node, 0, 8).bandwidth == BytesPerSecond(450e9 / 4));
  CHECK(star(nvswitch_node(*find_chip("a100-80gb"))).nodes.size() == 8 + 6);
  const Topology rack = star(nvl72(*find_chip("b200")));
  CHECK(rack.chips == 72);
  CHECK(count(rack, NodeKind::switch_node) == 18);
  CHECK(rack.links.size() == 2 * 72 * 18);
  CHECK(class_between(rack, 71, 72 + 17).bandwidth == BytesPerSecond(50e9));  // 900 GB/s / 18
  CHECK_FALSE(rack.chips_forward);
}

TEST_CASE("a PCIe tree shares one uplink between the chips of a switch") {
  const Topology t = pcie_tree();
  // 2 sockets x 2 switches x 2 chips: 8 ports, 4 uplinks, 1 link between sockets.
  CHECK(t.chips == 8);
  CHECK(count(t, NodeKind::switch_node) == 4);
  CHECK(count(t, NodeKind::host, 1) == 2);
  CHECK(t.links.size() == 2 * (8 + 4 + 1));
}

TEST_CASE("a fat tree has as many uplinks as chips, divided by the oversubscription") {
  FatTreeOptions o;
  o.hosts = 128;
  o.chips_per_leaf = 16;
  const Topology full = fat_tree(o);  // 8 leaves of 16, 16 spines with a link to each
  CHECK(count(full, NodeKind::switch_node, 0) == 8);
  CHECK(count(full, NodeKind::switch_node, 1) == 16);
  CHECK(full.links.size() == 2 * (128 + 8 * 16));
  o.oversubscription = 4;
  const Topology thin = fat_tree(o);
  CHECK(count(thin, NodeKind::switch_node, 1) == 4);
  CHECK(thin.links.size() == 2 * (128 + 8 * 4));
  o.spines = 2;  // two links to each
  CHECK(fat_tree(o).links.size() == 2 * (128 + 8 * 4));
  CHECK(count(fat_tree(o), NodeKind::switch_node, 1) == 2);
  o.spines = 3;
  CHECK_THROWS_AS(fat_tree(o), InternalError);
}

TEST_CASE("three tiers: spine j of every pod meets the others at its own cores") {
  FatTreeOptions o;
  o.hosts = 16;
  o.chips_per_leaf = 2;
  o.leaves_per_pod = 2;
  const Topology t = fat_tree(o);  // the 4-ary fat tree of Al-Fares: 8 leaves, 8 spines, 4 cores, 48 links
  CHECK(count(t, NodeKind::switch_node, 0) == 8);
  CHECK(count(t, NodeKind::switch_node, 1) == 8);
  CHECK(count(t, NodeKind::switch_node, 2) == 4);
  CHECK(t.links.size() == 2 * 48);
  o.core_oversubscription = 2;
  CHECK(count(fat_tree(o), NodeKind::switch_node, 2) == 2);
}

TEST_CASE("rails: card i of every host of a unit is at the unit's leaf i, 8 leaves for 32 hosts") {
  const Topology t = fat_tree(superpod(*find_chip("h100"), 128));
  // DGX SuperPOD of 1024 chips: 32 leaves (4 units x 8); 32 uplinks each. 128 inner switches besides.
  CHECK(t.chips == 1024);
  CHECK(count(t, NodeKind::switch_node, 0) == 128 + 32);
  const auto leaf = [&](std::int32_t chip) {
    const Adjacency out = links_from(t);
    return t
        .links[static_cast<std::size_t>(
            out.link[static_cast<std::size_t>(out.first[static_cast<std::size_t>(chip)]) + 1])]
        .to;
  };
  CHECK(leaf(3) == leaf(31 * 8 + 3));
  CHECK(leaf(3) != leaf(4));
  CHECK(leaf(3) != leaf(32 * 8 + 3));  // another unit
  CHECK(class_between(t, 3, leaf(3)).bandwidth == BytesPerSecond(50e9));
}

TEST_CASE("a dragonfly of a h + 1 groups has one global link between every two groups") {
  const Topology t = dragonfly();  // 9 groups x 4 routers x 2 chips
  CHECK(t.chips == 72);
  // Ports 72, local 9 x 6, global 9 x 8 / 2.
  CHECK(t.links.size() == 2 * (72 + 54 + 36));
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const Link& l : t.links)
    if (t.classes[static_cast<std::size_t>(l.cls)].weight == 3) pairs.push_back({(l.from - 72) / 4, (l.to - 72) / 4});
  std::sort(pairs.begin(), pairs.end());
  CHECK(pairs.size() == 72);
  CHECK(std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end());
  // 4 groups with 6 global ports each: two links a pair.
  CHECK(dragonfly({4, 3, 1, 2}).links.size() == 2 * (12 + 12 + 12));
  CHECK_THROWS_AS(dragonfly({10, 4, 2, 2}), InternalError);
}

TEST_CASE("a slice is the grid of its chip's wrap rule, with hosts of neighbouring chips") {
  DiagnosticSink sink;
  const Topology t = *slices(cluster("tpu-v5p", "4x4x8"), {}, sink);
  const Topology expected = torus({4, 4, 8}, ici());
  CHECK(t.links == expected.links);
  CHECK(t.classes == expected.classes);
  CHECK(t.steps == expected.steps);
  // A v5p host holds 2x2x1: chips (0,0,0) (0,1,0) (1,0,0) (1,1,0).
  CHECK(t.nodes[0].host == t.nodes[8 * 5].host);
  CHECK(t.nodes[0].host == t.nodes[8].host);
  CHECK(t.nodes[0].host != t.nodes[1].host);
  CHECK(std::count_if(t.nodes.begin(), t.nodes.end(), [](const Node& n) { return n.host == 5; }) == 4);
  CHECK(hosts_of({3, 3}, 4) == std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2});  // 2x2 does not divide 3x3
}

TEST_CASE("a twist of a shape without one is refused with the order that has one") {
  DiagnosticSink sink;
  CHECK(slices(cluster("tpu-v4", "4x4x8"), {true, "/cluster/topology"}, sink)->grid.twist == slice_twist({4, 4, 8}));
  CHECK_FALSE(sink.has_errors());
  CHECK_FALSE(slices(cluster("tpu-v4", "8x4x4"), {true, "/cluster/topology"}, sink).has_value());
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].pointer == "/cluster/topology");
  CHECK(sink.all()[0].suggestion == "4x4x8");
}

TEST_CASE("slices meet through each host's card, which its chips share") {
  DiagnosticSink sink;
  const Topology t = *slices(cluster("tpu-v4", "4x4x4", 2), {}, sink);
  // 2 x 64 chips, 1 network, 2 x 16 cards. ICI 2 x 64 x 3 links, 128 to cards, 32 to the network.
  CHECK(t.chips == 128);
  CHECK(count(t, NodeKind::nic) == 32);
  CHECK(t.nodes.size() == 128 + 1 + 32);
  CHECK(t.links.size() == 2 * (2 * 64 * 3 + 128 + 32));
  CHECK(class_between(t, 129, 128).bandwidth == BytesPerSecond(25e9));  // a v4 host's card
  CHECK(class_between(t, 129, 128).latency == Seconds(7.5e-6));         // half of a message's 15 us
  CHECK(class_between(t, 0, 129).bandwidth == BytesPerSecond(find_chip("tpu-v4")->pcie_rate.value));
}

TEST_CASE("the graph of a fabric has one switch per group of a switched axis") {
  const Topology t = one_of_each().back();  // 4 hosts of 8 h100: 4 host switches, 8 rails, two ports a chip
  CHECK(t.chips == 32);
  CHECK(t.nodes.size() == 32 + 12);
  CHECK(t.links.size() == 2 * 64);
  CHECK(topology_of(cluster("tpu-v5p", "4x4x8").fabric) == torus({4, 4, 8}, ici()));
  // Two v5e slices 4x4 (meshes of 24 links): a switch for each of the 16 places.
  const Topology slices_graph = topology_of(cluster("tpu-v5e", "4x4", 2).fabric);
  CHECK(slices_graph.links.size() == 2 * (2 * 24 + 32));
}

TEST_CASE("more chips or links than a topology holds are refused before memory is taken") {
  CHECK_THROWS_AS(torus({1 << 11, 1 << 11}, ici()), CapacityError);
  CHECK_THROWS_AS(full_mesh({1 << 14}), CapacityError);
  CHECK_THROWS_AS(torus(Shape(20, 4), ici()), CapacityError);
  CHECK(torus({32, 32, 64}, ici()).links.size() == 65536 * 6);
}
