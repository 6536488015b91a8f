// One-dimensional all-gather steps.
//
// Members 0..n-1 stand on a line or a ring; chunk c starts at member c and must reach all others.
//   ring                every member passes on, to its successor, the chunk it got last: n-1 steps
//   bidirectional ring  both ways at once, each chunk the shortest way round: floor(n/2) steps; when n is even the
//   opposite chunk
//                       is reached both ways in the last step, half of it by each
//   line                as the bidirectional ring, but nothing crosses the ends: n-1 steps
#include "sim/base/check.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

namespace {

LineStep ring_step(std::int32_t n, std::int32_t s, bool backwards, std::uint8_t half) {
  LineStep step;
  for (std::int32_t m = 0; m < n; ++m) {
    const std::int32_t to = backwards ? (m + n - 1) % n : (m + 1) % n;
    const std::int32_t chunk = backwards ? (m + s) % n : (m + n - s) % n;
    step.push_back({m, to, chunk, half});
  }
  return step;
}

void append(LineStep& to, const LineStep& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::vector<LineStep> line_steps(LineAlgorithm algorithm, std::int64_t members) {
  TPUSIM_CHECK(members >= 1 && members < (std::int64_t{1} << 20), "the members of one line");
  const std::int32_t n = static_cast<std::int32_t>(members);
  std::vector<LineStep> steps;
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
      for (std::int32_t s = 0; s + 1 < n; ++s) {
        LineStep step;
        for (std::int32_t m = 0; m < n; ++m) {
          if (m - s >= 0 && m + 1 < n) step.push_back({m, m + 1, m - s, 0});
          if (m + s < n && m >= 1) step.push_back({m, m - 1, m + s, 0});
        }
        steps.push_back(std::move(step));
      }
      break;
  }
  return steps;
}

std::string_view name_of(LineAlgorithm algorithm) {
  switch (algorithm) {
    case LineAlgorithm::ring:
      return "ring";
    case LineAlgorithm::bidirectional_ring:
      return "bidirectional ring";
    case LineAlgorithm::line:
      return "line";
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
