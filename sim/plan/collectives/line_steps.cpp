// One-dimensional algorithms, move by move.
//
// All-gathers: members 0..n-1 stand on a line or a ring, or around a switch; chunk c starts at member c and must reach
// all others.
//   ring                every member passes on, to its successor, the chunk it got last: n-1 steps
//   bidirectional ring  both ways at once, each chunk the shortest way round: floor(n/2) steps; when n is even the
//                       opposite chunk is reached both ways in the last step, half of it by each
//   line                as the bidirectional ring, but nothing crosses the ends: n-1 steps
//   halving-doubling    in step s every member sends the 2^s chunks that it holds (fewer in the last) over a distance
//   of
//                       2^s: ceil(log2 n) steps for any n. Source: J. Bruck et al., "Efficient algorithms for
//                       all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11), 1997
//   direct              everyone sends its chunk to everyone else: one step
// All-reduces in place, in a pipeline of g pieces:
//   double tree         two trees, each with half of every chunk: piece k moves from depth d to d-1 in step k + D - d,
//   and
//                       from d to d+1 in step k + D + d, D the depth of the deeper tree: 2D + g - 1 steps
//   in the network      in step k the switch adds up everyone's piece k of chunk c and gives it to member c, and copies
//                       piece k-1 from member c to all: g + 1 steps. Every member's own values pass through the switch
//                       too, as with NVLS (multimem.ld_reduce, multimem.st)
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

namespace {

LineStep ring_step(std::int32_t n, std::int32_t s, bool backwards, std::int32_t piece) {
  LineStep step;
  for (std::int32_t m = 0; m < n; ++m) {
    const std::int32_t to = backwards ? (m + n - 1) % n : (m + 1) % n;
    const std::int32_t chunk = backwards ? (m + s) % n : (m + n - s) % n;
    step.push_back({m, to, chunk, piece});
  }
  return step;
}

void append(LineStep& to, const LineStep& from) {
  to.insert(to.end(), from.begin(), from.end());
}

LineStep line_step(std::int32_t n, std::int32_t s) {
  LineStep step;
  for (std::int32_t m = 0; m < n; ++m) {
    if (m - s >= 0 && m + 1 < n) step.push_back({m, m + 1, m - s, 0});
    if (m + s < n && m >= 1) step.push_back({m, m - 1, m + s, 0});
  }
  return step;
}

LineStep doubling_step(std::int32_t n, std::int32_t distance) {
  LineStep step;
  for (std::int32_t m = 0; m < n; ++m)
    for (std::int32_t c = 0; c < std::min(distance, n - distance); ++c)
      step.push_back({m, (m + n - distance) % n, (m + c) % n, 0});
  return step;
}

LineStep direct_step(std::int32_t n) {
  LineStep step;
  for (std::int32_t m = 0; m < n; ++m)
    for (std::int32_t to = 0; to < n; ++to)
      if (to != m) step.push_back({m, to, m, 0});
  return step;
}

std::vector<std::int32_t> depths_of(const std::vector<std::int32_t>& parents) {
  std::vector<std::int32_t> depths;
  for (std::int32_t p : parents) {
    std::int32_t depth = 0;
    for (; p >= 0; p = parents[static_cast<std::size_t>(p)]) ++depth;
    depths.push_back(depth);
  }
  return depths;
}

std::vector<LineStep> double_tree_steps(std::int64_t members, std::int32_t pieces) {
  const std::vector<std::int32_t> parents[] = {tree_parents(members, false), tree_parents(members, true)};
  const std::vector<std::int32_t> depths[] = {depths_of(parents[0]), depths_of(parents[1])};
  const std::int32_t deepest = std::max(*std::max_element(depths[0].begin(), depths[0].end()),
                                        *std::max_element(depths[1].begin(), depths[1].end()));
  std::vector<LineStep> steps(static_cast<std::size_t>(2 * deepest + pieces - 1));
  for (std::int32_t tree = 0; tree < 2; ++tree)
    for (std::int32_t m = 0; m < members; ++m) {
      const std::int32_t parent = parents[tree][static_cast<std::size_t>(m)];
      if (parent < 0) continue;
      const std::int32_t depth = depths[tree][static_cast<std::size_t>(m)];
      for (std::int32_t k = 0; k < pieces; ++k) {
        const std::int32_t piece = tree * pieces + k + 1;
        steps[static_cast<std::size_t>(k + deepest - depth)].push_back({m, parent, Move::every_chunk, piece, true});
        steps[static_cast<std::size_t>(k + deepest + depth - 1)].push_back({parent, m, Move::every_chunk, piece});
      }
    }
  return steps;
}

std::vector<LineStep> in_network_steps(std::int32_t n, std::int32_t pieces) {
  std::vector<LineStep> steps(static_cast<std::size_t>(pieces) + 1);
  for (std::int32_t k = 0; k < pieces; ++k)
    for (std::int32_t owner = 0; owner < n; ++owner)
      for (std::int32_t m = 0; m < n; ++m) {
        steps[static_cast<std::size_t>(k)].push_back({m, owner, owner, k + 1, true});
        steps[static_cast<std::size_t>(k) + 1].push_back({owner, m, owner, k + 1, false, m != owner});
      }
  return steps;
}

}  // namespace

std::vector<LineStep> line_steps(LineAlgorithm algorithm, std::int64_t members, std::int64_t pieces) {
  TPUSIM_CHECK(members >= 1 && members < (std::int64_t{1} << 20), "the members of one line");
  TPUSIM_CHECK(pieces >= 1 && pieces < (std::int64_t{1} << 20), "the pieces of a pipeline");
  const std::int32_t n = static_cast<std::int32_t>(members);
  std::vector<LineStep> steps;
  if (n == 1) return steps;
  switch (algorithm) {
    case LineAlgorithm::ring:
      for (std::int32_t s = 0; s + 1 < n; ++s) steps.push_back(ring_step(n, s, false, 0));
      break;
    case LineAlgorithm::bidirectional_ring:
      for (std::int32_t s = 0; s < n / 2; ++s) {
        const bool opposite = n % 2 == 0 && s == n / 2 - 1;
        steps.push_back(ring_step(n, s, false, opposite ? 1 : 0));
        append(steps.back(), ring_step(n, s, true, opposite ? 2 : 0));
      }
      break;
    case LineAlgorithm::line:
      for (std::int32_t s = 0; s + 1 < n; ++s) steps.push_back(line_step(n, s));
      break;
    case LineAlgorithm::halving_doubling:
      for (std::int32_t distance = 1; distance < n; distance *= 2) steps.push_back(doubling_step(n, distance));
      break;
    case LineAlgorithm::direct:
      steps.push_back(direct_step(n));
      break;
    case LineAlgorithm::double_tree:
      return double_tree_steps(n, static_cast<std::int32_t>(pieces));
    case LineAlgorithm::in_network:
      return in_network_steps(n, static_cast<std::int32_t>(pieces));
  }
  return steps;
}

std::int64_t pieces_of(LineAlgorithm algorithm, std::int64_t pieces) {
  if (algorithm == LineAlgorithm::bidirectional_ring) return 2;
  if (algorithm == LineAlgorithm::double_tree) return 2 * pieces;
  return algorithm == LineAlgorithm::in_network ? pieces : 1;
}

bool reduces_in_place(LineAlgorithm algorithm) {
  return algorithm == LineAlgorithm::double_tree || algorithm == LineAlgorithm::in_network;
}

std::string_view name_of(LineAlgorithm algorithm) {
  switch (algorithm) {
    case LineAlgorithm::ring:
      return "ring";
    case LineAlgorithm::bidirectional_ring:
      return "bidirectional ring";
    case LineAlgorithm::line:
      return "line";
    case LineAlgorithm::halving_doubling:
      return "halving-doubling";
    case LineAlgorithm::direct:
      return "direct exchange";
    case LineAlgorithm::double_tree:
      return "double tree";
    case LineAlgorithm::in_network:
      return "in-network reduction";
  }
  return "";
}

std::string_view name_of(fabric::Protocol protocol) {
  switch (protocol) {
    case fabric::Protocol::none:
      return "";
    case fabric::Protocol::ll:
      return "LL";
    case fabric::Protocol::ll128:
      return "LL128";
    case fabric::Protocol::simple:
      return "Simple";
  }
  return "";
}

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_reduce:
      return "all-reduce";
  }
  return "";
}

}  // namespace tpusim::plan
