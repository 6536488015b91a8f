#include "topologies/shapes/star.hpp"

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

Topology star(const StarOptions& options) {
  TPUSIM_CHECK(options.switches >= 1, "a star without a switch");
  Topology t;
  add_chips(t, options.chips);
  for (Node& n : t.nodes) n.host = 0;
  t.chips_forward = false;
  const std::int32_t cls = add_class(t, {options.chip_rate / static_cast<double>(options.switches),
                                         options.latency * 0.5, options.kind, options.level, Duplex::full, 1});
  for (std::int64_t s = 0; s < options.switches; ++s) {
    const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, 0, -1});
    for (std::int64_t c = 0; c < options.chips; ++c) add_link(t, static_cast<std::int32_t>(c), center, cls);
  }
  t.name = options.switches == 1 ? fmt::format("{} chips on a switch", options.chips)
                                 : fmt::format("{} chips on {} switches", options.chips, options.switches);
  const std::int64_t half = options.chips / 2;
  if (half > 0)
    t.bisection = KnownBisection{options.chip_rate * static_cast<double>(half),
                                 "half the chips' ports, through switches that do not block"};
  return t;
}

StarOptions nvswitch_node(const Chip& chip) {
  const auto starts = [&](const char* prefix) { return chip.name.rfind(prefix, 0) == 0; };
  StarOptions o;
  o.chips = static_cast<std::int64_t>(chip.chips_per_host.value);
  o.switches = starts("h100") || starts("h200") ? 4 : starts("b") ? 2 : 6;
  o.chip_rate = chip.link_rate.value;
  o.latency = chip.link_latency.value;
  o.kind = LinkKind::nvlink;
  return o;
}

StarOptions nvl72(const Chip& b200) {
  StarOptions o = nvswitch_node(b200);
  o.chips = 72;
  o.switches = 18;
  return o;
}

}  // namespace tpusim::topologies
