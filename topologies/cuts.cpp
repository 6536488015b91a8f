#include "topologies/cuts.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"
#include "topologies/kernighan_lin.hpp"
#include "topologies/loads.hpp"

namespace tpusim::topologies {

namespace {

constexpr std::int64_t kExchangeChips = 1024;
constexpr std::int64_t kRandomHalves = 8;
constexpr std::int64_t kFlowLinks = 1 << 18;
constexpr std::int64_t kTries = 1000, kTriedLinks = 1 << 19;  // exchanges, and links that their flows may visit

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

bool only_chips(const Topology& t) {
  return static_cast<std::size_t>(t.chips) == t.nodes.size();
}

struct Sums {
  double out = 0, in = 0;
  std::int64_t links = 0;
};

Sums sum_between(const Topology& t, const std::vector<bool>& half) {
  Sums s;
  for (const Link& l : t.links) {
    if (half[at(l.from)] == half[at(l.to)]) continue;
    (half[at(l.from)] ? s.out : s.in) += share_of(t, l).value();
    if (l.twin < 0 || half[at(l.from)]) ++s.links;
  }
  return s;
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// With its reverse, of capacity 0, which Boost's algorithm wants for each edge.
void add_edge(FlowGraph& g, std::size_t u, std::size_t v, std::int64_t capacity) {
  const auto a = boost::add_edge(u, v, g).first, b = boost::add_edge(v, u, g).first;
  boost::put(boost::edge_capacity, g, a, capacity);
  boost::put(boost::edge_capacity, g, b, 0);
  boost::put(boost::edge_reverse, g, a, b);
  boost::put(boost::edge_reverse, g, b, a);
}

// The maximum flow between the halves, in whole units of a power of two such that all links together are about 2^52.
double flow_between(const Topology& t, const std::vector<bool>& half, bool forth) {
  double sum = 0;
  for (const Link& l : t.links) sum += share_of(t, l).value();
  if (!(sum > 0)) return 0;
  const double unit = std::exp2(std::ceil(std::log2(sum)) - 52);
  const std::size_t n = t.nodes.size();
  FlowGraph g(n + 2);
  std::vector<std::int64_t> ends(at(t.chips), 0);  // what a chip can send, or receive: no more goes through its end
  for (const Link& l : t.links) {
    const std::int64_t capacity = std::llround(share_of(t, l).value() / unit);
    add_edge(g, at(l.from), at(l.to), capacity);
    if (l.from < t.chips && half[at(l.from)] == forth) ends[at(l.from)] += capacity;
    if (l.to < t.chips && half[at(l.to)] != forth) ends[at(l.to)] += capacity;
  }
  for (std::size_t c = 0; c < half.size(); ++c) {
    if (half[c] == forth)
      add_edge(g, n, c, ends[c]);
    else
      add_edge(g, c, n + 1, ends[c]);
  }
  return static_cast<double>(boost::push_relabel_max_flow(g, n, n + 1)) * unit;
}

std::vector<bool> first_half(const std::vector<std::int64_t>& order) {
  std::vector<bool> half(order.size(), false);
  for (std::size_t i = 0; i < order.size() / 2; ++i) half[at(order[i])] = true;
  return half;
}

// Chips in the order in which a search from chip 0 meets them.
std::vector<std::int64_t> search_order(const Topology& t, const Adjacency& out) {
  std::vector<std::int64_t> order;
  std::vector<bool> met(t.nodes.size(), false);
  for (std::int64_t start = 0; start < t.chips; ++start) {
    if (met[at(start)]) continue;
    std::vector<std::int32_t> queue{static_cast<std::int32_t>(start)};
    met[at(start)] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::int32_t v = queue[i];
      if (v < t.chips) order.push_back(v);
      for (std::int32_t k = out.first[at(v)]; k < out.first[at(v) + 1]; ++k) {
        const std::int32_t to = t.links[at(out.link[at(k)])].to;
        if (!met[at(to)]) met[at(to)] = true, queue.push_back(to);
      }
    }
  }
  return order;
}

// Row-major with the axes in another order: the first one is the last to change.
std::vector<std::int64_t> axes_order(const Grid& g, std::int64_t chips, const std::vector<std::size_t>& axes) {
  std::vector<std::int64_t> key(at(chips)), order(at(chips));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t c = 0; c < chips; ++c) {
    const Shape place = coordinate_of(g, c);
    for (std::size_t a : axes) key[at(c)] = key[at(c)] * g.shape[a] + place[a];
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return key[at(a)] < key[at(b)]; });
  return order;
}

// All orders of up to four axes, each axis first where there are more.
std::vector<std::vector<std::size_t>> orders_of_axes(std::size_t axes) {
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<std::size_t>> all;
  if (axes <= 4) {
    do all.push_back(order);
    while (std::next_permutation(order.begin(), order.end()));
    return all;
  }
  for (std::size_t i = 0; i < axes; ++i) {
    all.push_back(order);
    std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  return all;
}

std::vector<std::vector<bool>> candidate_halves(const Topology& t, const Adjacency& out) {
  std::vector<std::vector<bool>> halves;
  if (!t.grid.shape.empty())
    for (const auto& axes : orders_of_axes(t.grid.shape.size()))
      halves.push_back(first_half(axes_order(t.grid, t.chips, axes)));
  std::vector<std::int64_t> order(at(t.chips));
  std::iota(order.begin(), order.end(), 0);
  halves.push_back(first_half(order));
  halves.push_back(first_half(search_order(t, out)));
  if (only_chips(t)) return halves;
  // By place in the host: half of every host, or half of the rails.
  std::vector<std::int64_t> seen(t.nodes.size(), 0), place(at(t.chips));
  for (std::int64_t c = 0; c < t.chips; ++c)
    place[at(c)] = t.nodes[at(c)].host < 0 ? c : seen[at(t.nodes[at(c)].host)]++;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return place[at(a)] < place[at(b)]; });
  halves.push_back(first_half(order));
  return halves;
}

// Chips by the node that their first link leads to: a leaf, a router, a host's switch.
std::vector<std::vector<std::int64_t>> groups_of(const Topology& t, const Adjacency& out) {
  std::vector<std::vector<std::int64_t>> of_node(t.nodes.size()), groups;
  for (std::int64_t c = 0; c < t.chips; ++c) {
    const std::int32_t k = out.first[at(c)];
    const bool any = k < out.first[at(c) + 1];
    of_node[any ? at(t.links[at(out.link[at(k)])].to) : at(c)].push_back(c);
  }
  for (std::vector<std::int64_t>& g : of_node)
    if (!g.empty()) groups.push_back(std::move(g));
  return groups;
}

// Exchanges chips, or whole groups of them, at random, and keeps what lowers the flow.
void exchange_at_random(const Topology& t, const Adjacency& out, Bisection& result) {
  const std::vector<std::vector<std::int64_t>> groups = groups_of(t, out);
  Random random(1);
  const auto tries = std::min<std::int64_t>(kTries, kTriedLinks / static_cast<std::int64_t>(t.links.size() + 1));
  std::vector<bool> half = result.half;
  for (std::int64_t i = 0; i < tries; ++i) {
    std::vector<std::int64_t> a = groups[random.below(groups.size())], b = groups[random.below(groups.size())];
    if (i % 2 == 0) a = {a[random.below(a.size())]}, b = {b[random.below(b.size())]};
    const auto side = [&](const std::vector<std::int64_t>& g, bool s) {
      return std::all_of(g.begin(), g.end(), [&](std::int64_t c) { return half[at(c)] == s; });
    };
    if (a.size() != b.size() || !side(a, true) || !side(b, false)) continue;
    const auto exchange = [&] {
      for (std::int64_t c : a) half[at(c)] = !half[at(c)];
      for (std::int64_t c : b) half[at(c)] = !half[at(c)];
    };
    exchange();
    const BytesPerSecond rate = between_halves(t, half);
    if (rate < result.upper) {
      result.upper = rate;
      result.half = half;
    } else {
      exchange();
    }
  }
}

void find_upper(const Topology& t, std::int64_t budget, Bisection& result) {
  const Adjacency out = links_from(t);
  std::vector<std::vector<bool>> halves = candidate_halves(t, out);
  const bool chips_only = only_chips(t);
  const bool exchange = chips_only && t.chips <= kExchangeChips;
  result.upper_how = "the best of halves by axes, by number and by a search from chip 0";
  if (!chips_only) {
    if (static_cast<std::int64_t>(t.links.size()) > std::min(kFlowLinks, budget)) {
      halves.resize(0);
      // Whatever crosses has to leave half of the chips.
      std::vector<double> rate(at(t.chips), 0);
      for (const Link& l : t.links)
        if (l.from < t.chips) rate[at(l.from)] += share_of(t, l).value();
      std::sort(rate.begin(), rate.end());
      result.upper = BytesPerSecond(std::accumulate(rate.begin(), rate.begin() + t.chips / 2, 0.0));
      result.upper_how = "what half of the chips can send (too many links for a maximum flow)";
    } else {
      result.upper_how =
          "the least maximum flow between halves by number, by place in the host and by a search, with exchanges at "
          "random";
    }
  }
  if (exchange) {
    Random random(1);
    for (std::int64_t i = 0; i < kRandomHalves; ++i) {
      std::vector<std::int64_t> order(at(t.chips));
      std::iota(order.begin(), order.end(), 0);
      random.shuffle(order);
      halves.push_back(first_half(order));
    }
    for (std::size_t i = 0, n = halves.size(); i < n; ++i) halves.push_back(exchange_pairs(t, out, halves[i]));
    result.upper_how =
        "the best of halves by axes, by a search and at random, improved by exchanges (Kernighan and Lin)";
  }
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const BytesPerSecond rate = between_halves(t, halves[i]);
    if (!result.half.empty() && rate >= result.upper) continue;
    result.upper = rate;
    result.half = halves[i];
  }
  if (chips_only) result.links = sum_between(t, result.half).links;
  if (!chips_only && !result.half.empty()) exchange_at_random(t, out, result);
}

void find_lower(const Topology& t, std::int64_t budget, Bisection& result) {
  const AllToAll load = all_to_all(t, budget);
  const double pairs = pairs_across(t.chips);
  if (load.known && load.seconds_per_byte > 0) {
    result.lower = BytesPerSecond(pairs / load.seconds_per_byte);
    result.lower_how = "from the load of an all-to-all: " + load.how;
  } else {
    result.lower_how = load.how;
  }
  const BytesPerSecond spectral = spectral_bound(t);
  if (spectral > result.lower) {
    result.lower = spectral;
    result.lower_how = "from the second eigenvalue of the Laplacian";
  }
}

}  // namespace

BytesPerSecond between_halves(const Topology& t, const std::vector<bool>& half) {
  TPUSIM_CHECK(static_cast<std::int64_t>(half.size()) == t.chips, "one side a chip");
  if (only_chips(t)) {
    const Sums s = sum_between(t, half);
    return BytesPerSecond(std::min(s.out, s.in));
  }
  const bool one_way = std::any_of(t.links.begin(), t.links.end(), [](const Link& l) { return l.twin < 0; });
  const double forth = flow_between(t, half, true);
  return BytesPerSecond(one_way ? std::min(forth, flow_between(t, half, false)) : forth);
}

BytesPerSecond spectral_bound(const Topology& t) {
  if (t.steps.empty() || t.chips < 2) return {};
  const Grid& g = t.grid;
  const std::size_t d = g.shape.size();
  double least = 0;
  std::vector<double> angle(d);
  for (std::int64_t c = 1; c < t.chips; ++c) {
    // The c-th character: how far it turns on each step along an axis, such that a full turn with its twist is whole.
    const Shape m = coordinate_of(g, c);
    for (std::size_t i = d; i-- > 0;) {
      double turn = static_cast<double>(m[i]);
      for (std::size_t j = i + 1; j < d && !g.twist.empty(); ++j) turn += static_cast<double>(g.twist[i][j]) * angle[j];
      angle[i] = turn / static_cast<double>(g.shape[i]);
    }
    double eigenvalue = 0;
    for (std::size_t s = 0; s < t.steps.size(); ++s) {
      double turn = 0;
      for (std::size_t i = 0; i < d; ++i) turn += static_cast<double>(t.steps[s][i]) * angle[i];
      eigenvalue += share_of(t, t.links[s]).value() * (1 - std::cos(2 * M_PI * turn));
    }
    if (c == 1 || eigenvalue < least) least = eigenvalue;
  }
  const double n = static_cast<double>(t.chips);
  return BytesPerSecond(least * pairs_across(t.chips) / n);
}

Bisection bisection(const Topology& t, std::int64_t budget) {
  Bisection result;
  if (t.chips < 2) {
    result.lower_how = result.upper_how = "one chip";
    return result;
  }
  if (t.bisection) {
    result.lower = result.upper = t.bisection->rate;
    result.lower_how = result.upper_how = t.bisection->how;
    return result;
  }
  find_upper(t, budget, result);
  find_lower(t, budget, result);
  // Equal but for rounding is equal; rounding never makes the lower bound the larger one.
  if (result.lower.value() > result.upper.value() * (1 - 1e-9)) result.lower = result.upper;
  return result;
}

}  // namespace tpusim::topologies
