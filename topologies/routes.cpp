#include "topologies/routes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

namespace tpusim::topologies {

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::uint64_t hash_of(std::int32_t from, std::int32_t to, std::int32_t node) {
  Random mixed((static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32) | static_cast<std::uint32_t>(to));
  return mixed.fork(static_cast<std::uint64_t>(node)).next();
}

Route unreachable(const Topology& t, std::int32_t from, std::int32_t to) {
  Route route;
  route.verdict = {false, "unreachable", "a way from " + node_name(t, from) + " to " + node_name(t, to), "none", ""};
  return route;
}

}  // namespace

Routes::Routes(const Topology& topology, const std::vector<std::int32_t>& broken)
    : topology_(&topology), out_(links_from(topology)), in_(links_into(topology)) {
  if (!broken.empty()) broken_.assign(topology.links.size(), false);
  for (std::int32_t link : broken) {
    TPUSIM_CHECK(link >= 0 && at(link) < topology.links.size(), "no such link to break: " + std::to_string(link));
    broken_[at(link)] = true;
  }
  for (const LinkClass& c : topology.classes) weighted_ = weighted_ || c.weight != 1;
}

std::vector<Routes::Distance> Routes::by_hops(std::int32_t to) const {
  std::vector<Distance> distance(topology_->nodes.size());
  std::vector<std::int32_t> queue{to};
  queue.reserve(topology_->nodes.size());
  distance[at(to)] = {0, 0};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::int32_t v = queue[i];
    if (v != to && !forwards(v)) continue;
    const std::int32_t next = distance[at(v)].links + 1;
    for (std::int32_t k = in_.first[at(v)]; k < in_.first[at(v) + 1]; ++k) {
      const std::int32_t link = in_.link[at(k)];
      const std::int32_t u = topology_->links[at(link)].from;
      if (distance[at(u)].weight >= 0 || this->broken(link)) continue;
      distance[at(u)] = {next, next};
      queue.push_back(u);
    }
  }
  return distance;
}

// Dijkstra's algorithm backwards from `to`, by (weight, links).
std::vector<Routes::Distance> Routes::by_weight(std::int32_t to) const {
  using Entry = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // weight, links, node
  std::vector<Distance> distance(topology_->nodes.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  distance[at(to)] = {0, 0};
  queue.push({0, 0, to});
  while (!queue.empty()) {
    const auto [weight, links, v] = queue.top();
    queue.pop();
    if (distance[at(v)].weight != weight || distance[at(v)].links != links) continue;  // improved since
    if (v != to && !forwards(v)) continue;
    for (std::int32_t k = in_.first[at(v)]; k < in_.first[at(v) + 1]; ++k) {
      const std::int32_t link = in_.link[at(k)];
      if (this->broken(link)) continue;
      const Link& l = topology_->links[at(link)];
      const Distance found{weight + topology_->classes[at(l.cls)].weight, links + 1};
      Distance& known = distance[at(l.from)];
      if (known.weight >= 0 && std::pair(known.weight, known.links) <= std::pair(found.weight, found.links)) continue;
      known = found;
      queue.push({found.weight, found.links, l.from});
    }
  }
  return distance;
}

std::vector<Routes::Distance> Routes::distances(std::int32_t to) const {
  TPUSIM_CHECK(to >= 0 && at(to) < topology_->nodes.size(), "no such node");
  return weighted_ ? by_weight(to) : by_hops(to);
}

void Routes::next_links(std::int32_t node, std::int32_t to, const std::vector<Distance>& distance,
                        std::vector<std::int32_t>& out) const {
  out.clear();
  const Distance here = distance[at(node)];
  for (std::int32_t k = out_.first[at(node)]; k < out_.first[at(node) + 1]; ++k) {
    const std::int32_t link = out_.link[at(k)];
    if (this->broken(link)) continue;
    const Link& l = topology_->links[at(link)];
    if (l.to != to && !forwards(l.to)) continue;
    const Distance there = distance[at(l.to)];
    if (there.weight < 0 || there.links + 1 != here.links) continue;
    if (there.weight + topology_->classes[at(l.cls)].weight == here.weight) out.push_back(link);
  }
}

Route Routes::walk(std::int32_t from, std::int32_t to, const std::vector<Distance>& distance) const {
  if (distance[at(from)].weight < 0) return unreachable(*topology_, from, to);
  Route route;
  std::vector<std::int32_t> choices;
  std::int64_t rest = to;  // what the earlier choices left of the destination's number
  for (std::int32_t node = from; node != to;) {
    next_links(node, to, distance, choices);
    TPUSIM_CHECK(!choices.empty(), "a distance without a way");
    const auto n = static_cast<std::int64_t>(choices.size());
    std::size_t pick = 0;
    if (n > 1 && topology_->spread == Spread::destination) {
      pick = at(rest % n);
      rest /= n;
    } else if (n > 1) {
      pick = static_cast<std::size_t>(hash_of(from, to, node) % static_cast<std::uint64_t>(n));
    }
    route.links.push_back(choices[pick]);
    node = topology_->links[at(choices[pick])].to;
  }
  return route;
}

std::int32_t Routes::link_between(std::int64_t from, std::int64_t to) const {
  for (std::int32_t k = out_.first[at(from)]; k < out_.first[at(from) + 1]; ++k)
    if (topology_->links[at(out_.link[at(k)])].to == to) return out_.link[at(k)];
  return -1;
}

// False when a link on the way is broken.
bool Routes::dimension_ordered(std::int32_t from, std::int32_t to, std::vector<std::int32_t>& links) const {
  const Grid& g = topology_->grid;
  const Shape a = coordinate_of(g, from), b = coordinate_of(g, to);
  const std::int64_t sum_a = std::accumulate(a.begin(), a.end(), std::int64_t{0});
  const std::int64_t sum_b = std::accumulate(b.begin(), b.end(), std::int64_t{0});
  std::int64_t chip = from;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t hops = b[i] - a[i];
    if (g.wrapped[i]) {
      const std::int64_t size = g.shape[i], up = (hops + size) % size;
      const bool tie_up = (sum_a + sum_b - b[i]) % 2 == 0;
      hops = 2 * up < size || (2 * up == size && tie_up) ? up : up - size;
    }
    for (; hops != 0; hops += hops > 0 ? -1 : 1) {
      const std::int64_t next = neighbour(g, chip, i, hops > 0 ? 1 : -1);
      const std::int32_t link = link_between(chip, next);
      TPUSIM_CHECK(link >= 0, "neighbours without a link");
      if (this->broken(link)) return false;
      links.push_back(link);
      chip = next;
    }
  }
  return true;
}

Route Routes::between(std::int32_t from, std::int32_t to) const {
  const auto nodes = static_cast<std::int32_t>(topology_->nodes.size());
  TPUSIM_CHECK(from >= 0 && from < nodes && to >= 0 && to < nodes, "no such node");
  Route route;
  if (from == to) return route;
  if (topology_->rule == RouteRule::dimension_ordered && from < topology_->chips && to < topology_->chips &&
      dimension_ordered(from, to, route.links))
    return route;
  return walk(from, to, distances(to));
}

std::vector<Route> Routes::towards(std::int32_t to) const {
  std::vector<Route> routes(at(topology_->chips));
  std::vector<Distance> distance;
  const bool ordered = topology_->rule == RouteRule::dimension_ordered && to < topology_->chips;
  for (std::int32_t from = 0; from < topology_->chips; ++from) {
    if (from == to) continue;
    Route& route = routes[at(from)];
    if (ordered && dimension_ordered(from, to, route.links)) continue;
    if (distance.empty()) distance = distances(to);
    route = walk(from, to, distance);
  }
  return routes;
}

std::vector<std::int64_t> route_loads(const Routes& routes) {
  std::vector<std::int64_t> load(routes.topology().links.size(), 0);
  for (std::int32_t to = 0; to < routes.topology().chips; ++to)
    for (const Route& route : routes.towards(to))
      for (std::int32_t link : route.links) ++load[at(link)];
  return load;
}

}  // namespace tpusim::topologies
