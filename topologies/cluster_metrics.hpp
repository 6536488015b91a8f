// What the network of a cluster is like, at any size.
//
// One part (a TPU slice, or a host's chips on their switch) is built as a graph and measured; the whole follows by
// arithmetic, since its parts are equal and meet only through cards and one network that does not block (cards.hpp).
// With p parts of m chips, n = p m: nodes and links add up. Chips of different parts are 4 links apart (chip, card,
// network, card, chip), so the diameter is the larger of the part's and 4, and the mean over ordered pairs of different
// chips is ((m - 1) mean + 4 (n - m)) / (n - 1). Bisection: closed form for even p; for odd p the lower bound is what
// floor(n/2) chips can send over their cards, the upper one the halves that cut one part in two and leave the others
// whole. Rings: a part's ring, opened at one link, in each part, joined over the cards of the chips there. Own
// derivations; tests compare each number with the measured graph of the whole.
#pragma once

#include <optional>
#include <vector>

#include "topologies/builders.hpp"
#include "topologies/metrics.hpp"

namespace tpusim::topologies {

struct LinkCount {
  LinkClass cls;
  std::int64_t cables = 0;  // of the whole cluster
  bool operator==(const LinkCount&) const = default;
};

struct ClusterMetrics {
  std::int64_t parts = 1;  // slices or hosts
  Metrics part;            // of one of them
  Metrics whole;           // with several parts: without the load of an all-to-all and bounds on collectives
  std::vector<LinkCount> links;
};

// Parts beyond this are not built as a graph: CapacityError. Near it a grid takes 60 MB and about 1 s.
inline constexpr std::int64_t max_part_chips = std::int64_t{1} << 17;

ClusterMetrics measure(const Cluster& cluster, std::int64_t budget = default_budget);

// The graph of the whole cluster, and of one part alone. CapacityError beyond a topology's bounds.
Topology topology_of(const Cluster& cluster);
Topology part_of(const Cluster& cluster);

}  // namespace tpusim::topologies
