#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/ir/remat.hpp"

namespace tpusim::ir {

void MinCut::edge(int from, int to, std::int64_t capacity) {
  edges_.push_back({to, first_[static_cast<std::size_t>(from)], capacity});
  first_[static_cast<std::size_t>(from)] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({from, first_[static_cast<std::size_t>(to)], 0});
  first_[static_cast<std::size_t>(to)] = static_cast<int>(edges_.size()) - 1;
}

bool MinCut::levels(int source, int sink) {
  level_.assign(first_.size(), -1);
  std::vector<int> queue = {source};
  level_[static_cast<std::size_t>(source)] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const auto node = static_cast<std::size_t>(queue[head]);
    for (int e = first_[node]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      if (edge.capacity == 0 || level_[static_cast<std::size_t>(edge.to)] >= 0) continue;
      level_[static_cast<std::size_t>(edge.to)] = level_[node] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[static_cast<std::size_t>(sink)] >= 0;
}

std::int64_t MinCut::push(int node, int sink, std::int64_t limit) {
  if (node == sink) return limit;
  const auto n = static_cast<std::size_t>(node);
  for (int& e = current_[n]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
    const auto i = static_cast<std::size_t>(e);
    const int to = edges_[i].to;
    if (edges_[i].capacity == 0 || level_[static_cast<std::size_t>(to)] != level_[n] + 1) continue;
    const std::int64_t got = push(to, sink, std::min(limit, edges_[i].capacity));
    if (got == 0) continue;
    edges_[i].capacity -= got;
    edges_[i ^ 1].capacity += got;
    return got;
  }
  return 0;
}

std::vector<bool> MinCut::sink_side(int source, int sink) {
  while (levels(source, sink)) {
    current_ = first_;
    while (const std::int64_t got = push(source, sink, kInfinite)) {
      flow_ += got;
      TPUSIM_CHECK(flow_ < kInfinite, "what backward needs can neither be saved nor recomputed");
    }
  }
  // Backwards from the sink along edges with capacity left.
  std::vector<bool> side(first_.size(), false);
  std::vector<int> queue = {sink};
  side[static_cast<std::size_t>(sink)] = true;
  for (std::size_t head = 0; head < queue.size(); ++head)
    for (int e = first_[static_cast<std::size_t>(queue[head])]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const int from = edges_[static_cast<std::size_t>(e)].to;
      if (edges_[static_cast<std::size_t>(e ^ 1)].capacity == 0 || side[static_cast<std::size_t>(from)]) continue;
      side[static_cast<std::size_t>(from)] = true;
      queue.push_back(from);
    }
  return side;
}

}  // namespace tpusim::ir
