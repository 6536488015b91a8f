// How equal parts of a cluster (slices, hosts) meet: chip - PCIe - network card - a network that does not block.
//
// A card belongs to a host, whose chips share it, or to one chip, as the chip's card says. What the chips of a host
// send together is held to the card's rate, while one alone may use all of it. The network is one switch: its own tiers
// are ignored. A message's latency lies on the two links at the cards, a half each; PCIe adds none of its own. PCIe has
// the weight `detour`, which has to be more than any way inside a part, so that chips of one part do not take the
// cards.
//
// Bisection. With p parts of m chips, n in all, each chip can count on the share b of its card, out and in at the same
// time, so that any half can send floor(n/2) b to the other over the network alone, whatever else joins them. Where p
// is even, whole parts on either side are joined by nothing but their cards: n/2 b. So that is exact for even p. Own
// derivation; it needs cards that are shared by equally many chips, and PCIe that is no slower than a chip's share.
#pragma once

#include <optional>

#include "topologies/topology.hpp"

namespace tpusim::topologies {

// The two classes of link: chip to card, card to network.
struct CardLinks {
  LinkClass pcie, network;
};
CardLinks card_links(const Chip& chip, fabric::Level level, std::int32_t detour);

// Adds a card to every host (or chip), and the network. The chips' `host` and `slice` have to be set, hosts from 0 on.
void add_cards(Topology& topology, const Chip& chip, const CardLinks& links);

// The exact bisection of `parts` equal parts that meet over cards; nullopt where the derivation above does not hold.
std::optional<KnownBisection> bisection_over_cards(const Chip& chip, const CardLinks& links, std::int64_t parts,
                                                   std::int64_t part_chips, std::int64_t chips_per_host);

}  // namespace tpusim::topologies
