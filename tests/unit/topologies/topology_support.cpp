#include "topology_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topologies/catalogue.hpp"
#include "topologies/shapes/circulant.hpp"
#include "topologies/shapes/dragonfly.hpp"
#include "topologies/shapes/fat_tree.hpp"
#include "topologies/shapes/full_mesh.hpp"
#include "topologies/shapes/grid.hpp"
#include "topologies/shapes/pcie_tree.hpp"
#include "topologies/shapes/slices.hpp"
#include "topologies/shapes/star.hpp"

namespace tpusim::topologies {

namespace {

Topology two_slices() {
  ClusterRequest request;
  request.chip = *find_chip("tpu-v5e");
  request.slice_shape = {4, 4};
  request.slices = 2;
  DiagnosticSink sink;
  return *slices(*build(request, sink), {}, sink);
}

Topology hosts_of_h100() {
  ClusterRequest request;
  request.chip = *find_chip("h100");
  request.hosts = 4;
  DiagnosticSink sink;
  return topology_of(build(request, sink)->fabric);
}

FatTreeOptions rails() {
  FatTreeOptions o = superpod(*find_chip("h100"), 4);
  o.chips_per_host = 4;
  o.chips_per_leaf = 2;
  return o;
}

FatTreeOptions plain() {
  FatTreeOptions o;
  o.hosts = 16;
  o.chips_per_leaf = 4;
  return o;
}

FatTreeOptions three_tiers() {
  FatTreeOptions o = plain();
  o.chips_per_leaf = 2;
  o.leaves_per_pod = 2;
  return o;
}

std::vector<std::vector<std::int64_t>> least_weights(const Topology& t, const std::set<std::int32_t>& broken) {
  const std::int64_t far = 1 << 30;
  const std::size_t n = t.nodes.size();
  std::vector<std::vector<std::int64_t>> d(n, std::vector<std::int64_t>(n, far));
  for (std::size_t v = 0; v < n; ++v) d[v][v] = 0;
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& l = t.links[i];
    std::int64_t& known = d[static_cast<std::size_t>(l.from)][static_cast<std::size_t>(l.to)];
    if (broken.count(static_cast<std::int32_t>(i)) == 0)
      known = std::min<std::int64_t>(known, t.classes[static_cast<std::size_t>(l.cls)].weight);
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (!t.chips_forward && k < static_cast<std::size_t>(t.chips)) continue;
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) d[a][b] = std::min(d[a][b], d[a][k] + d[k][b]);
  }
  return d;
}

std::string fault_in(const Topology& t, const Route& route, std::int32_t from, std::int32_t to,
                     const std::set<std::int32_t>& broken, std::int64_t least) {
  const std::string pair = fmt::format("{}: {} to {}: ", t.name, from, to);
  if (!route.verdict) return least >= 1 << 30 ? "" : pair + "unreachable";
  std::set<std::int32_t> met{from};
  std::int32_t at = from;
  std::int64_t weight = 0;
  for (std::int32_t link : route.links) {
    const Link& l = t.links[static_cast<std::size_t>(link)];
    if (broken.count(link) > 0) return pair + "over a broken link";
    if (l.from != at) return pair + "jumps";
    if (at != from && at < t.chips && !t.chips_forward) return pair + "through a chip";
    at = l.to;
    if (!met.insert(at).second) return pair + "meets a node twice";
    weight += t.classes[static_cast<std::size_t>(l.cls)].weight;
  }
  if (at != to) return pair + "does not arrive";
  return weight == least ? "" : fmt::format("{}weight {}, the least is {}", pair, weight, least);
}

}  // namespace

std::vector<Topology> one_of_each() {
  StarOptions switches;
  switches.chip_rate = BytesPerSecond(450e9);
  switches.switches = 4;
  StarOptions single;
  single.chips = 5;
  single.chip_rate = BytesPerSecond(50e9);
  return {torus({4, 6}, ici()),
          torus({3, 4, 5}, ici()),
          mesh({3, 4}, ici()),
          mesh({2, 2, 1}, ici()),
          grid({{4, 6}, {true, false}, {ici()}, {}}),
          grid({{2, 4}, {false, true}, {ici()}, {}}),
          ring(7, ici()),
          ring(2, ici()),
          ring(1, ici()),
          hypercube(5, ici()),
          twisted_torus({4, 4, 8}, ici()),
          circulant(16, {1, 6, 8}, ici()),
          full_mesh(),
          star(switches),
          star(single),
          pcie_tree(),
          fat_tree(plain()),
          fat_tree(three_tiers()),
          fat_tree(rails()),
          dragonfly(),
          dragonfly({4, 3, 1, 2}),
          two_slices(),
          hosts_of_h100()};
}

std::string fault_in_routes(const Topology& t, const std::vector<std::int32_t>& broken) {
  const std::set<std::int32_t> gone(broken.begin(), broken.end());
  const auto least = least_weights(t, gone);
  const Routes routes(t, broken);
  for (std::int32_t to = 0; to < t.chips; ++to) {
    const std::vector<Route> all = routes.towards(to);
    for (std::int32_t from = 0; from < t.chips; ++from) {
      const Route& route = all[static_cast<std::size_t>(from)];
      const std::string fault =
          fault_in(t, route, from, to, gone, least[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
      if (!fault.empty()) return fault;
      if (from % 5 == 0 && routes.between(from, to).links != route.links) return t.name + ": between differs";
    }
  }
  return "";
}

}  // namespace tpusim::topologies
