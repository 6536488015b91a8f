// What a uniform all-to-all does to the links: every chip sends one unit to every other, over shortest ways.
//
// The load of a link is the number of ordered pairs of chips over it, where a pair's unit is shared evenly at each node
// over the links that begin a shortest way (Dally and Towles 2004, section 3.3: channel load). The heaviest link
// relative to its bandwidth sets the time of the all-to-all, T = max over links of load / bandwidth per byte and pair;
// and no half of the chips can be cut off with less bandwidth than floor(n/2) ceil(n/2) / T, because that many units
// have to cross (Leighton, Introduction to Parallel Algorithms and Architectures, 1992, section 1.9: the embedding
// bound).
//
// Grids with dimension-ordered routes: closed forms; an even ring of X loads each of its links with N X/8 pairs, an odd
// one with N (X^2 - 1)/(8 X), a line its middle ones with N/X floor(X/2) ceil(X/2). Topologies with steps: from one
// chip. Others: one search a chip.
#pragma once

#include <string>
#include <vector>

#include "topologies/routes.hpp"

namespace tpusim::topologies {

// Load of each link, even-split. O(chips x links), one search for topologies with steps.
std::vector<double> even_split_loads(const Routes& routes);

struct AllToAll {
  bool known = false;           // false: more work than `budget`, or chips that cannot reach each other
  double seconds_per_byte = 0;  // when every chip sends one byte to every other
  std::string how;
};
// budget: chips x links that may be visited.
AllToAll all_to_all(const Topology& topology, std::int64_t budget);

}  // namespace tpusim::topologies
