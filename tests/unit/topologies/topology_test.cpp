#include "topologies/topology.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "sim/base/check.hpp"
#include "topologies/shapes/grid.hpp"
#include "topology_support.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

TEST_CASE("each rule of a topology, broken once, is an InternalError") {
  const Topology whole = torus({3, 4}, ici());
  CHECK_NOTHROW(verify(whole));
  const std::vector<std::pair<const char*, std::function<void(Topology&)>>> faults = {
      {"no chips", [](Topology& t) { t.chips = 0; }},
      {"a chip that is a switch", [](Topology& t) { t.nodes[3].kind = NodeKind::switch_node; }},
      {"a chip after the chips", [](Topology& t) { t.nodes.push_back({}); }},
      {"too few names", [](Topology& t) { t.names = {"a"}; }},
      {"an end out of range", [](Topology& t) { t.links[5].to = 12; }},
      {"a self-loop", [](Topology& t) { t.links[5].to = t.links[5].from; }},
      {"no class", [](Topology& t) { t.links[5].cls = 1; }},
      {"a twin that is another's", [](Topology& t) { t.links[5].twin = 0; }},
      {"a twin out of range", [](Topology& t) { t.links[5].twin = 48; }},
      {"zero bandwidth", [](Topology& t) { t.classes[0].bandwidth = BytesPerSecond(0); }},
      {"infinite bandwidth", [](Topology& t) { t.classes[0].bandwidth = BytesPerSecond(INFINITY); }},
      {"a negative latency", [](Topology& t) { t.classes[0].latency = Seconds(-1e-9); }},
      {"no weight", [](Topology& t) { t.classes[0].weight = 0; }},
      {"a grid of other size",
       [](Topology& t) {
         t.grid.shape = {3, 5};
       }},
      {"no axes to order", [](Topology& t) { t.grid.axis_class.clear(); }},
      {"steps that do not fit the links", [](Topology& t) { t.steps.pop_back(); }},
  };
  for (const auto& fault : faults) {
    CAPTURE(fault.first);
    Topology t = whole;
    fault.second(t);
    CHECK_THROWS_AS(verify(t), InternalError);
  }
  Topology ideal = whole;  // zero latency is an ideal network
  ideal.classes[0].latency = Seconds(0);
  CHECK_NOTHROW(verify(ideal));
}

TEST_CASE("chips are numbered row-major, the last axis minor, and named by number and place") {
  const Topology t = torus({3, 4, 5}, ici());
  CHECK(coordinate_of(t.grid, 0) == Shape{0, 0, 0});
  CHECK(coordinate_of(t.grid, 2 * 20 + 3 * 5 + 4) == Shape{2, 3, 4});
  for (std::int64_t c = 0; c < t.chips; ++c) CHECK(chip_at(t.grid, coordinate_of(t.grid, c)) == c);
  CHECK(node_name(t, 59) == "chip 59 (2,3,4)");
  CHECK(node_name(ring(4, ici()), 3) == "chip 3");
  CHECK(neighbour(mesh({3}, ici()).grid, 2, 0, 1) == -1);
  CHECK(neighbour(ring(3, ici()).grid, 2, 0, 1) == 0);
}

TEST_CASE("a step up and then down an axis leads back, around every twist") {
  for (const Topology& t : {twisted_torus({4, 4, 8}, ici()), twisted_torus({4, 8, 8}, ici()), torus({2, 3, 4}, ici())})
    for (std::int64_t c = 0; c < t.chips; ++c)
      for (std::size_t axis = 0; axis < 3; ++axis)
        CHECK(neighbour(t.grid, neighbour(t.grid, c, axis, 1), axis, -1) == c);
}

TEST_CASE("links of a node are listed in ascending order, both ways") {
  for (const Topology& t : one_of_each()) {
    CAPTURE(t.name);
    const Adjacency out = links_from(t), in = links_into(t);
    REQUIRE(out.link.size() == t.links.size());
    REQUIRE(in.link.size() == t.links.size());
    bool right = true;
    for (std::size_t v = 0; v < t.nodes.size(); ++v)
      for (const auto& [a, end] : {std::pair(&out, &Link::from), std::pair(&in, &Link::to)})
        for (std::int32_t k = a->first[v]; k < a->first[v + 1]; ++k) {
          const std::int32_t link = a->link[static_cast<std::size_t>(k)];
          right = right && t.links[static_cast<std::size_t>(link)].*end == static_cast<std::int32_t>(v);
          right = right && (k == a->first[v] || a->link[static_cast<std::size_t>(k) - 1] < link);
        }
    CHECK(right);
  }
}

TEST_CASE("equal kinds of link are one class") {
  Topology t;
  add_chips(t, 2);
  LinkClass other = ici();
  other.weight = 2;
  CHECK(add_class(t, ici()) == 0);
  CHECK(add_class(t, other) == 1);
  CHECK(add_class(t, ici()) == 0);
  CHECK_THROWS_AS(add_chips(t, 2), InternalError);
}

TEST_CASE("both directions of a half-duplex link have half of it, a one-way link all") {
  Topology t;
  add_chips(t, 2);
  LinkClass half = ici();
  half.duplex = Duplex::half;
  add_link(t, 0, 1, add_class(t, half));
  add_link(t, 0, 1, add_class(t, ici()));
  add_one_way(t, 0, 1, add_class(t, half));
  CHECK(share_of(t, t.links[0]) == BytesPerSecond(45e9));
  CHECK(share_of(t, t.links[1]) == BytesPerSecond(45e9));
  CHECK(share_of(t, t.links[2]) == BytesPerSecond(90e9));
  CHECK(share_of(t, t.links[4]) == BytesPerSecond(90e9));
}
