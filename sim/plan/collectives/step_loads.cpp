// What the steps of a one-dimensional algorithm put on the busiest link or port, by arithmetic.
//
// With e the elements of a chunk: a ring's step carries e one way; a bidirectional ring's e both ways, and halves in
// the last step of an even ring; a line's e both ways until the last step; halving-doubling's 1, 2, 4, ... chunks; the
// direct exchange's n-1 chunks. The pipelines of a double tree and of a reduction in the network fill, run and drain:
// in a full step of a double tree whoever has two children in one tree and none in the other sends 1 + 2 pieces there
// and 1 here, and receives as many; through a reducing switch n + 1 pieces of a chunk go each way.
#include <algorithm>
#include <array>
#include <set>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

namespace {

// Members with equal depth and number of children in both trees have equal loads in every step.
struct TreePlace {
  std::int64_t depth = 0, children = 0;
  auto operator<=>(const TreePlace&) const = default;
};
using Places = std::array<TreePlace, 2>;

// Of many members every place that the trees could have: at any depth in one tree with up to two children, a leaf at
// any depth in the other. Visiting a million members for each plan would cost more than the plan.
std::vector<Places> all_places(std::int64_t deepest) {
  std::vector<Places> all;
  for (std::int64_t depth = 0; depth <= deepest; ++depth)
    for (std::int64_t children = 0; children <= (depth == 0 ? 1 : 2); ++children)
      for (std::int64_t leaf = 1; leaf <= deepest; ++leaf)
        for (std::size_t tree = 0; tree < 2; ++tree) {
          Places places;
          places[tree] = {depth, depth == deepest ? 0 : children};
          places[1 - tree] = {leaf, 0};
          all.push_back(places);
        }
  return all;
}

std::vector<Places> tree_places(std::int64_t members, std::int64_t& deepest) {
  constexpr std::int64_t kMany = 1024;
  if (members > kMany) {
    deepest = 0;
    while ((members - 1) >> deepest != 0) ++deepest;  // ceil(log2 n)
    return all_places(deepest);
  }
  std::vector<Places> all(static_cast<std::size_t>(members));
  deepest = 0;
  for (std::size_t tree = 0; tree < 2; ++tree) {
    const std::vector<std::int32_t> parents = tree_parents(members, tree == 1);
    for (std::size_t m = 0; m < parents.size(); ++m) {
      if (parents[m] >= 0) ++all[static_cast<std::size_t>(parents[m])][tree].children;
      for (std::int32_t p = parents[m]; p >= 0; p = parents[static_cast<std::size_t>(p)]) ++all[m][tree].depth;
      deepest = std::max(deepest, all[m][tree].depth);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Pieces that the busiest port sends and receives in a step of a double tree.
StepLoad tree_step(const std::vector<Places>& places, std::int64_t deepest, std::int64_t pieces, std::int64_t step) {
  const auto under_way = [&](std::int64_t piece) { return piece >= 0 && piece < pieces ? 1 : 0; };
  StepLoad worst{1, 0, 0};
  for (const Places& both : places) {
    std::int64_t out = 0, in = 0;
    for (const TreePlace& at : both) {
      const std::int64_t up = step - deepest + at.depth, down = step - deepest - at.depth;
      const std::int64_t parent = at.depth > 0 ? 1 : 0;
      out += parent * under_way(up) + at.children * under_way(down);
      in += at.children * under_way(up + 1) + parent * under_way(down + 1);
    }
    worst.forward = std::max(worst.forward, out);
    worst.backward = std::max(worst.backward, in);
  }
  return worst;
}

void add(StepLoads& loads, const StepLoad& load) {
  if (load.count <= 0) return;
  for (StepLoad& l : loads)
    if (l.forward == load.forward && l.backward == load.backward) {
      l.count += load.count;
      return;
    }
  loads.push_back(load);
}

StepLoads double_tree_loads(std::int64_t n, std::int64_t pieces, std::int64_t part) {
  std::int64_t deepest = 0;
  const std::vector<Places> places = tree_places(n, deepest);
  // Every chunk of the line, of each the tree's piece; pieces are equal but for rounding up.
  const std::int64_t unit = checked_mul(n, (part + 2 * pieces - 1) / (2 * pieces), "the elements of a transfer");
  StepLoads loads;
  const std::int64_t steps = 2 * deepest + pieces - 1;
  for (std::int64_t s = 0; s < steps; ++s) {
    StepLoad load = tree_step(places, deepest, pieces, s);
    // From step 2D on every edge is busy until the first piece runs out: those steps are alike.
    if (s == 2 * deepest && pieces - 1 > s) load.count = pieces - 1 - s;
    const std::int64_t alike = load.count;
    load.forward = checked_mul(load.forward, unit, "the elements of a transfer");
    load.backward = checked_mul(load.backward, unit, "the elements of a transfer");
    add(loads, load);
    s += alike - 1;
  }
  return loads;
}

}  // namespace

std::vector<std::int32_t> tree_parents(std::int64_t members, bool second) {
  TPUSIM_CHECK(members >= 1 && members < (std::int64_t{1} << 20), "the members of a tree");
  const auto n = static_cast<std::int32_t>(members);
  // A number's lowest set bit is its height; 0 is the root, with one child.
  const auto parent_of = [n](std::int32_t v) {
    if (v == 0) return -1;
    const std::int32_t bit = v & -v, up = (v ^ bit) | (bit << 1);
    return up < n ? up : v ^ bit;
  };
  std::vector<std::int32_t> out;
  for (std::int32_t m = 0; m < n; ++m) {
    if (!second) {
      out.push_back(parent_of(m));
    } else {
      const bool mirrored = n % 2 == 0;
      const std::int32_t parent = parent_of(mirrored ? n - 1 - m : (m + n - 1) % n);
      out.push_back(parent < 0 ? -1 : mirrored ? n - 1 - parent : (parent + 1) % n);
    }
  }
  return out;
}

StepLoads step_loads(LineAlgorithm algorithm, std::int64_t n, std::int64_t pieces, std::int64_t part) {
  StepLoads loads;
  if (n == 1) return loads;
  switch (algorithm) {
    case LineAlgorithm::ring:
      add(loads, {n - 1, part, 0});
      break;
    case LineAlgorithm::bidirectional_ring:
      // With two members both ways lead to the other one, over a link each.
      add(loads, {n % 2 == 0 ? n / 2 - 1 : n / 2, part, part});
      if (n % 2 == 0) add(loads, {1, piece_of(part, 1, 2).count, piece_of(part, 2, 2).count});
      break;
    case LineAlgorithm::line:  // until the last step some member still has a chunk to pass on, each way
      add(loads, {n - 1, part, part});
      break;
    case LineAlgorithm::halving_doubling:
      for (std::int64_t distance = 1; distance < n; distance *= 2) {
        const std::int64_t elements = checked_mul(std::min(distance, n - distance), part, "the elements of a transfer");
        add(loads, {1, elements, elements});
      }
      break;
    case LineAlgorithm::direct:
      add(loads, {1, checked_mul(n - 1, part, "the elements of a transfer"), checked_mul(n - 1, part)});
      break;
    case LineAlgorithm::double_tree:
      return double_tree_loads(n, pieces, part);
    case LineAlgorithm::in_network: {
      const std::int64_t piece = (part + pieces - 1) / pieces;
      const std::int64_t all = checked_mul(n, piece, "the elements of a transfer"), more = checked_add(all, piece);
      add(loads, {1, all, piece});
      add(loads, {pieces - 1, more, more});
      add(loads, {1, piece, all});
      break;
    }
  }
  return loads;
}

}  // namespace tpusim::plan
