#include "topologies/routes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "topologies/shapes/circulant.hpp"
#include "topologies/shapes/dragonfly.hpp"
#include "topologies/shapes/fat_tree.hpp"
#include "topologies/shapes/full_mesh.hpp"
#include "topologies/shapes/grid.hpp"
#include "topologies/shapes/star.hpp"
#include "topology_support.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

namespace {

std::vector<std::int32_t> nodes_on(const Topology& t, const Route& route) {
  std::vector<std::int32_t> nodes;
  for (std::int32_t link : route.links) nodes.push_back(t.links[static_cast<std::size_t>(link)].to);
  return nodes;
}

std::vector<std::int32_t> both_ways(const Topology& t, std::int32_t link) {
  return {link, t.links[static_cast<std::size_t>(link)].twin};
}

std::set<std::int64_t> distinct(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("routes between all pairs of every topology are legal and of least weight") {
  for (const Topology& t : one_of_each()) CHECK(fault_in_routes(t) == "");
}

TEST_CASE("routes of every topology go around a broken link, or say that there is no way") {
  for (const Topology& t : one_of_each()) {
    if (t.links.empty()) continue;
    for (std::size_t link : {std::size_t{0}, t.links.size() / 2, t.links.size() - 1})
      CHECK(fault_in_routes(t, both_ways(t, static_cast<std::int32_t>(link))) == "");
  }
}

TEST_CASE("a torus is crossed axis by axis, the shorter way round") {
  const Topology t = torus({4, 6}, ici());
  // (0,0) to (3,2): down on x, then up twice on y: (3,0) (3,1) (3,2).
  CHECK(nodes_on(t, Routes(t).between(0, 3 * 6 + 2)) == std::vector<std::int32_t>{18, 19, 20});
  CHECK(Routes(t).between(5, 5).links.empty());
  CHECK(Routes(t).between(5, 5).verdict.feasible);
}

TEST_CASE("half-way round, the sum of the coordinates chooses the direction") {
  const Topology t = torus({4, 4}, ici());
  // (0,0) to (2,0): 0 + 0 + 0 is even, so up by (1,0).
  CHECK(nodes_on(t, Routes(t).between(0, 8)) == std::vector<std::int32_t>{4, 8});
  // (1,0) to (3,0): 1 is odd, so down by (0,0).
  CHECK(nodes_on(t, Routes(t).between(4, 12)) == std::vector<std::int32_t>{0, 12});
}

TEST_CASE("an all-to-all loads all links of a torus with two equal even sides equally") {
  // 16 chips x 15 x mean: each chip's hops sum to 16 x (1 + 1) = 32, over 4 links: 16 x 32 / 64 = 8 pairs a link.
  const Topology four = torus({4, 4}, ici());
  CHECK(distinct(route_loads(Routes(four))) == std::set<std::int64_t>{8});
  // 6x6: 36 x (1.5 + 1.5) = 108 hops a chip over 4 links: 27. 6/2 is odd, and the other axis even.
  const Topology six = torus({6, 6}, ici());
  CHECK(distinct(route_loads(Routes(six))) == std::set<std::int64_t>{27});
  // A hypercube of d dimensions: each chip crosses n/2 links of each dimension.
  const Topology cube = hypercube(5, ici());
  CHECK(distinct(route_loads(Routes(cube))) == std::set<std::int64_t>{16});
}

TEST_CASE("in a fat tree without oversubscription a shift takes no link twice") {
  FatTreeOptions o;
  o.hosts = 16;
  o.chips_per_leaf = 4;
  FatTreeOptions tall = o;
  tall.chips_per_leaf = 2;
  tall.leaves_per_pod = 2;
  for (const FatTreeOptions& options : {o, tall}) {
    const Topology t = fat_tree(options);
    const Routes routes(t);
    for (std::int32_t shift = 1; shift < 16; ++shift) {
      std::set<std::int32_t> used;
      std::size_t crossed = 0;
      for (std::int32_t from = 0; from < 16; ++from)
        for (std::int32_t link : routes.between(from, (from + shift) % 16).links) {
          used.insert(link);
          ++crossed;
        }
      CAPTURE(shift);
      CHECK(used.size() == crossed);
    }
  }
}

TEST_CASE("rails: equal places are one switch apart, and others meet on the host's own switch first") {
  const Topology t = one_of_each()[18];
  REQUIRE(t.name == "rail-optimised fat tree of 16 chips, 2 a leaf, oversubscription 1");
  const Routes routes(t);
  CHECK(routes.between(1, 5).links.size() == 2);  // host 0 to host 1, place 1
  CHECK(routes.between(1, 2).links.size() == 2);  // within the host
  CHECK(routes.between(1, 6).links.size() == 4);  // over a neighbour chip
  CHECK(routes.between(1, 9).links.size() == 4);  // another unit: leaf, spine, leaf
  const std::vector<std::int32_t> over = nodes_on(t, routes.between(1, 6));
  CHECK(std::count_if(over.begin(), over.end(), [](std::int32_t v) { return v < 16; }) == 2);  // it and the end
}

TEST_CASE("minimal routes of a dragonfly take one global link between groups, none inside") {
  const Topology t = dragonfly();
  const Routes routes(t);
  for (std::int32_t to = 0; to < 72; ++to) {
    const std::vector<Route> all = routes.towards(to);
    for (std::int32_t from = 0; from < 72; ++from) {
      std::int64_t globals = 0;
      for (std::int32_t link : all[static_cast<std::size_t>(from)].links)
        globals += t.classes[static_cast<std::size_t>(t.links[static_cast<std::size_t>(link)].cls)].weight == 3;
      REQUIRE(globals == (from / 8 == to / 8 ? 0 : 1));
      REQUIRE(all[static_cast<std::size_t>(from)].links.size() <= 5);
    }
  }
}

TEST_CASE("chips of one slice use ICI however far apart, chips of two slices their cards") {
  const Topology t = one_of_each()[21];
  REQUIRE(t.name == "2 slices of tpu-v5e 4x4");
  const Routes routes(t);
  CHECK(routes.between(0, 15).links.size() == 6);  // 3 + 3 on the mesh, not 4 over the cards
  CHECK(routes.between(0, 16).links.size() == 4);  // card, network, card
  CHECK(routes.between(3, 28).links.size() == 4);
}

TEST_CASE("a hash spreads pairs over equal ways, and each pair keeps its own") {
  StarOptions o;
  o.chips = 8;
  o.switches = 4;
  o.chip_rate = BytesPerSecond(400e9);
  const Topology t = star(o);
  const std::vector<std::int64_t> load = route_loads(Routes(t));
  // 56 pairs over 4 switches: 14 on average; a binomial's two standard deviations below are 14 - 2 x 3.2.
  std::vector<std::int64_t> into(4, 0);
  for (std::size_t i = 0; i < load.size(); ++i)
    if (t.links[i].to >= 8) into[static_cast<std::size_t>(t.links[i].to) - 8] += load[i];
  CHECK(into[0] + into[1] + into[2] + into[3] == 56);
  for (std::int64_t pairs : into) CHECK(pairs >= 8);
  CHECK(load == route_loads(Routes(t)));
}

TEST_CASE("one broken direction is avoided, the other still used") {
  const Topology t = ring(4, ici());
  const std::int32_t up = Routes(t).between(0, 1).links.at(0);
  const Routes routes(t, {up});
  CHECK(nodes_on(t, routes.between(0, 1)) == std::vector<std::int32_t>{3, 2, 1});
  CHECK(nodes_on(t, routes.between(1, 0)) == std::vector<std::int32_t>{0});
}

TEST_CASE("a pair without a way is a verdict that names both") {
  const Topology t = mesh({2, 2}, ici());
  const Routes routes(t, {0, 1, 2, 3, 4, 5, 6, 7});
  const Route route = routes.between(0, 3);
  CHECK_FALSE(route.verdict.feasible);
  CHECK(route.verdict.reason == "unreachable");
  CHECK(route.verdict.needed == "a way from chip 0 (0,0) to chip 3 (1,1)");
  CHECK(route.links.empty());
}

TEST_CASE("a chip that does not forward is no short cut between two switches") {
  // a - s, b - s, b - t, c - t, and the long way s - u - v - t. Over b a reaches c in 4 links, over u and v in 5.
  Topology t;
  add_chips(t, 3);
  const std::int32_t cls = add_class(t, ici());
  for (int i = 0; i < 4; ++i) add_node(t, {NodeKind::switch_node, 0, -1, -1});
  for (const auto& [a, b] : {std::pair(0, 3), std::pair(1, 3), std::pair(1, 6), std::pair(2, 6), std::pair(3, 4),
                             std::pair(4, 5), std::pair(5, 6)})
    add_link(t, a, b, cls);
  CHECK(nodes_on(t, Routes(t).between(0, 2)) == std::vector<std::int32_t>{3, 1, 6, 2});
  t.chips_forward = false;
  CHECK(nodes_on(t, Routes(t).between(0, 2)) == std::vector<std::int32_t>{3, 4, 5, 6, 2});
  CHECK(fault_in_routes(t) == "");
  t.classes[0].weight = 2;  // by Dijkstra's algorithm instead
  CHECK(fault_in_routes(t) == "");
}

TEST_CASE("of two equally short ways, the one over a chip that does not forward is none") {
  // 0 - 1 - 2 over chip 1, 0 - s - 2 over a switch.
  Topology t;
  add_chips(t, 3);
  const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, -1, -1}), cls = add_class(t, ici());
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(1, 2), std::pair(0, center), std::pair(2, center)})
    add_link(t, a, b, cls);
  std::vector<std::int32_t> next;
  Routes(t).next_links(0, 2, Routes(t).distances(2), next);
  CHECK(next == std::vector<std::int32_t>{0, 4});
  t.chips_forward = false;
  Routes(t).next_links(0, 2, Routes(t).distances(2), next);
  CHECK(next == std::vector<std::int32_t>{4});
}

TEST_CASE("parallel links are both used") {
  Topology t;
  add_chips(t, 2);
  const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, -1, -1});
  const std::int32_t cls = add_class(t, ici());
  for (std::int32_t chip : {0, 0, 1, 1}) add_link(t, chip, center, cls);
  t.chips_forward = false;
  const Routes routes(t);
  std::vector<std::int32_t> next;
  routes.next_links(0, 1, routes.distances(1), next);
  CHECK(next == std::vector<std::int32_t>{0, 2});
  const Routes one(t, {0});
  CHECK(one.between(0, 1).links.at(0) == 2);
}
