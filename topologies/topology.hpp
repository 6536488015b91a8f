// The machine as an explicit graph: chips, switches, hosts' cards and the directed links between them, as plain data.
//
// The planner reads the Fabric instead, whose cost does not grow with the chips; a Topology serves what the Fabric
// cannot say: custom graphs, switches in several tiers, shared uplinks, broken links, bisection, routes. Builders are
// in shapes/, routes in routes.hpp, numbers about a whole topology in metrics.hpp.
//
// A link is one direction. A full-duplex cable is two links, each other's twin. A switch is non-blocking: only its
// links limit what crosses it. A bus, or a switch with a blocking core, is two switch nodes joined by a link of that
// rate. A 65,536-chip 3-D torus takes 7 MB (12 B a node, 16 B a link).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/fabric/fabric.hpp"
#include "topologies/chip.hpp"

namespace tpusim::topologies {

// `host` is a host's memory and root complex, `nic` a network card, `switch_node` whatever forwards and does nothing
// else.
enum class NodeKind : std::uint8_t { chip, switch_node, host, nic };
std::string_view kind_name(NodeKind kind);  // "chip", "switch", "host", "nic"

struct Node {
  NodeKind kind = NodeKind::chip;
  std::uint8_t tier = 0;               // of a switch: 0 is next to the chips
  std::int32_t host = -1, slice = -1;  // -1: none
  bool operator==(const Node&) const = default;
};

enum class LinkKind : std::uint8_t { ici, nvlink, infinity_fabric, pcie, socket, nic, network, dcn, custom };
std::string_view kind_name(LinkKind kind);  // "ICI", "NVLink", ...

// half: the link and its twin share one bandwidth.
enum class Duplex : std::uint8_t { full, half };

// What a link is like. Links refer to classes by index: a machine has few kinds of link and many links.
struct LinkClass {
  BytesPerSecond bandwidth;  // of this direction; of both together where half duplex
  Seconds latency;           // of crossing it once
  LinkKind kind = LinkKind::custom;
  fabric::Level level = fabric::Level::chip;
  Duplex duplex = Duplex::full;
  std::int32_t weight = 1;  // what routes count a crossing as: 1 or more (a detour over the network is worth many hops)
  bool operator==(const LinkClass&) const = default;
};

struct Link {
  std::int32_t from = 0, to = 0;  // nodes
  std::int32_t cls = 0;           // index into Topology::classes
  std::int32_t twin = -1;         // the opposite direction of the same cable; -1: a one-way link
  bool operator==(const Link&) const = default;
};

// Chips laid out on axes, row-major, the last axis minor; empty when they are not.
struct Grid {
  Shape shape;
  std::vector<bool> wrapped;
  // twist[i][j]: what a turn around axis i, in its positive direction, adds to coordinate j > i. Empty: no twist.
  std::vector<Shape> twist;
  std::vector<std::int32_t> axis_class;  // class of the links of each axis; empty where links are not along axes
  bool operator==(const Grid&) const = default;
};

// How a route is found (routes.hpp).
enum class RouteRule : std::uint8_t { dimension_ordered, shortest };
// Which of several equally short ways is taken: by a hash of source and destination, or by the destination's number
// (D-mod-k, which keeps shifts free of conflict in a fat tree; Zahavi et al., 2010).
enum class Spread : std::uint8_t { hash, destination };

// A bisection bandwidth that follows from the construction.
struct KnownBisection {
  BytesPerSecond rate;  // one direction
  std::string how;
  bool operator==(const KnownBisection&) const = default;
};

// Chips come first, then everything else. Filled by the builders; verify() says what has to hold.
struct Topology {
  std::string name;  // "torus 4x4x8"
  std::vector<Node> nodes;
  std::vector<LinkClass> classes;
  std::vector<Link> links;
  std::vector<std::string> names;  // of nodes, as the user wrote them; empty for the builders' topologies
  std::int64_t chips = 0;
  Grid grid;
  RouteRule rule = RouteRule::shortest;
  Spread spread = Spread::hash;
  bool chips_forward = true;  // false: a chip is only the end of a route, as a GPU on a switch
  // Not empty: the links of chip c are links[c * steps.size() + g], each adding steps[g] to its coordinate (modulo the
  // wraps), the same for every chip. Then every chip sees the same network (a Cayley graph of an Abelian group), and
  // distances and loads from one chip are those from all.
  std::vector<Shape> steps;
  std::optional<KnownBisection> bisection;
  bool operator==(const Topology&) const = default;
};

// Bounds on what input can make big; beyond them CapacityError (builders) or a too_large diagnostic (readers).
inline constexpr std::int64_t max_topology_chips = std::int64_t{1} << 20;
inline constexpr std::int64_t max_topology_links = std::int64_t{1} << 25;  // one direction each

// For builders.
void add_chips(Topology& topology, std::int64_t chips);
std::int32_t add_node(Topology& topology, Node node);
std::int32_t add_class(Topology& topology, const LinkClass& cls);                     // an equal one is reused
void add_link(Topology& topology, std::int32_t a, std::int32_t b, std::int32_t cls);  // both directions
void add_one_way(Topology& topology, std::int32_t from, std::int32_t to, std::int32_t cls);
double pairs_across(std::int64_t chips);    // floor(n/2) ceil(n/2): pairs of chips in different halves, one direction
std::int64_t chips_of(const Shape& shape);  // the product; CapacityError beyond max_topology_chips

// InternalError when something does not hold: chips first, ends in range, twins mutual, no self-loop, bandwidth above
// 0, latency at least 0, both finite; steps as stated above.
void verify(const Topology& topology);

std::string node_name(const Topology& topology,
                      std::int32_t node);  // "chip 17 (0,2,1)", "switch 3", or the user's name
// The coordinate of a chip and the chip at a coordinate; the grid must not be empty.
Shape coordinate_of(const Grid& grid, std::int64_t chip);
std::int64_t chip_at(const Grid& grid, const Shape& coordinate);
// The chip one step up (+1) or down (-1) an axis, twists included; -1 at the end of an open axis.
std::int64_t neighbour(const Grid& grid, std::int64_t chip, std::size_t axis, int direction);

// Bandwidth that one direction can count on while the other is used as well: half of a half-duplex link.
BytesPerSecond share_of(const Topology& topology, const Link& link);

// The links that leave (or enter) each node: link numbers of node v are link[first[v]] .. link[first[v + 1] - 1],
// ascending.
struct Adjacency {
  std::vector<std::int32_t> first, link;
};
Adjacency links_from(const Topology& topology);
Adjacency links_into(const Topology& topology);

}  // namespace tpusim::topologies
