#include "topologies/shapes/cards.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

CardLinks card_links(const Chip& chip, fabric::Level level, std::int32_t detour) {
  const BytesPerSecond card = chip.host_nic_rate ? chip.host_nic_rate->value : chip.chip_nic_rate->value;
  const LinkKind kind = level == fabric::Level::slice ? LinkKind::dcn : LinkKind::nic;
  return {{chip.pcie_rate.value, Seconds(0), LinkKind::pcie, level, Duplex::full, detour},
          {card * chip.nic_efficiency.value, chip.nic_latency.value * 0.5, kind, level, Duplex::full, 1}};
}

void add_cards(Topology& t, const Chip& chip, const CardLinks& links) {
  const std::int32_t pcie = add_class(t, links.pcie), outside = add_class(t, links.network);
  const bool own = !chip.host_nic_rate;  // a card a chip
  const std::int32_t network = add_node(t, {NodeKind::switch_node, 0, -1, -1});
  std::vector<std::int32_t> card_of_host;
  for (std::int32_t c = 0; c < t.chips; ++c) {
    const Node of = t.nodes[static_cast<std::size_t>(c)];
    TPUSIM_CHECK(of.host >= 0, "a chip without a host has no card");
    const auto host = static_cast<std::size_t>(of.host);
    if (card_of_host.size() <= host) card_of_host.resize(host + 1, -1);
    if (own || card_of_host[host] < 0) {
      card_of_host[host] = add_node(t, {NodeKind::nic, 0, of.host, of.slice});
      add_link(t, card_of_host[host], network, outside);
    }
    add_link(t, c, card_of_host[host], pcie);
  }
}

std::optional<KnownBisection> bisection_over_cards(const Chip& chip, const CardLinks& links, std::int64_t parts,
                                                   std::int64_t part_chips, std::int64_t chips_per_host) {
  const bool shared = chip.host_nic_rate.has_value();
  if (parts % 2 != 0 || (shared && part_chips % chips_per_host != 0)) return std::nullopt;
  const BytesPerSecond share = links.network.bandwidth / static_cast<double>(shared ? chips_per_host : 1);
  if (links.pcie.bandwidth < share) return std::nullopt;
  const std::int64_t half = parts / 2 * part_chips;
  return KnownBisection{share * static_cast<double>(half),
                        "the cards of half the chips, in closed form: a half can always send that much, and whole "
                        "parts on either side no more"};
}

}  // namespace tpusim::topologies
