// Fat trees of two or three tiers with a chosen oversubscription, plain or rail-optimised.
//
// m chips hang on each leaf switch, which has m / oversubscription links up: at 1 any half of the chips reaches the
// other half at full rate (Clos networks; Al-Fares et al., SIGCOMM 2008), at r the leaves' uplinks hold n/(2r) of it.
// Plain: a host's cards all go to one leaf. Rail-optimised: card i of every host of a unit goes to the unit's leaf i,
// so that chips of equal place in their hosts are one switch apart, and others meet over the host's own switch first
// (PXN) or over a spine (NVIDIA reference architecture, rail-optimised leaf and spine; DGX H100 SuperPOD: units of 32
// hosts, 8 leaves each, 16 spines for 4 units, jax-ml/scaling-book gpus.md).
//
// Three tiers: pods of `leaves_per_pod` leaves with as many spines as a leaf has uplinks; spine j of every pod is
// linked to the same group of cores. The uplink is taken by the destination's number (D-mod-k).
//
// Bisection, two tiers with filled leaves, an even number of them, without inner switch: a leaf split a : m - a has
// min(a, m - a) flows inside and min(|m - 2a|, c) over its uplinks of c; summed over the leaves this is least when
// whole leaves are on either side, so half the chips' ports or half the leaves' uplinks, whichever is less.
//
// Ignored: adaptive routing, reductions in the network (SHARP), PCIe between chip and card (rate = the lesser of both).
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct FatTreeOptions {
  std::int64_t hosts = 128;
  std::int64_t chips_per_host = 1;
  std::int64_t chips_per_leaf = 32;
  bool rails = false;  // chips_per_leaf is then the number of hosts in a unit
  // m chips need m / oversubscription uplinks: a whole number, else rounded up.
  double oversubscription = 1;
  std::int64_t spines = 0;          // two tiers; has to divide the uplinks of a leaf; 0: as many as those
  std::int64_t leaves_per_pod = 0;  // not 0: three tiers
  double core_oversubscription = 1;
  // Chips of a host share a switch with these ports (NVSwitch); without it they meet over the network.
  std::optional<LinkClass> inner;
  bool chips_forward = false;  // PXN: a chip passes on what its neighbour on the inner switch sends over its card
  // 400 Gb/s a port; a switch is 0.6 us (HDR; stas00/ml-engineering network/README.md), half of it on either link.
  LinkClass card{BytesPerSecond(50e9), Seconds(0.3e-6), LinkKind::nic, fabric::Level::host, Duplex::full, 2};
  LinkClass trunk{BytesPerSecond(50e9), Seconds(0.3e-6), LinkKind::network, fabric::Level::host, Duplex::full, 2};
};
// InternalError for options without a network: sizes below 1, oversubscription below 1, spines that do not divide.
Topology fat_tree(const FatTreeOptions& options);

// Hosts of `chip` as DGX SuperPODs are wired: rails, units of 32 hosts, inner switch, PXN.
FatTreeOptions superpod(const Chip& chip, std::int64_t hosts);

}  // namespace tpusim::topologies
