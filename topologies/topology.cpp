#include "topologies/topology.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::topologies {

namespace {

std::string text(std::int64_t n) {
  return std::to_string(n);
}

Adjacency adjacency(const Topology& t, std::int32_t Link::*end) {
  Adjacency a;
  a.first.assign(t.nodes.size() + 1, 0);
  a.link.resize(t.links.size());
  for (const Link& l : t.links) ++a.first[static_cast<std::size_t>(l.*end) + 1];
  for (std::size_t v = 0; v < t.nodes.size(); ++v) a.first[v + 1] += a.first[v];
  std::vector<std::int32_t> at(a.first.begin(), a.first.end() - 1);
  for (std::size_t i = 0; i < t.links.size(); ++i)
    a.link[static_cast<std::size_t>(at[static_cast<std::size_t>(t.links[i].*end)]++)] = static_cast<std::int32_t>(i);
  return a;
}

void check_room(const Topology& t, std::int64_t more) {
  if (static_cast<std::int64_t>(t.links.size()) + more > max_topology_links)
    throw CapacityError("a topology has at most " + text(max_topology_links) + " links (one direction each)");
}

void verify_link(const Topology& t, std::int32_t index) {
  const Link& l = t.links[static_cast<std::size_t>(index)];
  const std::string what = "link " + text(index);
  const auto nodes = static_cast<std::int32_t>(t.nodes.size());
  TPUSIM_CHECK(l.from >= 0 && l.from < nodes && l.to >= 0 && l.to < nodes, what + " ends nowhere");
  TPUSIM_CHECK(l.from != l.to, what + " is a self-loop");
  TPUSIM_CHECK(l.cls >= 0 && l.cls < static_cast<std::int32_t>(t.classes.size()), what + " has no class");
  if (l.twin < 0) return;
  TPUSIM_CHECK(l.twin < static_cast<std::int32_t>(t.links.size()), what + " has no such twin");
  const Link& back = t.links[static_cast<std::size_t>(l.twin)];
  TPUSIM_CHECK(back.twin == index && back.from == l.to && back.to == l.from, what + " and its twin differ");
}

void verify_steps(const Topology& t) {
  if (t.steps.empty()) return;
  const std::size_t degree = t.steps.size();
  TPUSIM_CHECK(t.links.size() == degree * static_cast<std::size_t>(t.chips), "as many links as chips times steps");
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& l = t.links[i];
    TPUSIM_CHECK(static_cast<std::size_t>(l.from) == i / degree, "links are not in the order of chips");
    TPUSIM_CHECK(l.cls == t.links[i % degree].cls, "a step's links differ");
  }
}

}  // namespace

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::chip:
      return "chip";
    case NodeKind::switch_node:
      return "switch";
    case NodeKind::host:
      return "host";
    case NodeKind::nic:
      return "nic";
  }
  return "";
}

std::string_view kind_name(LinkKind kind) {
  switch (kind) {
    case LinkKind::ici:
      return "ICI";
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::infinity_fabric:
      return "Infinity Fabric";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::socket:
      return "socket";
    case LinkKind::nic:
      return "NIC";
    case LinkKind::network:
      return "network";
    case LinkKind::dcn:
      return "DCN";
    case LinkKind::custom:
      return "custom";
  }
  return "";
}

double pairs_across(std::int64_t chips) {
  const std::int64_t less = chips / 2;
  return static_cast<double>(less * (chips - less));
}

std::int64_t chips_of(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    TPUSIM_CHECK(d >= 1, "a side of " + text(d));
    if (d > max_topology_chips / n)
      throw CapacityError("a topology has at most " + text(max_topology_chips) + " chips, asked for " +
                          shape_text(shape));
    n *= d;
  }
  return n;
}

void add_chips(Topology& t, std::int64_t chips) {
  TPUSIM_CHECK(t.nodes.empty(), "chips come first");
  TPUSIM_CHECK(chips >= 1, "a topology without chips");
  chips_of({chips});
  t.chips = chips;
  t.nodes.assign(static_cast<std::size_t>(chips), Node{});
}

std::int32_t add_node(Topology& t, Node node) {
  if (static_cast<std::int64_t>(t.nodes.size()) >= 2 * max_topology_chips)
    throw CapacityError("a topology has at most " + text(2 * max_topology_chips) + " nodes");
  t.nodes.push_back(node);
  return static_cast<std::int32_t>(t.nodes.size() - 1);
}

std::int32_t add_class(Topology& t, const LinkClass& cls) {
  const auto found = std::find(t.classes.begin(), t.classes.end(), cls);
  if (found != t.classes.end()) return static_cast<std::int32_t>(found - t.classes.begin());
  t.classes.push_back(cls);
  return static_cast<std::int32_t>(t.classes.size() - 1);
}

void add_link(Topology& t, std::int32_t a, std::int32_t b, std::int32_t cls) {
  check_room(t, 2);
  const auto i = static_cast<std::int32_t>(t.links.size());
  t.links.push_back({a, b, cls, i + 1});
  t.links.push_back({b, a, cls, i});
}

void add_one_way(Topology& t, std::int32_t from, std::int32_t to, std::int32_t cls) {
  check_room(t, 1);
  t.links.push_back({from, to, cls, -1});
}

void verify(const Topology& t) {
  const auto chips = static_cast<std::size_t>(t.chips);
  TPUSIM_CHECK(t.chips >= 1 && chips <= t.nodes.size(), "the number of chips");
  for (std::size_t v = 0; v < t.nodes.size(); ++v)
    TPUSIM_CHECK((t.nodes[v].kind == NodeKind::chip) == (v < chips), "chips come first");
  TPUSIM_CHECK(t.names.empty() || t.names.size() == t.nodes.size(), "one name a node");
  for (const LinkClass& c : t.classes) {
    TPUSIM_CHECK(std::isfinite(c.bandwidth.value()) && c.bandwidth.value() > 0, "a link that carries nothing");
    TPUSIM_CHECK(std::isfinite(c.latency.value()) && c.latency.value() >= 0, "a latency below 0");
    TPUSIM_CHECK(c.weight >= 1, "a weight below 1");
  }
  for (std::size_t i = 0; i < t.links.size(); ++i) verify_link(t, static_cast<std::int32_t>(i));
  TPUSIM_CHECK(t.grid.shape.empty() || chips_of(t.grid.shape) == t.chips, "the grid holds all chips");
  TPUSIM_CHECK(t.rule == RouteRule::shortest || !t.grid.axis_class.empty(), "no axes to order");
  verify_steps(t);
}

std::string node_name(const Topology& t, std::int32_t node) {
  const auto v = static_cast<std::size_t>(node);
  TPUSIM_CHECK(node >= 0 && v < t.nodes.size(), "no such node");
  if (!t.names.empty()) return t.names[v];
  std::string name(kind_name(t.nodes[v].kind));
  if (node >= t.chips) return name + " " + text(node - t.chips);
  name += " " + text(node);
  if (t.grid.shape.size() < 2) return name;
  name += " (";
  const Shape at = coordinate_of(t.grid, node);
  for (std::size_t i = 0; i < at.size(); ++i) name += (i > 0 ? "," : "") + text(at[i]);
  return name + ")";
}

Shape coordinate_of(const Grid& grid, std::int64_t chip) {
  Shape at(grid.shape.size());
  for (std::size_t i = grid.shape.size(); i-- > 0;) {
    at[i] = chip % grid.shape[i];
    chip /= grid.shape[i];
  }
  return at;
}

std::int64_t chip_at(const Grid& grid, const Shape& coordinate) {
  std::int64_t chip = 0;
  for (std::size_t i = 0; i < grid.shape.size(); ++i) chip = chip * grid.shape[i] + coordinate[i];
  return chip;
}

std::int64_t neighbour(const Grid& grid, std::int64_t chip, std::size_t axis, int direction) {
  Shape at = coordinate_of(grid, chip);
  at[axis] += direction;
  if (at[axis] >= 0 && at[axis] < grid.shape[axis]) return chip_at(grid, at);
  if (!grid.wrapped[axis]) return -1;
  at[axis] = at[axis] < 0 ? grid.shape[axis] - 1 : 0;
  if (grid.twist.empty()) return chip_at(grid, at);
  // A turn around an axis moves later ones, whose turns move those after them.
  Shape turns(at.size(), 0);
  turns[axis] = direction;
  for (std::size_t j = axis + 1; j < at.size(); ++j) {
    for (std::size_t i = axis; i < j; ++i) at[j] += turns[i] * grid.twist[i][j];
    while (at[j] < 0) at[j] += grid.shape[j], --turns[j];
    while (at[j] >= grid.shape[j]) at[j] -= grid.shape[j], ++turns[j];
  }
  return chip_at(grid, at);
}

BytesPerSecond share_of(const Topology& t, const Link& link) {
  const LinkClass& c = t.classes[static_cast<std::size_t>(link.cls)];
  return c.duplex == Duplex::half && link.twin >= 0 ? c.bandwidth * 0.5 : c.bandwidth;
}

Adjacency links_from(const Topology& t) {
  return adjacency(t, &Link::from);
}

Adjacency links_into(const Topology& t) {
  return adjacency(t, &Link::to);
}

}  // namespace tpusim::topologies
