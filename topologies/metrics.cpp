#include "topologies/metrics.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"
#include "topologies/routes.hpp"

namespace tpusim::topologies {

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Axes add: on a ring of X the distances of a chip sum to floor(X^2/4), which is floor(X/2) ceil(X/2); on a line all
// ordered pairs' to X (X^2 - 1)/3.
Distances by_axes(const Grid& g) {
  Distances d;
  double mean = 0;  // over all ordered pairs, equal ones included
  for (std::size_t i = 0; i < g.shape.size(); ++i) {
    const std::int64_t size = g.shape[i];
    const auto x = static_cast<double>(size);
    d.diameter += g.wrapped[i] ? size / 2 : size - 1;
    mean += g.wrapped[i] ? pairs_across(size) / x : (x * x - 1) / (3 * x);
  }
  const auto n = static_cast<double>(chips_of(g.shape));
  d.mean_hops = n > 1 ? mean * n / (n - 1) : 0;
  d.how = "axis by axis, in closed form";
  return d;
}

// The chips to search from: all, one, or as many as the budget allows.
std::vector<std::int32_t> sources(const Topology& t, std::int64_t budget, Distances& d) {
  if (!t.steps.empty()) {
    d.how = "searched from one chip: all chips see the same network";
    return {0};
  }
  std::vector<std::int32_t> all(at(t.chips));
  std::iota(all.begin(), all.end(), 0);
  const auto work = static_cast<std::int64_t>(t.links.size() + t.nodes.size());
  d.how = "searched from every chip";
  if (work <= budget / t.chips) return all;
  Random random(1);
  random.shuffle(all);
  all.resize(at(std::max<std::int64_t>(1, std::min(t.chips, budget / work))));
  d.exact = false;
  d.how = "searched from " + std::to_string(all.size()) + " chips taken at random; the diameter is at least this";
  return all;
}

void count(const Topology& t, Metrics& m) {
  m.chips = t.chips;
  std::vector<std::int32_t> hosts;
  for (const Node& n : t.nodes) {
    m.switches += n.kind == NodeKind::switch_node;
    m.cards += n.kind == NodeKind::nic;
    if (n.kind == NodeKind::chip && n.host >= 0) hosts.push_back(n.host);
  }
  std::sort(hosts.begin(), hosts.end());
  m.hosts = std::unique(hosts.begin(), hosts.end()) - hosts.begin();
  std::vector<std::int64_t> degree(at(t.chips), 0);
  std::vector<double> rate(at(t.chips), 0);
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& l = t.links[i];
    m.links += l.twin < 0 || static_cast<std::size_t>(l.twin) > i;
    if (l.from >= t.chips) continue;
    ++degree[at(l.from)];
    rate[at(l.from)] += share_of(t, l).value();
  }
  m.min_degree = *std::min_element(degree.begin(), degree.end());
  m.max_degree = *std::max_element(degree.begin(), degree.end());
  m.injection = BytesPerSecond(*std::min_element(rate.begin(), rate.end()));
}

// The least latency that a message between the two chips farthest apart can have, in hops of the quickest link.
Seconds latency_of(const Topology& t, const Distances& d) {
  Seconds least = t.classes.empty() ? Seconds(0) : t.classes[0].latency;
  for (const LinkClass& c : t.classes) least = std::min(least, c.latency);
  return least * static_cast<double>(d.diameter);
}

void bound_collectives(const Topology& t, Metrics& m) {
  if (!m.distances.connected || m.chips < 2 || !(m.injection.value() > 0) || !(m.bisection.upper.value() > 0)) return;
  const auto n = static_cast<double>(m.chips);
  const double inject = (n - 1) / n / m.injection.value(), cut = 1 / m.bisection.upper.value();
  const Seconds latency = latency_of(t, m.distances);
  const double gather = std::max(inject, cut / 2);
  const double halves = pairs_across(m.chips);
  m.collectives = {{"all-gather", gather, 0, latency},
                   {"reduce-scatter", gather, 0, latency},
                   {"all-reduce", 2 * gather, 0, latency},
                   {"all-to-all", std::max(inject, halves / n * cut),
                    m.all_to_all.known ? m.all_to_all.seconds_per_byte / n : 0, latency}};
}

}  // namespace

Distances distances(const Topology& t, std::int64_t budget) {
  if (t.rule == RouteRule::dimension_ordered) return by_axes(t.grid);
  Distances d;
  const std::vector<std::int32_t> from = sources(t, budget, d);
  const Routes routes(t);
  double hops = 0, pairs = 0;
  for (std::int32_t to : from) {
    const std::vector<Routes::Distance> found = routes.distances(to);
    for (std::int32_t chip = 0; chip < t.chips; ++chip) {
      if (chip == to) continue;
      if (found[at(chip)].weight < 0) {
        if (d.connected) d.apart_from = chip, d.apart_to = to;
        d.connected = false;
        continue;
      }
      d.diameter = std::max<std::int64_t>(d.diameter, found[at(chip)].links);
      hops += found[at(chip)].links;
      pairs += 1;
    }
  }
  d.mean_hops = pairs > 0 ? hops / pairs : 0;
  return d;
}

Metrics measure(const Topology& t, std::int64_t budget) {
  TPUSIM_CHECK(t.chips >= 1, "a topology without chips");
  Metrics m;
  count(t, m);
  m.distances = distances(t, budget);
  m.bisection = bisection(t, budget);
  m.rings = edge_disjoint_rings(t, budget);
  m.all_to_all = all_to_all(t, budget);
  bound_collectives(t, m);
  return m;
}

}  // namespace tpusim::topologies
