#include "topologies/shapes/pcie_tree.hpp"

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

Topology pcie_tree(const PcieTreeOptions& o) {
  TPUSIM_CHECK(o.sockets >= 1 && o.switches_per_socket >= 1 && o.chips_per_switch >= 1, "an empty PCIe tree");
  Topology t;
  add_chips(t, chips_of({o.sockets, o.switches_per_socket, o.chips_per_switch}));
  for (Node& n : t.nodes) n.host = 0;
  t.chips_forward = false;
  const std::int32_t port = add_class(t, o.port), uplink = add_class(t, o.uplink);
  std::vector<std::int32_t> roots;
  std::int32_t chip = 0;
  for (std::int64_t s = 0; s < o.sockets; ++s) {
    const std::int32_t root = add_node(t, {NodeKind::host, 1, 0, -1});
    for (std::int64_t k = 0; k < o.switches_per_socket; ++k) {
      const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, 0, -1});
      for (std::int64_t c = 0; c < o.chips_per_switch; ++c) add_link(t, chip++, center, port);
      add_link(t, center, root, uplink);
    }
    for (std::int32_t other : roots) add_link(t, other, root, add_class(t, o.between_sockets));
    roots.push_back(root);
  }
  t.name = fmt::format("PCIe tree of {} sockets x {} switches x {} chips", o.sockets, o.switches_per_socket,
                       o.chips_per_switch);
  return t;
}

}  // namespace tpusim::topologies
