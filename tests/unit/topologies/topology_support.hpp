// One small topology of every family, and the check that its routes are legal.
#pragma once

#include <string>
#include <vector>

#include "topologies/routes.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

inline LinkClass ici() {
  return {BytesPerSecond(90e9), Seconds(1e-6), LinkKind::ici, fabric::Level::chip, Duplex::full, 1};
}

std::vector<Topology> one_of_each();

// Why the routes between all pairs of chips are not legal; empty when they are: each hop is a link that is not broken
// and starts where the last one ended, the last ends at the destination, no node is met twice, only the ends are chips
// where chips do not forward, and the weight is the least (by Floyd and Warshall's algorithm, which shares nothing with
// the
std::string fault_in_routes(const Topology& topology, const std::vector<std::int32_t>& broken = {});

}  // namespace tpusim::topologies
