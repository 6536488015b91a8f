// What a topology is like, in numbers: chips, links, degree, diameter, mean hops, bisection, rings, and what
// collectives cost at least.
//
// Hops are the links of a route of least weight (routes.hpp). Bounds on collectives of V bytes on n chips, each of
// which can send I bytes a second (the links out of it together) and whose halves are joined by at most B:
//   all-gather, reduce-scatter of V in all: every chip gets V (n-1)/n, and half of V crosses: max(V (n-1)/(n I),
//   V/(2B)); all-reduce of V: both, without reduction inside switches; all-to-all, V on each chip: max(V (n-1)/(n I), n
//   V/(4B)); over shortest ways V/n times the load (loads.hpp).
// and none is quicker than a message across the diameter. Source: Chan, Heimlich, Purkayastha and van de Geijn,
// Collective communication: theory, practice, and experience, 2007 (bounds by injection); by crossing: own derivation.
// What a collective of a plan takes is the planner's to say (sim/plan); this is what no plan can beat.
#pragma once

#include <string>
#include <vector>

#include "topologies/cuts.hpp"
#include "topologies/loads.hpp"
#include "topologies/rings.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct Distances {
  bool connected = true;                        // every chip reaches every other (of those looked at)
  std::int32_t apart_from = -1, apart_to = -1;  // the first pair without a way, where not connected
  bool exact = true;                            // false: a sample of chips; diameter is then "at least"
  std::int64_t diameter = 0;                    // links
  double mean_hops = 0;                         // over ordered pairs of different chips that reach each other
  std::string how;
};
// budget: chips x links that may be visited; beyond it a seeded sample of chips.
Distances distances(const Topology& topology, std::int64_t budget);

struct CollectiveBound {
  std::string collective;         // "all-gather", "reduce-scatter", "all-reduce", "all-to-all"
  double seconds_per_byte = 0;    // lower bound, a byte of V
  double over_shortest_ways = 0;  // all-to-all: reached by routes of least weight, evenly spread; else 0
  Seconds latency;                // lower bound
};

struct Metrics {
  std::int64_t chips = 0, switches = 0, cards = 0, hosts = 0;  // hosts: different hosts of chips; 0 where none is named
  std::int64_t links = 0;                                      // cables; a one-way link counts as one
  std::int64_t min_degree = 0, max_degree = 0;                 // links out of a chip
  BytesPerSecond injection;                                    // the least that a chip can send
  Distances distances;
  Bisection bisection;
  Rings rings;
  AllToAll all_to_all;
  std::vector<CollectiveBound> collectives;  // empty where not connected
};
// The default budget takes seconds: 4096 chips with 6 links each are searched from every chip.
inline constexpr std::int64_t default_budget = 500'000'000;
Metrics measure(const Topology& topology, std::int64_t budget = default_budget);

}  // namespace tpusim::topologies
