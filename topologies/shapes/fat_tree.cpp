#include "topologies/shapes/fat_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::topologies {

namespace {

std::int64_t uplinks_for(std::int64_t down, double oversubscription) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(static_cast<double>(down) / oversubscription)));
}

class Builder {
 public:
  explicit Builder(const FatTreeOptions& options) : o_(options) {}

  Topology build() {
    check();
    add_chips(t_, chips_of({o_.hosts, o_.chips_per_host}));
    for (std::int64_t c = 0; c < t_.chips; ++c)
      t_.nodes[static_cast<std::size_t>(c)].host = static_cast<std::int32_t>(c / o_.chips_per_host);
    t_.chips_forward = o_.chips_forward;
    t_.spread = Spread::destination;
    if (o_.inner) add_inner();
    add_leaves();
    if (leaves_.size() > 1 && o_.leaves_per_pod == 0) add_spines(leaves_, spine_count());
    if (leaves_.size() > 1 && o_.leaves_per_pod > 0) add_pods();
    name_it();
    know_bisection();
    return std::move(t_);
  }

 private:
  void check() const {
    TPUSIM_CHECK(o_.hosts >= 1 && o_.chips_per_host >= 1 && o_.chips_per_leaf >= 1, "an empty fat tree");
    TPUSIM_CHECK(o_.oversubscription >= 1 && o_.core_oversubscription >= 1, "an oversubscription below 1");
    TPUSIM_CHECK(o_.leaves_per_pod >= 0 && o_.spines >= 0, "a negative number of switches");
    TPUSIM_CHECK(uplinks() % spine_count() == 0, "the spines do not divide the uplinks of a leaf");
  }

  std::int64_t uplinks() const { return uplinks_for(o_.chips_per_leaf, o_.oversubscription); }
  std::int64_t spine_count() const { return o_.spines > 0 ? o_.spines : uplinks(); }

  void add_inner() {
    const std::int32_t cls = add_class(t_, *o_.inner);
    for (std::int64_t h = 0; h < o_.hosts && o_.chips_per_host > 1; ++h) {
      const std::int32_t center = add_node(t_, {NodeKind::switch_node, 0, static_cast<std::int32_t>(h), -1});
      for (std::int64_t i = 0; i < o_.chips_per_host; ++i)
        add_link(t_, static_cast<std::int32_t>(h * o_.chips_per_host + i), center, cls);
    }
  }

  std::int64_t leaf_of(std::int64_t chip) const {
    if (!o_.rails) return chip / o_.chips_per_leaf;
    return chip / o_.chips_per_host / o_.chips_per_leaf * o_.chips_per_host + chip % o_.chips_per_host;
  }

  void add_leaves() {
    const std::int64_t count =
        o_.rails ? ceil_div(o_.hosts, o_.chips_per_leaf) * o_.chips_per_host : ceil_div(t_.chips, o_.chips_per_leaf);
    for (std::int64_t i = 0; i < count; ++i) leaves_.push_back(add_node(t_, {NodeKind::switch_node, 0, -1, -1}));
    const std::int32_t cls = add_class(t_, o_.card);
    for (std::int64_t c = 0; c < t_.chips; ++c)
      add_link(t_, static_cast<std::int32_t>(c), leaves_[static_cast<std::size_t>(leaf_of(c))], cls);
  }

  // Joins the leaves with `count` spines, equally many links to each.
  std::vector<std::int32_t> add_spines(const std::vector<std::int32_t>& leaves, std::int64_t count) {
    const std::int32_t cls = add_class(t_, o_.trunk);
    std::vector<std::int32_t> spines;
    for (std::int64_t s = 0; s < count; ++s) spines.push_back(add_node(t_, {NodeKind::switch_node, 1, -1, -1}));
    for (std::int32_t leaf : leaves)
      for (std::int32_t spine : spines)
        for (std::int64_t k = 0; k < uplinks() / count; ++k) add_link(t_, leaf, spine, cls);
    return spines;
  }

  void add_pods() {
    const std::int64_t pods = ceil_div(static_cast<std::int64_t>(leaves_.size()), o_.leaves_per_pod);
    const std::int64_t per_spine =
        uplinks_for(o_.leaves_per_pod * (uplinks() / spine_count()), o_.core_oversubscription);
    const std::int32_t cls = add_class(t_, o_.trunk);
    std::vector<std::int32_t> cores;
    for (std::int64_t c = 0; pods > 1 && c < spine_count() * per_spine; ++c)
      cores.push_back(add_node(t_, {NodeKind::switch_node, 2, -1, -1}));
    for (std::int64_t p = 0; p < pods; ++p) {
      const auto begin = leaves_.begin() + p * o_.leaves_per_pod;
      const auto end = std::min(leaves_.end(), begin + o_.leaves_per_pod);
      const std::vector<std::int32_t> spines = add_spines({begin, end}, spine_count());
      for (std::size_t c = 0; c < cores.size(); ++c)
        add_link(t_, spines[c / static_cast<std::size_t>(per_spine)], cores[c], cls);
    }
  }

  void name_it() {
    t_.name = fmt::format("{} of {} chips, {} a leaf, oversubscription {:g}",
                          o_.rails ? "rail-optimised fat tree" : "fat tree", t_.chips, o_.chips_per_leaf,
                          o_.oversubscription);
  }

  void know_bisection() {
    const auto leaves = static_cast<std::int64_t>(leaves_.size());
    const bool inner = o_.inner && o_.chips_per_host > 1;
    const bool even = leaves % 2 == 0 || leaves == 1;
    if (inner || o_.rails || !even || t_.chips < 2 || t_.chips != leaves * o_.chips_per_leaf) return;
    const bool full = o_.trunk.bandwidth >= o_.card.bandwidth && o_.oversubscription == 1;
    if (o_.leaves_per_pod > 0 && leaves > 1 && (!full || o_.core_oversubscription != 1)) return;
    const std::int64_t half = t_.chips / 2, half_leaves = leaves / 2;
    const BytesPerSecond ports = o_.card.bandwidth * static_cast<double>(half);
    const BytesPerSecond trunks = o_.trunk.bandwidth * static_cast<double>(half_leaves * uplinks());
    const bool limited = leaves > 1 && trunks < ports;
    t_.bisection = KnownBisection{limited ? trunks : ports, limited ? "the uplinks of half the leaves"
                                                                    : "half the chips' ports: no tier limits them"};
  }

  const FatTreeOptions& o_;
  Topology t_;
  std::vector<std::int32_t> leaves_;
};

}  // namespace

Topology fat_tree(const FatTreeOptions& options) {
  return Builder(options).build();
}

FatTreeOptions superpod(const Chip& chip, std::int64_t hosts) {
  FatTreeOptions o;
  o.hosts = hosts;
  o.chips_per_host = static_cast<std::int64_t>(chip.chips_per_host.value);
  o.chips_per_leaf = 32;
  o.rails = true;
  o.chips_forward = true;
  o.inner = LinkClass{
      chip.link_rate.value, chip.link_latency.value * 0.5, LinkKind::nvlink, fabric::Level::chip, Duplex::full, 1};
  o.card.bandwidth = chip.nic_share();
  o.trunk.bandwidth = o.card.bandwidth;
  return o;
}

}  // namespace tpusim::topologies
