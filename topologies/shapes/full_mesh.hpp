// Full mesh: a link between every two chips, as the eight MI300X of a node have over Infinity Fabric.
//
// Diameter 1; halves meet in floor(n/2) ceil(n/2) links. A pair alone gets one link of a chip's n - 1, so
// point-to-point is slow and all-to-all is perfect. A detour over a third chip is possible (and is what routes around a
// broken link do), but the shortest way is the direct link.
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// MI300X: 64 GB/s a pair and direction, 7 x 64 = 448 a chip (stas00/ml-engineering, network/README.md; measured 47.7
// GB/s all-reduce between two). Latency: no figure found; a guess, as for NVLink.
inline constexpr BytesPerSecond mi300x_link_rate{64e9};
inline constexpr Seconds mi300x_link_latency{1e-6};

struct FullMeshOptions {
  std::int64_t chips = 8;
  LinkClass link{mi300x_link_rate,    mi300x_link_latency, LinkKind::infinity_fabric,
                 fabric::Level::chip, Duplex::full,        1};
};
Topology full_mesh(const FullMeshOptions& options = {});

}  // namespace tpusim::topologies
