// Edge-disjoint rings: how many rings through all chips can run at once without sharing a link, as a ring all-reduce on
// every port needs.
//
// Between chips: Hamiltonian cycles, no cable in two of them (each cable serves its ring in both directions); at most
// floor(d/2) for the least degree d. The links of a circulant's generator coprime with n are one; the product of rings
// (torus) splits into as many as it has axes (Kotzig 1973 for two axes, Aubert and Schneider 1982 for three), a
// hypercube of d dimensions into floor(d/2) (Alspach, Bermond and Sotteau 1990). Those proofs are long case analyses;
// here they are found, not copied: the links are coloured so that every colour is a set of cycles through all chips (an
// axis, a generator, or two generators of half the chips), and two colours are exchanged on squares v, v+g, v+g+h, v+h
// whose opposite sides have equal colours, which joins cycles, until each colour is one cycle or the budget is spent.
// Deterministic (seeded). A mesh with an even number of chips has the comb.
//
// Through switches: chips in the order of their numbers, by the routes; a ring counts when no link is in it twice, and
// one direction of each link is enough for it.
//
// Every ring between chips is checked link by link before it is returned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct Rings {
  std::vector<std::vector<std::int32_t>> rings;  // chips in order, each once; the last is next to the first
  std::int64_t at_most = 0;                      // what degrees allow
  std::string how;
};
// budget: chips that the search may visit.
Rings edge_disjoint_rings(const Topology& topology, std::int64_t budget);

// Whether each ring holds every chip once, neighbours are linked, and no cable is in two rings or twice in one.
bool are_edge_disjoint_rings(const Topology& topology, const std::vector<std::vector<std::int32_t>>& rings);

}  // namespace tpusim::topologies
