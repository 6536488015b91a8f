#include "topologies/graph.hpp"

#include <doctest/doctest.h>

#include "sim/base/check.hpp"
#include "topologies/builders.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

namespace {
const BytesPerSecond kRate(90e9);
const Seconds kHop(1e-6);
}  // namespace

TEST_CASE("a 4x4x8 torus has three links per chip and a diameter of half its sides") {
  const TopologySummary s = summarize(grid({4, 4, 8}, {true, true, true}, kRate, kHop));
  // Links: 3 per chip (each chip owns its + links) = 384. Diameter 2 + 2 + 4 = 8. Mean over ordered pairs of different
  // chips: an even ring of n has mean distance n/4 over all pairs, so (1 + 1 + 2) x 128/127 = 4.0315.
  const TopologySummary expected{128, 0, 384, true, 8, 4.0 * 128 / 127, 6, 6};
  CHECK(s.mean_hops == doctest::Approx(expected.mean_hops).epsilon(1e-12));
  CHECK(s.links == expected.links);
  CHECK(s.diameter_hops == expected.diameter_hops);
  CHECK(s.connected);
  CHECK(s.switches == 0);
  CHECK(s.min_degree == 6);
  CHECK(s.max_degree == 6);
}

TEST_CASE("a 4x4 mesh has 2*4*3 links and a diameter of 3+3") {
  const TopologySummary s = summarize(grid({4, 4}, {false, false}, kRate, kHop));
  CHECK(s.links == 24);
  CHECK(s.diameter_hops == 6);
  CHECK(s.min_degree == 2);
  CHECK(s.max_degree == 4);
  // Mean distance on a line of n over all ordered pairs: (n^2-1)/(3n) = 1.25; two axes 2.5, x 16/15 for different
  // chips.
  CHECK(s.mean_hops == doctest::Approx(2.5 * 16 / 15).epsilon(1e-12));
}

TEST_CASE("a closed axis of two has one link") {
  CHECK(grid({2}, {true}, kRate, kHop).edges.size() == 1);
  CHECK(grid({3}, {true}, kRate, kHop).edges.size() == 3);
  CHECK(grid({1}, {true}, kRate, kHop).edges.empty());
}

TEST_CASE("the graph of a slice is the grid of its axes") {
  ClusterRequest request;
  request.chip = *find_chip("tpu-v5p");
  request.slice_shape = {4, 4, 8};
  DiagnosticSink sink;
  const Cluster cluster = *build(request, sink);
  CHECK(topology_of(cluster.fabric) == grid({4, 4, 8}, {true, true, true}, kRate, kHop));
}

TEST_CASE("GPU hosts: one switch per host and one network switch per rail") {
  ClusterRequest request;
  request.chip = *find_chip("h100");
  request.hosts = 4;
  DiagnosticSink sink;
  const TopologySummary s = summarize(topology_of(build(request, sink)->fabric));
  // 32 chips; 4 host switches and 8 rails (card i of every host); every chip has one port on each: 64 links.
  // Same host or same rail: 2 links; else through both: 4.
  CHECK(s.chips == 32);
  CHECK(s.switches == 12);
  CHECK(s.links == 64);
  CHECK(s.connected);
  CHECK(s.diameter_hops == 4);
  CHECK(s.min_degree == 2);
  // A chip reaches 7 + 3 others in 2 links and 21 in 4: (20 + 84)/31.
  CHECK(s.mean_hops == doctest::Approx(104.0 / 31).epsilon(1e-12));
}

TEST_CASE("two slices are joined by the network of their cards") {
  ClusterRequest request;
  request.chip = *find_chip("tpu-v5e");
  request.slice_shape = {4, 4};
  request.slices = 2;
  DiagnosticSink sink;
  const TopologySummary s = summarize(topology_of(build(request, sink)->fabric));
  CHECK(s.chips == 32);
  CHECK(s.switches == 16);            // one per pair of equal places in the slices
  CHECK(s.links == 2 * 24 + 2 * 16);  // two meshes, and one port per chip
  CHECK(s.diameter_hops == 6 + 2);    // corner to corner and across
}

TEST_CASE("a shortest path prefers low node numbers and is as long as the distance") {
  const Topology t = grid({4, 4}, {true, true}, kRate, kHop);
  CHECK(shortest_path(t, 0, 0).empty());
  const std::vector<std::int32_t> path = shortest_path(t, 0, 5);  // (0,0) to (1,1) by way of chip 1
  REQUIRE(path.size() == 2);
  const Edge& first = t.edges[static_cast<std::size_t>(path[0])];
  CHECK(std::pair(first.a, first.b) == std::pair(0, 1));
  CHECK(shortest_path(t, 0, 10).size() == 4);
}

TEST_CASE("an explicit graph of more than 4096 chips is refused") {
  CHECK(summarize(grid({4096}, {true}, kRate, kHop)).diameter_hops == 2048);
  CHECK_THROWS_AS(grid({64, 65}, {true, true}, kRate, kHop), CapacityError);
}
