// Kernighan and Lin's exchange of pairs between two halves. Private to cuts.cpp.
#pragma once

#include <vector>

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// Improves balanced halves of a topology of chips alone until a pass of exchanges gains nothing. O(n^2) a pass.
std::vector<bool> exchange_pairs(const Topology& topology, const Adjacency& out, std::vector<bool> half);

}  // namespace tpusim::topologies
