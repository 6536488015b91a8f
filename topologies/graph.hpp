// The machine as an explicit graph of chips, switches and hosts' cards, for pictures, for cross-checks and for what is
// not regular. The planner and the timing backend read the Fabric instead, whose cost does not grow with the chips.
//
// Algorithms (components, distances) are Boost.Graph's, in graph.cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/fabric/fabric.hpp"
#include "topologies/chip.hpp"

namespace tpusim::topologies {

enum class NodeKind { chip, switch_node };

struct Node {
  NodeKind kind = NodeKind::chip;
  std::string name;  // "chip 17", "host 2 switch", "host network", "slice network"
  bool operator==(const Node&) const = default;
};

// A full-duplex link: `rate` in each direction.
struct Edge {
  std::int32_t a = 0, b = 0;  // indices of nodes
  BytesPerSecond rate;
  Seconds latency;  // of crossing it once; a switch's latency is split over its two links
  fabric::Level level = fabric::Level::chip;
  bool operator==(const Edge&) const = default;
};

// Chips come first, in the Fabric's numbering (row-major, last axis minor), then switches.
struct Topology {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::int64_t chips = 0;
  bool operator==(const Topology&) const = default;
};

inline constexpr std::int64_t max_graph_chips = 4096;

// A grid with one link between neighbours on each axis; axis i is closed where wrapped[i] and size > 2 (a ring of 2 is
// one link, as on the machine). All links get the same rate and latency.
Topology grid(const Shape& shape, const std::vector<bool>& wrapped, BytesPerSecond rate, Seconds latency);

// The graph of any Fabric: neighbour links for ring and line axes, one switch per group for switched axes.
// Throws CapacityError beyond max_graph_chips.
Topology topology_of(const fabric::Fabric& fabric);

struct TopologySummary {
  std::int64_t chips = 0, switches = 0, links = 0;
  bool connected = false;
  std::int64_t diameter_hops = 0;               // largest number of links on a shortest path between chips
  double mean_hops = 0;                         // over ordered pairs of different chips
  std::int64_t min_degree = 0, max_degree = 0;  // links of a chip
  bool operator==(const TopologySummary&) const = default;
};
// Breadth-first search from every chip: O(chips * links). A topology in parts has diameter and mean over reachable
// pairs.
TopologySummary summarize(const Topology& topology);

// A shortest path from chip to chip as indices of edges; ties go to the lowest node number. Empty for from == to and
// where there is no path.
std::vector<std::int32_t> shortest_path(const Topology& topology, std::int32_t from, std::int32_t to);

}  // namespace tpusim::topologies
