#include "topologies/loads.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/checked.hpp"

namespace tpusim::topologies {

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Adds the load of all chips sending one unit to `to`. False when a chip cannot.
bool add_loads_towards(const Routes& routes, std::int32_t to, std::vector<double>& load) {
  const Topology& t = routes.topology();
  const std::vector<Routes::Distance> distance = routes.distances(to);
  std::vector<std::int32_t> order;
  for (std::int32_t v = 0; v < static_cast<std::int32_t>(t.nodes.size()); ++v)
    if (distance[at(v)].weight > 0) order.push_back(v);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(distance[at(a)].weight, distance[at(a)].links) >
           std::pair(distance[at(b)].weight, distance[at(b)].links);
  });
  std::vector<double> flow(t.nodes.size(), 0);
  bool all = true;
  for (std::int32_t chip = 0; chip < t.chips; ++chip) {
    flow[at(chip)] = chip == to ? 0 : 1;
    all = all && distance[at(chip)].weight >= 0;
  }
  std::vector<std::int32_t> next;
  for (std::int32_t v : order) {
    if (flow[at(v)] == 0) continue;
    routes.next_links(v, to, distance, next);
    const double share = flow[at(v)] / static_cast<double>(next.size());
    for (std::int32_t link : next) {
      load[at(link)] += share;
      flow[at(t.links[at(link)].to)] += share;
    }
  }
  return all;
}

// Pairs over the heaviest link of an axis under dimension-ordered routes, ties going either way by halves.
double axis_load(const Grid& g, std::size_t axis) {
  const auto size = static_cast<double>(g.shape[axis]);
  const auto chips = static_cast<double>(chips_of(g.shape));
  if (g.shape[axis] == 1) return 0;
  if (!g.wrapped[axis] || g.shape[axis] == 2) return chips / size * pairs_across(g.shape[axis]);
  return g.shape[axis] % 2 == 0 ? chips * size / 8 : chips * (size * size - 1) / (8 * size);
}

}  // namespace

std::vector<double> even_split_loads(const Routes& routes) {
  const Topology& t = routes.topology();
  std::vector<double> load(t.links.size(), 0);
  if (t.steps.empty()) {
    for (std::int32_t to = 0; to < t.chips; ++to) add_loads_towards(routes, to, load);
    return load;
  }
  add_loads_towards(routes, 0, load);
  std::vector<double> of_step(t.steps.size(), 0);
  for (std::size_t i = 0; i < load.size(); ++i) of_step[i % t.steps.size()] += load[i];
  for (std::size_t i = 0; i < load.size(); ++i) load[i] = of_step[i % t.steps.size()];
  return load;
}

AllToAll all_to_all(const Topology& t, std::int64_t budget) {
  AllToAll result;
  if (t.chips < 2) return {true, 0, "one chip"};
  if (t.rule == RouteRule::dimension_ordered) {
    for (std::size_t i = 0; i < t.grid.shape.size(); ++i) {
      const LinkClass& c = t.classes[at(t.grid.axis_class[i])];
      const double share = c.duplex == Duplex::half ? 0.5 : 1;
      result.seconds_per_byte = std::max(result.seconds_per_byte, axis_load(t.grid, i) / (c.bandwidth.value() * share));
    }
    return {true, result.seconds_per_byte, "the heaviest axis under dimension-ordered routes, in closed form"};
  }
  const std::int64_t searches = t.steps.empty() ? t.chips : 1;
  const auto work = static_cast<std::int64_t>(t.links.size() + t.nodes.size());
  if (work > budget / searches) return {false, 0, "not computed: too many chips and links"};
  const Routes routes(t);
  std::vector<double> unused(t.links.size(), 0);
  if (!add_loads_towards(routes, 0, unused)) return {false, 0, "some chips cannot reach each other"};
  const std::vector<double> load = even_split_loads(routes);
  for (std::size_t i = 0; i < load.size(); ++i)
    result.seconds_per_byte = std::max(result.seconds_per_byte, load[i] / share_of(t, t.links[i]).value());
  result.known = true;
  result.how = t.steps.empty() ? "the heaviest link, every pair shared evenly over its shortest ways"
                               : "the heaviest kind of link, from one chip: all chips see the same network";
  return result;
}

}  // namespace tpusim::topologies
