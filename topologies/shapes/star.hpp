// One stage of switches: every chip has a port on each of them. Single-switch star, NVSwitch node, NVL72.
//
// The switches are non-blocking, so that only ports limit: any half sends to the other half at the full rate of its
// ports, and the bisection is floor(n/2) ports. With s switches a chip's rate is spread over s links and each pair has
// s ways; a hash takes one of them for a whole transfer, where the machine stripes it over all (so a single transfer
// should be planned with the sum, as the Fabric does).
//
// Ignored: reductions inside the switch (NVLS), uneven shares of links (an H100 has 5, 4, 4 and 5 links to its four
// switches; here a quarter each).
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct StarOptions {
  std::int64_t chips = 8;
  std::int64_t switches = 1;
  BytesPerSecond chip_rate;  // one direction, all switches together
  Seconds latency;           // of a message, from chip to chip
  LinkKind kind = LinkKind::network;
  fabric::Level level = fabric::Level::chip;
};
Topology star(const StarOptions& options);

// NVSwitch nodes with the rates of the chip's card: four switches on Hopper, two on Blackwell, six before. Sources:
// stas00/ml-engineering network/README.md and the vendors' HGX data sheets, recalled (confidence: guess) for B200.
StarOptions nvswitch_node(const Chip& chip);
// 72 Blackwell chips on 18 switches, 900 GB/s a chip and direction (NVLink 5: 18 links of 50 GB/s, one to each switch;
// jax-ml/scaling-book gpus.md); latency as the b200 card's message through one switch.
StarOptions nvl72(const Chip& b200);

}  // namespace tpusim::topologies
