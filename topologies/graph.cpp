#include "topologies/graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/connected_components.hpp>
#include <deque>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::topologies {

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

Graph to_boost(const Topology& topology) {
  Graph g(topology.nodes.size());
  for (const Edge& e : topology.edges) boost::add_edge(static_cast<std::size_t>(e.a), static_cast<std::size_t>(e.b), g);
  return g;
}

constexpr std::int64_t kUnreached = -1;

class DistanceRecorder : public boost::default_bfs_visitor {
 public:
  explicit DistanceRecorder(std::vector<std::int64_t>& distance) : distance_(&distance) {}
  template <class Edge_, class G>
  void tree_edge(Edge_ e, const G& g) const {
    (*distance_)[boost::target(e, g)] = (*distance_)[boost::source(e, g)] + 1;
  }

 private:
  std::vector<std::int64_t>* distance_;
};

void add_chips(Topology& topology, std::int64_t chips) {
  if (chips > max_graph_chips)
    throw CapacityError("an explicit graph has at most " + std::to_string(max_graph_chips) + " chips, asked for " +
                        std::to_string(chips));
  topology.chips = chips;
  for (std::int64_t i = 0; i < chips; ++i) topology.nodes.push_back({NodeKind::chip, "chip " + std::to_string(i)});
}

std::int32_t add_switch(Topology& topology, std::string name) {
  topology.nodes.push_back({NodeKind::switch_node, std::move(name)});
  return static_cast<std::int32_t>(topology.nodes.size() - 1);
}

std::int64_t product(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    TPUSIM_CHECK(d >= 1, "a grid with a side of " + std::to_string(d));
    n = checked_mul(n, d, "the number of chips");
  }
  return n;
}

// Links of an axis: size, distance between neighbours in chip numbers, and what a link is like.
struct AxisLinks {
  std::int64_t size, stride;
  bool closed;
  Edge link;
};

void add_neighbour_links(Topology& topology, const AxisLinks& axis) {
  for (std::int64_t chip = 0; chip < topology.chips; ++chip) {
    const std::int64_t at = chip / axis.stride % axis.size;
    const bool last = at + 1 == axis.size;
    // A closed axis of two members has one link, not two.
    if (axis.size == 1 || (last && (!axis.closed || axis.size == 2))) continue;
    const std::int64_t next = last ? chip - (axis.size - 1) * axis.stride : chip + axis.stride;
    Edge e = axis.link;
    e.a = static_cast<std::int32_t>(chip);
    e.b = static_cast<std::int32_t>(next);
    topology.edges.push_back(e);
  }
}

void add_switches(Topology& topology, const fabric::PhysicalAxis& axis, std::int64_t stride) {
  for (std::int64_t chip = 0; chip < topology.chips; ++chip) {
    if (chip / stride % axis.size != 0) continue;  // the first member of each group stands for it
    const std::int32_t center = add_switch(topology, axis.name + " switch of chip " + std::to_string(chip));
    for (std::int64_t i = 0; i < axis.size; ++i)
      topology.edges.push_back(
          {static_cast<std::int32_t>(chip + i * stride), center, axis.beta, axis.alpha * 0.5, axis.level});
  }
}

}  // namespace

Topology grid(const Shape& shape, const std::vector<bool>& wrapped, BytesPerSecond rate, Seconds latency) {
  TPUSIM_CHECK(shape.size() == wrapped.size(), "one wrap flag per axis");
  Topology topology;
  std::int64_t stride = product(shape);
  add_chips(topology, stride);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    stride /= shape[i];
    add_neighbour_links(topology, {shape[i], stride, wrapped[i], Edge{0, 0, rate, latency, fabric::Level::chip}});
  }
  return topology;
}

Topology topology_of(const fabric::Fabric& fabric) {
  Topology topology;
  std::int64_t stride = fabric.chips();
  add_chips(topology, stride);
  for (const fabric::PhysicalAxis& axis : fabric.axes) {
    stride /= axis.size;
    if (axis.size == 1) continue;
    if (axis.link == fabric::Link::switched)
      add_switches(topology, axis, stride);
    else
      add_neighbour_links(topology, {axis.size, stride, axis.link == fabric::Link::ring,
                                     Edge{0, 0, axis.beta, axis.alpha, axis.level}});
  }
  return topology;
}

TopologySummary summarize(const Topology& topology) {
  TopologySummary s;
  s.chips = topology.chips;
  s.switches = static_cast<std::int64_t>(topology.nodes.size()) - topology.chips;
  s.links = static_cast<std::int64_t>(topology.edges.size());
  if (topology.chips == 0) return s;
  const Graph g = to_boost(topology);
  std::vector<int> component(topology.nodes.size());
  s.connected = boost::connected_components(g, component.data()) == 1;
  s.min_degree = s.links;
  double hops = 0, pairs = 0;
  for (std::int64_t from = 0; from < topology.chips; ++from) {
    const std::int64_t degree = static_cast<std::int64_t>(boost::out_degree(static_cast<std::size_t>(from), g));
    s.min_degree = std::min(s.min_degree, degree);
    s.max_degree = std::max(s.max_degree, degree);
    std::vector<std::int64_t> distance(topology.nodes.size(), kUnreached);
    distance[static_cast<std::size_t>(from)] = 0;
    boost::breadth_first_search(g, static_cast<std::size_t>(from), boost::visitor(DistanceRecorder(distance)));
    for (std::int64_t to = 0; to < topology.chips; ++to) {
      const std::int64_t d = distance[static_cast<std::size_t>(to)];
      if (to == from || d == kUnreached) continue;
      s.diameter_hops = std::max(s.diameter_hops, d);
      hops += static_cast<double>(d);
      pairs += 1;
    }
  }
  s.mean_hops = pairs > 0 ? hops / pairs : 0;
  return s;
}

std::vector<std::int32_t> shortest_path(const Topology& topology, std::int32_t from, std::int32_t to) {
  const std::int32_t n = static_cast<std::int32_t>(topology.nodes.size());
  TPUSIM_CHECK(from >= 0 && from < n && to >= 0 && to < n, "no such node");
  // Neighbours in order of node number make the first path found the one that ties prefer.
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> next(topology.nodes.size());
  for (std::size_t e = 0; e < topology.edges.size(); ++e) {
    const Edge& edge = topology.edges[e];
    next[static_cast<std::size_t>(edge.a)].push_back({edge.b, static_cast<std::int32_t>(e)});
    next[static_cast<std::size_t>(edge.b)].push_back({edge.a, static_cast<std::int32_t>(e)});
  }
  for (auto& list : next) std::sort(list.begin(), list.end());
  std::vector<std::pair<std::int32_t, std::int32_t>> came(topology.nodes.size(), {-1, -1});  // node, edge
  std::deque<std::int32_t> queue{from};
  came[static_cast<std::size_t>(from)] = {from, -1};
  while (!queue.empty() && came[static_cast<std::size_t>(to)].first < 0) {
    const std::int32_t at = queue.front();
    queue.pop_front();
    for (const auto& [node, edge] : next[static_cast<std::size_t>(at)])
      if (came[static_cast<std::size_t>(node)].first < 0) {
        came[static_cast<std::size_t>(node)] = {at, edge};
        queue.push_back(node);
      }
  }
  std::vector<std::int32_t> path;
  if (came[static_cast<std::size_t>(to)].first < 0) return path;
  for (std::int32_t at = to; at != from; at = came[static_cast<std::size_t>(at)].first)
    path.push_back(came[static_cast<std::size_t>(at)].second);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tpusim::topologies
