#include "topologies/rings.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "topologies/ring_search.hpp"
#include "topologies/routes.hpp"

namespace tpusim::topologies {

namespace {

// Of the search by squares: 64 x 64 x 4096 / 2 squares of 8 bytes are 67 MB.
constexpr std::int64_t kSearchChips = 4096;
constexpr std::size_t kSearchSteps = 64;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::int64_t least_degree(const Topology& t) {
  std::vector<std::int64_t> degree(at(t.chips), 0);
  for (const Link& l : t.links)
    if (l.from < t.chips) ++degree[at(l.from)];
  return *std::min_element(degree.begin(), degree.end());
}

// A way through all chips of the axes but one, each next to the last: back and forth, axis by axis.
std::vector<std::int64_t> snake(const Grid& g, std::size_t without) {
  std::vector<std::int64_t> way{0};
  std::int64_t stride = 1;
  std::vector<std::int64_t> strides(g.shape.size());
  for (std::size_t i = g.shape.size(); i-- > 0; stride *= g.shape[i]) strides[i] = stride;
  for (std::size_t i = 0; i < g.shape.size(); ++i) {
    if (i == without) continue;
    std::vector<std::int64_t> longer;
    for (std::int64_t k = 0; k < g.shape[i]; ++k) {
      for (std::int64_t c : way) longer.push_back(c + k * strides[i]);
      std::reverse(way.begin(), way.end());
    }
    way = std::move(longer);
  }
  return way;
}

// The comb on `rows` x `columns`, rows even: down the first column, back and forth over the rest.
std::vector<std::pair<std::int64_t, std::int64_t>> comb(std::int64_t rows, std::int64_t columns) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ring;
  for (std::int64_t r = rows; r-- > 0;) ring.push_back({r, 0});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 1; k < columns; ++k) ring.push_back({r, r % 2 == 0 ? k : columns - k});
  return ring;
}

// A ring through a grid with an even number of chips and two axes of two or more; empty for others.
std::vector<std::int32_t> grid_ring(const Grid& g, std::int64_t chips) {
  std::vector<std::int32_t> ring;
  const auto axis = static_cast<std::size_t>(std::max_element(g.shape.begin(), g.shape.end()) - g.shape.begin());
  const std::vector<std::int64_t> way = snake(g, axis);
  const auto length = static_cast<std::int64_t>(way.size());
  const std::int64_t size = g.shape[axis];
  if (length < 2 || size < 2 || chips % 2 != 0) return ring;
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < g.shape.size(); ++i) stride *= g.shape[i];
  const bool along = length % 2 == 0;
  for (const auto& [row, column] : comb(along ? length : size, along ? size : length))
    ring.push_back(static_cast<std::int32_t>(way[at(along ? row : column)] + (along ? column : row) * stride));
  return ring;
}

// One ring around a single generator or axis where it reaches all chips.
std::vector<std::vector<std::int32_t>> step_rings(const Topology& t) {
  std::vector<std::vector<std::int32_t>> rings;
  const std::size_t degree = t.steps.size();
  for (std::size_t g = 0; g < degree; ++g) {
    if (static_cast<std::size_t>(t.links[g].twin) % degree <= g) continue;  // its reverse, or half the chips
    std::vector<std::int32_t> ring{0};
    for (std::int32_t v = t.links[g].to; v != 0; v = t.links[at(v) * degree + g].to) ring.push_back(v);
    if (static_cast<std::int64_t>(ring.size()) == t.chips) rings.push_back(std::move(ring));
  }
  return rings;
}

Rings between_chips(const Topology& t, std::int64_t budget) {
  Rings r;
  r.at_most = least_degree(t) / 2;
  r.how = "none found";
  if (!t.steps.empty()) {
    r.rings = step_rings(t);
    r.how = "along single generators";
    if (static_cast<std::int64_t>(r.rings.size()) < r.at_most && t.chips <= kSearchChips &&
        t.steps.size() <= kSearchSteps) {
      std::vector<std::vector<std::int32_t>> joined = join_cycles(t, budget);
      if (joined.size() > r.rings.size()) {
        r.rings = std::move(joined);
        r.how = "cycles of the axes or generators, joined on squares";
      }
    }
  }
  if (r.rings.empty() && !t.grid.axis_class.empty()) {
    std::vector<std::int32_t> ring = grid_ring(t.grid, t.chips);
    if (!ring.empty()) {
      r.rings.push_back(std::move(ring));
      r.how = "a comb through the grid";
    }
  }
  return r;
}

Rings through_switches(const Topology& t, std::int64_t budget) {
  Rings r;
  r.at_most = least_degree(t);
  r.how = "not searched: too many chips and links";
  const auto work = static_cast<std::int64_t>(t.links.size() + t.nodes.size());
  if (work > budget / t.chips) return r;
  const Routes routes(t);
  std::vector<bool> used(t.links.size(), false);
  bool fine = true;
  std::vector<std::int32_t> ring;
  for (std::int32_t c = 0; c < t.chips && fine; ++c) {
    const Route route = routes.between(c, static_cast<std::int32_t>((c + 1) % t.chips));
    fine = route.verdict.feasible;
    for (std::int32_t link : route.links) {
      fine = fine && !used[at(link)];
      used[at(link)] = true;
    }
    ring.push_back(c);
  }
  if (fine) r.rings.push_back(std::move(ring));
  r.how =
      fine ? "chips in the order of their numbers, one direction of a link" : "none in the order of the chips' numbers";
  return r;
}

}  // namespace

bool are_edge_disjoint_rings(const Topology& t, const std::vector<std::vector<std::int32_t>>& rings) {
  const Adjacency out = links_from(t);
  std::vector<bool> used(t.links.size(), false);
  for (const std::vector<std::int32_t>& ring : rings) {
    if (static_cast<std::int64_t>(ring.size()) != t.chips) return false;
    std::vector<bool> met(at(t.chips), false);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (ring[i] < 0 || ring[i] >= t.chips || met[at(ring[i])]) return false;
      met[at(ring[i])] = true;
      const std::int32_t next = ring[(i + 1) % ring.size()];
      bool found = false;
      for (std::int32_t k = out.first[at(ring[i])]; k < out.first[at(ring[i]) + 1] && !found; ++k) {
        const std::int32_t link = out.link[at(k)];
        const Link& l = t.links[at(link)];
        if (l.to != next || used[at(link)]) continue;  // used: or a parallel one
        used[at(link)] = found = true;
        if (l.twin >= 0) used[at(l.twin)] = true;
      }
      if (!found) return false;
    }
  }
  return true;
}

Rings edge_disjoint_rings(const Topology& t, std::int64_t budget) {
  if (t.chips < 3) {
    Rings r;
    r.how = "a ring has three chips or more";
    return r;
  }
  if (static_cast<std::size_t>(t.chips) != t.nodes.size()) return through_switches(t, budget);
  Rings r = between_chips(t, budget);
  TPUSIM_CHECK(are_edge_disjoint_rings(t, r.rings), "rings of " + t.name + " that are none");
  return r;
}

}  // namespace tpusim::topologies
