// A TPU slice, or several joined by the data-centre network (DCN) through each host's network card.
//
// Inside a slice: the grid of the generation's wrap rule (builders.hpp), twisted on request where the shape allows it.
// Between slices: chip - PCIe - its host's card - DCN (cards.hpp), where four v5p chips share 25 GB/s. The way over the
// card weighs more than any way inside a slice, so that chips of one slice use ICI.
//
// Hosts hold blocks of 2x2 or 4x2 neighbouring chips where the shape divides by them, else consecutive chips.
//
// Sources: the chip's card. Ignored: what the DCN's own tiers hold back.
#pragma once

#include "topologies/builders.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct SliceOptions {
  bool twisted = false;  // k x k x 2k and k x 2k x 2k, in this order of the axes; else a diagnostic
  std::string pointer = "/cluster/topology";
};
// The cluster has to be of slices (ClusterKind::slices). Rates are the cluster's, efficiencies included. nullopt after
// an error; CapacityError beyond a topology's bounds.
std::optional<Topology> slices(const Cluster& cluster, const SliceOptions& options, DiagnosticSink& sink);

// What PCIe weighs on a way between two chips: more than any way inside a slice of this shape.
std::int32_t slice_detour(const Shape& shape);

// Which host of a slice holds each chip.
std::vector<std::int32_t> hosts_of(const Shape& shape, std::int64_t chips_per_host);

// The graph of any Fabric: neighbour links for ring and line axes, one switch for each group of a switched axis. Chips
// forward, because a Fabric does not say whether they do.
Topology topology_of(const fabric::Fabric& fabric);

}  // namespace tpusim::topologies
