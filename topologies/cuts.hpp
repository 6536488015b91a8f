// Bisection bandwidth: the least bandwidth, in one direction, between two halves of the chips.
//
// Over all balanced halves A, B (|A| = floor(n/2)): the maximum flow from A to B, which by max-flow min-cut is the
// least bandwidth of links whose removal parts them, switches going to whichever side is cheaper. To find the least is
// NP-hard (Garey, Johnson and Stockmeyer 1976), so that the answer is two bounds and how they were found:
//   upper: the best halves found. Without switches a cut is a sum; halves are runs of chips in the order of every order
//     of the axes, and of a search from chip 0; on at most 1024 chips improved by Kernighan and Lin's exchange (Bell
//     System Technical Journal 1970), from these and from seeded random halves. With switches a flow decides: halves by
//     number, by place in the host, and by a search from chip 0, the best of them improved by up to 1000 seeded
//     exchanges.
//   lower: the embedding bound of an all-to-all (loads.hpp); and for topologies with steps the spectral bound: halves
//     are joined by at least lambda_2 |A| |B| / n, lambda_2 being the second smallest eigenvalue of the Laplacian
//     (Fiedler 1973), here from the group's characters. The larger counts.
// They are equal for tori and meshes with an even longest axis, hypercubes and full meshes; a builder's closed form
// (stars, fat trees) is both.
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct Bisection {
  BytesPerSecond lower, upper;  // one direction; lower 0 where unknown
  std::string lower_how, upper_how;
  bool exact() const { return lower == upper; }
  std::vector<bool> half;  // the best halves found, one entry a chip; empty for a closed form
  std::int64_t links = 0;  // cables that they cut, without switches; else 0
};
// budget: chips x links that the bounds may visit. Deterministic.
Bisection bisection(const Topology& topology, std::int64_t budget);

// Bandwidth from the chips with `half` to those without, or the other way if that is less.
BytesPerSecond between_halves(const Topology& topology, const std::vector<bool>& half);

// The spectral lower bound; 0 for topologies without steps.
BytesPerSecond spectral_bound(const Topology& topology);

}  // namespace tpusim::topologies
