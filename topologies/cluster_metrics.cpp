#include "topologies/cluster_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
#include "topologies/shapes/cards.hpp"
#include "topologies/shapes/hosts.hpp"
#include "topologies/shapes/slices.hpp"

namespace tpusim::topologies {

namespace {

// Links on the way between two parts: chip, card, network, card, chip.
constexpr std::int64_t kBetweenParts = 4;

struct Parts {
  std::int64_t count = 1, chips = 1, cards = 0;  // count of parts; of one part
  bool shared = false;                           // a card for several chips
  std::string name;                              // "slice", "host"
  CardLinks links;
};

Parts parts_of(const Cluster& cluster) {
  const bool slices = cluster.kind == ClusterKind::slices;
  const fabric::Level level = slices ? fabric::Level::slice : fabric::Level::host;
  Parts p;
  p.count = slices ? cluster.slices : cluster.hosts;
  p.chips = cluster.chips() / p.count;
  p.shared = cluster.chip.host_nic_rate.has_value();
  p.cards = p.shared ? cluster.hosts / p.count : p.chips;
  p.name = slices ? "slice" : "host";
  p.links = card_links(cluster.chip, level, slices ? slice_detour(cluster.slice_shape) : host_detour);
  return p;
}

std::vector<LinkCount> count_links(const Topology& part, std::int64_t parts) {
  std::vector<LinkCount> out;
  for (const LinkClass& cls : part.classes) out.push_back({cls, 0});
  for (std::size_t i = 0; i < part.links.size(); ++i) {
    const Link& l = part.links[i];
    if (l.twin < 0 || static_cast<std::size_t>(l.twin) > i) out[static_cast<std::size_t>(l.cls)].cables += parts;
  }
  out.erase(std::remove_if(out.begin(), out.end(), [](const LinkCount& c) { return c.cables == 0; }), out.end());
  return out;
}

Distances join_distances(const Parts& p, const Distances& part) {
  Distances d = part;
  const auto m = static_cast<double>(p.chips), n = m * static_cast<double>(p.count);
  d.diameter = std::max(part.diameter, kBetweenParts);
  d.mean_hops = ((m - 1) * part.mean_hops + static_cast<double>(kBetweenParts) * (n - m)) / (n - 1);
  d.how = fmt::format("from one {0} ({1}) and {2} links between chips of different {0}s", p.name,
                      p.chips > 1 ? part.how : "one chip", kBetweenParts);
  return d;
}

Bisection join_bisection(const Cluster& cluster, const Parts& p, const Bisection& part) {
  Bisection b;
  const auto known = bisection_over_cards(cluster.chip, p.links, p.count, p.chips, cluster.chips_per_host);
  if (known) {
    b.lower = b.upper = known->rate;
    b.lower_how = b.upper_how = known->how;
    return b;
  }
  // A card that is not full has its rate for fewer chips: the share of a full one is less.
  const BytesPerSecond card = p.links.network.bandwidth, pcie = p.links.pcie.bandwidth;
  const BytesPerSecond share =
      std::min(pcie, card / static_cast<double>(p.shared ? std::min(cluster.chips_per_host, p.chips) : 1));
  const std::int64_t half_of_all = p.chips * p.count / 2, half_of_one = p.chips / 2, cards = p.count / 2 * p.cards;
  b.lower = share * static_cast<double>(half_of_all);
  b.lower_how = "from what half of the chips can send over their cards in any case";
  // Whole parts on either side, and where p is odd one part in two halves, whose chips can also use their cards.
  b.upper = card * static_cast<double>(cards);
  if (p.count % 2 != 0) b.upper = b.upper + part.upper + std::min(pcie, card) * static_cast<double>(half_of_one);
  const bool whole = p.count % 2 == 0 || p.chips == 1;
  b.upper_how = whole ? fmt::format("halves that are whole {}s", p.name)
                      : fmt::format("halves that cut one {} in two and leave the others whole", p.name);
  if (b.lower.value() > b.upper.value() * (1 - 1e-9)) b.lower = b.upper;
  return b;
}

Rings join_rings(const Parts& p, const Rings& part, std::int64_t least_degree) {
  Rings r;
  r.at_most = std::min(least_degree, p.cards);
  if (p.chips * p.count < 3) {
    r.at_most = 0;
    r.how = "a ring has three chips or more";
    return r;
  }
  std::vector<std::int32_t> way(static_cast<std::size_t>(p.chips));
  std::iota(way.begin(), way.end(), 0);
  if (p.chips > 2 && part.rings.empty()) {
    r.how = fmt::format("no ring through one {} is known that could be opened", p.name);
    return r;
  }
  if (p.chips > 2) way = part.rings.front();
  r.rings.emplace_back();
  for (std::int64_t i = 0; i < p.count; ++i)
    for (std::int32_t chip : way) r.rings[0].push_back(static_cast<std::int32_t>(i * p.chips + chip));
  r.how = p.chips > 2 ? fmt::format("a ring of each {}, opened at one link and joined over the cards there", p.name)
                      : "chips in the order of their numbers, over their cards";
  r.how += ", one direction of a link; more were not searched";
  return r;
}

Metrics join(const Cluster& cluster, const Parts& p, const Metrics& part) {
  Metrics m;
  m.chips = checked_mul(p.count, part.chips, "the chips of a cluster");
  m.hosts = cluster.hosts;
  m.cards = p.count * p.cards;
  m.switches = p.count * part.switches + 1;
  m.links = p.count * (part.links + p.chips + p.cards);
  m.min_degree = part.min_degree + 1;
  m.max_degree = part.max_degree + 1;
  m.injection = part.injection + p.links.pcie.bandwidth;
  m.distances = join_distances(p, part.distances);
  m.bisection = join_bisection(cluster, p, part.bisection);
  m.rings = join_rings(p, part.rings, m.min_degree);
  return m;
}

}  // namespace

Topology topology_of(const Cluster& cluster) {
  if (cluster.kind == ClusterKind::hosts) return hosts(cluster);
  DiagnosticSink sink;
  std::optional<Topology> t = slices(cluster, {}, sink);
  TPUSIM_CHECK(t.has_value(), "slices without a twist are always built");
  return *std::move(t);
}

Topology part_of(const Cluster& cluster) {
  Cluster one = cluster;
  const std::int64_t parts = cluster.kind == ClusterKind::slices ? cluster.slices : cluster.hosts;
  one.slices = 1;
  one.hosts = cluster.hosts / parts;
  // The fabric says how many chips there are: without the axis between the parts.
  if (parts > 1) one.fabric.axes.erase(one.fabric.axes.begin());
  return topology_of(one);
}

ClusterMetrics measure(const Cluster& cluster, std::int64_t budget) {
  ClusterMetrics out;
  const Parts p = parts_of(cluster);
  if (p.chips > max_part_chips)
    throw CapacityError(
        fmt::format("a {} of {} chips is not built as a graph: at most {} are", p.name, p.chips, max_part_chips));
  const Topology part = part_of(cluster);
  out.parts = p.count;
  out.part = measure(part, budget);
  out.links = count_links(part, p.count);
  if (p.count == 1) {
    out.whole = out.part;
    return out;
  }
  out.whole = join(cluster, p, out.part);
  out.links.push_back({p.links.pcie, p.count * p.chips});
  out.links.push_back({p.links.network, p.count * p.cards});
  return out;
}

}  // namespace tpusim::topologies
