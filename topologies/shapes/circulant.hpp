// Circulant networks: chip i is linked to i + s and i - s for each generator s, modulo the number of chips.
//
// They have low diameter at a freely chosen degree: with 10 links a chip no network reaches 128 chips in two hops
// (Moore bound 1 + 10 + 90 = 101), and C128(1,21,29,34,45) does it in three. A generator coprime with the number of
// chips is a ring through all of them, so k such generators carry k edge-disjoint rings (Boesch and Tindell, Circulants
// and their connectivities, J. Graph Theory 1984).
//
// Routes are shortest paths, spread by a hash. Ignored: cable lengths.
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// Generators from 1 to chips/2, each once; chips/2 itself is one link a chip. InternalError for others.
Topology circulant(std::int64_t chips, const std::vector<std::int64_t>& generators, const LinkClass& link);

// The 128-chip pod with 10 links a chip. All-odd generators give five edge-disjoint rings. Source: our own search over
// circulants of that degree.
std::vector<std::int64_t> pod_generators_for_rings();    // 1 5 17 25 57: diameter 4
std::vector<std::int64_t> pod_generators_for_latency();  // 1 21 29 34 45: diameter 3

}  // namespace tpusim::topologies
