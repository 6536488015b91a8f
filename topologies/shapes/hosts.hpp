// Hosts of chips on a switch (NVSwitch), joined by network cards: the graph of a cluster of GPUs or CPUs.
//
// All switches of a host are one node with the chip's whole rate, because the machine stripes a transfer over them;
// star.hpp has them apart. Between hosts: cards.hpp. Chips do not forward: what a chip sends to another host goes over
// its own card. A host of one chip has no switch.
//
// Ignored: the tiers of the network between hosts (fat_tree.hpp has them), rails, PXN. Sources: the chip's card.
#pragma once

#include "topologies/builders.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

// The cluster has to be of hosts (ClusterKind::hosts). Rates are the cluster's, efficiencies included. CapacityError
// beyond a topology's bounds.
Topology hosts(const Cluster& cluster);

// What PCIe weighs on a way between two chips: over the card is farther than over the switch.
inline constexpr std::int32_t host_detour = 2;

}  // namespace tpusim::topologies
