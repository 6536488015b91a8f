#include "topologies/shapes/dragonfly.hpp"

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

Topology dragonfly(const DragonflyOptions& o) {
  TPUSIM_CHECK(o.groups >= 1 && o.routers >= 1 && o.chips >= 1 && o.globals >= 0, "an empty dragonfly");
  const std::int64_t ports = o.routers * o.globals;
  TPUSIM_CHECK(o.groups - 1 <= ports, "more groups than global links of a group reach");
  Topology t;
  add_chips(t, chips_of({o.groups, o.routers, o.chips}));
  t.chips_forward = false;
  const std::int32_t port = add_class(t, o.port), local = add_class(t, o.local), global = add_class(t, o.global);
  for (std::int64_t r = 0; r < o.groups * o.routers; ++r) {
    const std::int32_t router = add_node(t, {NodeKind::switch_node, 0, -1, -1});
    for (std::int64_t c = 0; c < o.chips; ++c) {
      const std::int64_t chip = r * o.chips + c;
      t.nodes[static_cast<std::size_t>(chip)].host = static_cast<std::int32_t>(chip);
      add_link(t, static_cast<std::int32_t>(chip), router, port);
    }
  }
  const auto router = [&](std::int64_t group, std::int64_t i) {
    return static_cast<std::int32_t>(t.chips + group * o.routers + i);
  };
  for (std::int64_t g = 0; g < o.groups; ++g)
    for (std::int64_t i = 0; i < o.routers; ++i)
      for (std::int64_t j = i + 1; j < o.routers; ++j) add_link(t, router(g, i), router(g, j), local);
  const std::int64_t others = o.groups - 1;
  const std::int64_t used = others == 0 ? 0 : ports / others * others;
  for (std::int64_t g = 0; g < o.groups; ++g)
    for (std::int64_t k = 0; k < used; ++k) {
      const std::int64_t offset = k % others, far = (g + 1 + offset) % o.groups;
      if (far < g) continue;  // seen from the other end
      const std::int64_t back = k - offset + others - 1 - offset;
      add_link(t, router(g, k / o.globals), router(far, back / o.globals), global);
    }
  t.name = fmt::format("dragonfly of {} groups x {} routers x {} chips", o.groups, o.routers, o.chips);
  return t;
}

}  // namespace tpusim::topologies
