// A host whose chips hang on PCIe switches: chips - switch - root complex, and the sockets' link between two roots.
//
// Chips of one switch talk at their own rate; all that leaves a switch shares its uplink, all that changes socket
// shares the sockets' link. The tree has one way between any two chips, so the lowest shared link is the limit: with c
// chips a switch, an all-to-all inside a socket is c times slower than the ports.
//
// Ignored: the smaller payload of peer-to-peer through a root complex, memory traffic on the same links.
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// PCIe 5.0 x16: 63 GB/s a direction (stas00/ml-engineering, network/README.md; 55 measured). The latencies and the rate
// between sockets (three xGMI or UPI links of about 32 GB/s) are guesses.
inline constexpr BytesPerSecond pcie5_x16{63e9};

struct PcieTreeOptions {
  std::int64_t sockets = 2;
  std::int64_t switches_per_socket = 2;
  std::int64_t chips_per_switch = 2;
  LinkClass port{pcie5_x16, Seconds(0.5e-6), LinkKind::pcie, fabric::Level::chip, Duplex::full, 1};
  LinkClass uplink{pcie5_x16, Seconds(0.5e-6), LinkKind::pcie, fabric::Level::chip, Duplex::full, 1};
  LinkClass between_sockets{BytesPerSecond(96e9), Seconds(0.5e-6), LinkKind::socket,
                            fabric::Level::chip,  Duplex::full,    1};
};
// The sockets' root complexes are nodes of kind host; more than two are joined each with each.
Topology pcie_tree(const PcieTreeOptions& options = {});

}  // namespace tpusim::topologies
