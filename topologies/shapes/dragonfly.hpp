// Dragonfly: groups of routers, all joined inside a group, and every two groups joined by at least one global link.
//
// p chips hang on each of a routers of a group; a router has h global links. Up to a h + 1 groups; with a = 2p = 2h the
// load is balanced. Minimal routes are local - global - local: at most three links between routers (Kim, Dally, Scott
// and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008). A global link has the weight 3, so that
// no route takes two of them, though that can be fewer links. Port k of group i leads to group i + 1 + k mod (g - 1);
// with fewer groups than a h + 1 pairs get equally many links and the ports left over stay empty.
//
// Ignored: non-minimal (Valiant, UGAL) routing, on which dragonflies rely under adversarial traffic.
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct DragonflyOptions {
  std::int64_t groups = 9;
  std::int64_t routers = 4;  // of a group
  std::int64_t chips = 2;    // of a router
  std::int64_t globals = 2;  // global links of a router
  // 200 Gb/s a port, as Slingshot has; latencies as for the fat tree. Guesses for other machines.
  LinkClass port{BytesPerSecond(25e9), Seconds(0.3e-6), LinkKind::nic, fabric::Level::host, Duplex::full, 1};
  LinkClass local{BytesPerSecond(25e9), Seconds(0.3e-6), LinkKind::network, fabric::Level::host, Duplex::full, 1};
  LinkClass global{BytesPerSecond(25e9), Seconds(0.3e-6), LinkKind::network, fabric::Level::host, Duplex::full, 3};
};
// InternalError where groups - 1 is more than a group's global links, or a size is below 1.
Topology dragonfly(const DragonflyOptions& options = {});

}  // namespace tpusim::topologies
