#include "topologies/shapes/slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/base/check.hpp"
#include "topologies/shapes/cards.hpp"
#include "topologies/shapes/grid.hpp"

namespace tpusim::topologies {

namespace {

LinkClass ici_of(const Chip& chip) {
  return {chip.link_rate.value * chip.link_efficiency.value,
          chip.link_latency.value,
          LinkKind::ici,
          fabric::Level::chip,
          Duplex::full,
          1};
}

void add_switches(Topology& t, const fabric::PhysicalAxis& axis, std::int64_t stride) {
  const std::int32_t cls = add_class(t, {axis.beta, axis.alpha * 0.5, LinkKind::network, axis.level, Duplex::full, 1});
  for (std::int64_t chip = 0; chip < t.chips; ++chip) {
    if (chip / stride % axis.size != 0) continue;  // the first member of each group stands for it
    const std::int32_t center = add_node(t, {NodeKind::switch_node, 0, -1, -1});
    for (std::int64_t i = 0; i < axis.size; ++i) add_link(t, static_cast<std::int32_t>(chip + i * stride), center, cls);
  }
}

}  // namespace

std::vector<std::int32_t> hosts_of(const Shape& shape, std::int64_t chips_per_host) {
  const std::int64_t chips = chips_of(shape);
  Shape block(shape.size(), 1);
  if (shape.size() >= 2 && (chips_per_host == 4 || chips_per_host == 8)) {
    block[0] = chips_per_host / 2;
    block[1] = 2;
    if (shape[0] % block[0] != 0 && shape[1] % block[0] == 0) std::swap(block[0], block[1]);
  }
  bool divides = std::accumulate(block.begin(), block.end(), std::int64_t{1}, std::multiplies<>()) == chips_per_host;
  for (std::size_t i = 0; i < shape.size(); ++i) divides = divides && shape[i] % block[i] == 0;
  std::vector<std::int32_t> host(static_cast<std::size_t>(chips));
  const Grid grid{shape, {}, {}, {}};
  for (std::int64_t c = 0; c < chips; ++c) {
    std::int64_t index = c / chips_per_host;
    if (divides) {
      const Shape at = coordinate_of(grid, c);
      index = 0;
      for (std::size_t i = 0; i < shape.size(); ++i) index = index * (shape[i] / block[i]) + at[i] / block[i];
    }
    host[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(index);
  }
  return host;
}

std::int32_t slice_detour(const Shape& shape) {
  return static_cast<std::int32_t>(1 + std::accumulate(shape.begin(), shape.end(), std::int64_t{0}));
}

std::optional<Topology> slices(const Cluster& cluster, const SliceOptions& options, DiagnosticSink& sink) {
  TPUSIM_CHECK(cluster.kind == ClusterKind::slices, "a cluster of hosts has no slices");
  const Shape& shape = cluster.slice_shape;
  GridOptions one{shape, wrapped_axes(cluster.chip.slices, shape), {ici_of(cluster.chip)}, {}};
  if (options.twisted) {
    one.twist = slice_twist(shape);
    if (one.twist.empty() || std::count(one.wrapped.begin(), one.wrapped.end(), true) != 3) {
      Shape sorted = shape;
      std::sort(sorted.begin(), sorted.end());
      sink.error(
          Code::bad_value, options.pointer,
          "a twisted torus has the shape k x k x 2k or k x 2k x 2k, k a multiple of 4, found " + shape_text(shape),
          slice_twist(sorted).empty() ? "" : shape_text(sorted), {"4x4x8", "4x8x8", "8x8x16", "8x16x16"});
      return std::nullopt;
    }
  }
  const std::vector<std::int32_t> host = hosts_of(shape, cluster.chips_per_host);
  const std::int32_t hosts = host.empty() ? 1 : *std::max_element(host.begin(), host.end()) + 1;
  Topology t;
  if (cluster.slices == 1) {
    t = grid(one);
  } else {
    add_chips(t, chips_of({cluster.slices, chips_of(shape)}));
    Grid g{shape, one.wrapped, one.twist, {}};
    g.axis_class.assign(shape.size(), add_class(t, one.links[0]));
    const auto slice_chips = static_cast<std::int64_t>(host.size());
    for (std::int64_t s = 0; s < cluster.slices; ++s) add_grid_links(t, g, s * slice_chips);
    t.grid.shape = shape;
    t.grid.shape.insert(t.grid.shape.begin(), cluster.slices);
    t.grid.wrapped.assign(t.grid.shape.size(), false);
  }
  for (std::int64_t c = 0; c < t.chips; ++c) {
    Node& n = t.nodes[static_cast<std::size_t>(c)];
    const auto slice = static_cast<std::int32_t>(c / static_cast<std::int64_t>(host.size()));
    n.slice = slice;
    n.host = slice * hosts + host[static_cast<std::size_t>(c % static_cast<std::int64_t>(host.size()))];
  }
  if (cluster.slices > 1) {
    const CardLinks cards = card_links(cluster.chip, fabric::Level::slice, slice_detour(shape));
    add_cards(t, cluster.chip, cards);
    t.bisection = bisection_over_cards(cluster.chip, cards, cluster.slices, static_cast<std::int64_t>(host.size()),
                                       cluster.chips_per_host);
  }
  t.name = fmt::format("{}{} {}", options.twisted ? "twisted " : "", cluster.chip.name, shape_text(shape));
  if (cluster.slices > 1) t.name = fmt::format("{} slices of {}", cluster.slices, t.name);
  return t;
}

Topology topology_of(const fabric::Fabric& fabric) {
  GridOptions neighbours;
  bool switched = false;
  for (const fabric::PhysicalAxis& axis : fabric.axes) {
    neighbours.shape.push_back(axis.size);
    neighbours.wrapped.push_back(axis.link == fabric::Link::ring);
    neighbours.links.push_back({axis.beta, axis.alpha, LinkKind::ici, axis.level, Duplex::full, 1});
    switched = switched || (axis.link == fabric::Link::switched && axis.size > 1);
  }
  if (!switched) return grid(neighbours);
  Topology t;
  std::int64_t stride = chips_of(neighbours.shape);
  add_chips(t, stride);
  t.grid = {neighbours.shape, neighbours.wrapped, {}, {}};
  for (std::size_t i = 0; i < fabric.axes.size(); ++i) {
    const fabric::PhysicalAxis& axis = fabric.axes[i];
    const std::int64_t group = stride;
    stride /= axis.size;
    if (axis.size == 1) continue;
    if (axis.link == fabric::Link::switched) {
      add_switches(t, axis, stride);
      continue;
    }
    // One axis alone, as the grid of the chips that differ on it.
    Grid line{{t.chips / group, axis.size, stride}, {false, axis.link == fabric::Link::ring, false}, {}, {}};
    for (std::int64_t c = 0; c < t.chips; ++c) {
      const std::int64_t to = neighbour(line, c, 1, 1);
      if (to < 0 || to == c || (axis.size == 2 && to < c)) continue;
      add_link(t, static_cast<std::int32_t>(c), static_cast<std::int32_t>(to), add_class(t, neighbours.links[i]));
    }
  }
  t.name = "graph of a fabric of " + shape_text(neighbours.shape);
  return t;
}

}  // namespace tpusim::topologies
