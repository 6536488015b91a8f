#include "topologies/shapes/grid.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

namespace {

// The axis closes on itself with one link or two: every chip sees the same on it.
bool closed(const Grid& g, std::size_t axis) {
  return g.wrapped[axis] || g.shape[axis] <= 2;
}

// The steps of a grid that looks the same from every chip: up and down each axis, once on an axis of two.
std::vector<Shape> steps_of(const Grid& g) {
  std::vector<Shape> steps;
  for (std::size_t i = 0; i < g.shape.size(); ++i) {
    if (g.shape[i] == 1) continue;
    Shape step(g.shape.size(), 0);
    step[i] = 1;
    steps.push_back(step);
    step[i] = -1;
    if (g.shape[i] > 2) steps.push_back(step);
  }
  return steps;
}

struct Way {
  std::size_t axis;
  int direction;
  std::size_t back;  // the step that undoes it
};

void add_equal_links(Topology& t) {
  std::vector<Way> ways;
  for (std::size_t i = 0; i < t.grid.shape.size(); ++i) {
    const std::size_t g = ways.size();
    if (t.grid.shape[i] == 2) ways.push_back({i, 1, g});
    if (t.grid.shape[i] <= 2) continue;
    ways.push_back({i, 1, g + 1});
    ways.push_back({i, -1, g});
  }
  Grid wrapped = t.grid;
  wrapped.wrapped.assign(wrapped.shape.size(), true);  // an axis of two may be open: up is then the same as down
  t.links.reserve(ways.size() * static_cast<std::size_t>(t.chips));
  for (std::int64_t chip = 0; chip < t.chips; ++chip)
    for (const Way& way : ways) {
      const std::int64_t to = neighbour(wrapped, chip, way.axis, way.direction);
      const std::int64_t twin = to * static_cast<std::int64_t>(ways.size()) + static_cast<std::int64_t>(way.back);
      t.links.push_back({static_cast<std::int32_t>(chip), static_cast<std::int32_t>(to), t.grid.axis_class[way.axis],
                         static_cast<std::int32_t>(twin)});
    }
}

std::string grid_name(const Grid& g) {
  const bool all = std::all_of(g.wrapped.begin(), g.wrapped.end(), [](bool w) { return w; });
  const bool none = std::none_of(g.wrapped.begin(), g.wrapped.end(), [](bool w) { return w; });
  std::string kind = all ? "torus " : none ? "mesh " : "partly wrapped torus ";
  if (!g.twist.empty()) kind = "twisted torus ";
  return kind + shape_text(g.shape);
}

}  // namespace

void add_grid_links(Topology& t, const Grid& g, std::int64_t first) {
  const std::int64_t chips = chips_of(g.shape);
  for (std::size_t i = 0; i < g.shape.size(); ++i)
    for (std::int64_t chip = 0; chip < chips; ++chip) {
      const std::int64_t to = neighbour(g, chip, i, 1);
      // One link between two, and none of a chip to itself.
      if (to < 0 || to == chip || (g.shape[i] == 2 && to < chip)) continue;
      add_link(t, static_cast<std::int32_t>(first + chip), static_cast<std::int32_t>(first + to), g.axis_class[i]);
    }
}

Topology grid(const GridOptions& options) {
  const std::size_t d = options.shape.size();
  TPUSIM_CHECK(options.wrapped.size() == d, "one wrap flag an axis");
  TPUSIM_CHECK(options.links.size() == d || options.links.size() == 1, "one link an axis, or one for all");
  Topology t;
  add_chips(t, chips_of(options.shape));
  t.grid = {options.shape, options.wrapped, options.twist, {}};
  t.rule = options.twist.empty() ? RouteRule::dimension_ordered : RouteRule::shortest;
  bool same = true;
  std::int64_t links = 0;
  for (std::size_t i = 0; i < d; ++i) {
    t.grid.axis_class.push_back(add_class(t, options.links[options.links.size() == 1 ? 0 : i]));
    same = same && closed(t.grid, i);
    links += 2 * t.chips;
    TPUSIM_CHECK(options.twist.empty() || (options.wrapped[i] && options.shape[i] > 2), "a twist of an open axis");
  }
  if (links > max_topology_links) throw CapacityError("a topology has at most 33554432 links (one direction each)");
  if (same) {
    t.steps = steps_of(t.grid);
    add_equal_links(t);
  } else {
    add_grid_links(t, t.grid, 0);
  }
  t.name = grid_name(t.grid);
  return t;
}

Topology torus(const Shape& shape, const LinkClass& link) {
  return grid({shape, std::vector<bool>(shape.size(), true), {link}, {}});
}

Topology mesh(const Shape& shape, const LinkClass& link) {
  return grid({shape, std::vector<bool>(shape.size(), false), {link}, {}});
}

Topology ring(std::int64_t chips, const LinkClass& link) {
  Topology t = torus({chips}, link);
  t.name = "ring of " + std::to_string(chips);
  return t;
}

Topology hypercube(int dimensions, const LinkClass& link) {
  TPUSIM_CHECK(dimensions >= 0 && dimensions <= 62, "a hypercube has 0 or more dimensions");
  chips_of({std::int64_t{1} << dimensions});
  Topology t = torus(Shape(static_cast<std::size_t>(std::max(dimensions, 1)), dimensions == 0 ? 1 : 2), link);
  t.name = std::to_string(dimensions) + "-dimensional hypercube";
  return t;
}

std::vector<Shape> slice_twist(const Shape& shape) {
  if (shape.size() != 3) return {};
  const std::int64_t k = shape[0];
  if (k < 4 || k % 4 != 0 || shape[2] != 2 * k || (shape[1] != k && shape[1] != 2 * k)) return {};
  if (shape[1] == k) return {{0, 0, k}, {0, 0, k}, {0, 0, 0}};
  return {{0, k, k}, {0, 0, 0}, {0, 0, 0}};
}

Topology twisted_torus(const Shape& shape, const LinkClass& link) {
  const std::vector<Shape> twist = slice_twist(shape);
  TPUSIM_CHECK(!twist.empty(), shape_text(shape) + " has no twist");
  return grid({shape, {true, true, true}, {link}, twist});
}

}  // namespace tpusim::topologies
