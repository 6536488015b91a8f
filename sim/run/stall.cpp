#include "sim/run/stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tpusim::run {

namespace {

// Breadth first from `start` along "waits for" until it is reached again.
std::vector<std::int32_t> cycle_through(const std::map<std::int32_t, std::vector<std::int32_t>>& edges,
                                        std::int32_t start) {
  std::map<std::int32_t, std::int32_t> parent;
  std::vector<std::int32_t> frontier = {start};
  while (!frontier.empty()) {
    std::vector<std::int32_t> next;
    for (std::int32_t at : frontier) {
      const auto found = edges.find(at);
      if (found == edges.end()) continue;
      for (std::int32_t to : found->second) {
        if (to == start) {
          std::vector<std::int32_t> path = {at};
          while (path.back() != start) path.push_back(parent.at(path.back()));
          std::reverse(path.begin(), path.end());
          return path;
        }
        if (parent.emplace(to, at).second) next.push_back(to);
      }
    }
    frontier = std::move(next);
  }
  return {};
}

}  // namespace

std::vector<std::int32_t> shortest_cycle(const std::vector<Wait>& waits) {
  std::map<std::int32_t, std::vector<std::int32_t>> edges;
  for (const Wait& wait : waits) edges[wait.device_class] = wait.missing;
  std::vector<std::int32_t> best;
  for (const Wait& wait : waits) {
    std::vector<std::int32_t> cycle = cycle_through(edges, wait.device_class);
    if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
  }
  return best;
}

std::string to_string(const StallReport& report) {
  std::string text = "the plan stalls:";
  for (const Wait& wait : report.waits)
    text += fmt::format("\n  device {} (stage {}) waits for {}", wait.device, wait.stage, wait.what);
  if (!report.cycle.empty())
    text += fmt::format("\n  cycle of classes: {} -> {}", fmt::join(report.cycle, " -> "), report.cycle.front());
  return text;
}

}  // namespace tpusim::run
