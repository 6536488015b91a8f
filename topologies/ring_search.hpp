// The exchange of colours on squares. Private to rings.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// For a topology with steps: sets of cycles of the links, one a pair of steps, joined as far as the budget (chips
// visited) goes. Returns the colours that became a single cycle.
std::vector<std::vector<std::int32_t>> join_cycles(const Topology& topology, std::int64_t budget);

}  // namespace tpusim::topologies
