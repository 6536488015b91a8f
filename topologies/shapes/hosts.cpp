#include "topologies/shapes/hosts.hpp"

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "topologies/shapes/cards.hpp"

namespace tpusim::topologies {

Topology hosts(const Cluster& cluster) {
  TPUSIM_CHECK(cluster.kind == ClusterKind::hosts, "a cluster of slices has no switches in its hosts");
  const Chip& chip = cluster.chip;
  const std::int64_t per_host = cluster.chips_per_host;
  Topology t;
  add_chips(t, chips_of({cluster.hosts, per_host}));
  for (std::int64_t c = 0; c < t.chips; ++c)
    t.nodes[static_cast<std::size_t>(c)].host = static_cast<std::int32_t>(c / per_host);
  t.chips_forward = false;
  t.spread = Spread::destination;
  const BytesPerSecond port = chip.link_rate.value * chip.link_efficiency.value;
  if (per_host > 1) {
    const std::int32_t cls =
        add_class(t, {port, chip.link_latency.value * 0.5, LinkKind::nvlink, fabric::Level::chip, Duplex::full, 1});
    for (std::int64_t h = 0; h < cluster.hosts; ++h) {
      const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, static_cast<std::int32_t>(h), -1});
      for (std::int64_t i = 0; i < per_host; ++i) add_link(t, static_cast<std::int32_t>(h * per_host + i), center, cls);
    }
    const std::int64_t half = per_host / 2;
    if (cluster.hosts == 1)
      t.bisection = KnownBisection{port * static_cast<double>(half),
                                   "half the chips' ports, through a switch that does not block"};
  }
  if (cluster.hosts > 1) {
    const CardLinks cards = card_links(chip, fabric::Level::host, host_detour);
    add_cards(t, chip, cards);
    t.bisection = bisection_over_cards(chip, cards, cluster.hosts, per_host, per_host);
  }
  t.name = fmt::format("{} hosts of {} {}", cluster.hosts, per_host, chip.name);
  return t;
}

}  // namespace tpusim::topologies
