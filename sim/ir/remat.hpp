// Which forward values are kept for backward: internal to sim/ir.
#pragma once

#include <vector>

#include "sim/ir/ops.hpp"

namespace tpusim::ir {

// `needed`: by forward value index, what backward reads. `program` holds at least the forward ops; only its first
// `forward_ops` are looked at. Returns by forward value index what is saved; everything else that is needed follows
// from that, from parameters and from data by recomputation. x_in counts as saved where it is read.
std::vector<bool> choose_saved(const Program& program, std::size_t forward_values, std::size_t forward_ops,
                               const std::vector<bool>& needed, Remat remat);

// By forward op index: the ops to run again so that every needed value is there.
std::vector<bool> choose_recomputed(const Program& program, std::size_t forward_ops, std::vector<bool> needed,
                                    const std::vector<bool>& saved);

// Smallest cut of a directed graph with capacities on its edges; of equal cuts the one nearest to the sink.
// Method: Dinic 1970, blocking flows; the sink side is what still reaches the sink in the residual graph.
class MinCut {
 public:
  static constexpr std::int64_t kInfinite = std::int64_t{1} << 60;
  explicit MinCut(int nodes) : first_(static_cast<std::size_t>(nodes), -1) {}
  void edge(int from, int to, std::int64_t capacity);
  // By node: is it on the sink's side? A cut of infinite capacity is an InternalError.
  std::vector<bool> sink_side(int source, int sink);
  std::int64_t flow() const { return flow_; }

 private:
  struct Edge {
    int to;
    int next;
    std::int64_t capacity;
  };
  bool levels(int source, int sink);
  std::int64_t push(int node, int sink, std::int64_t limit);
  std::vector<Edge> edges_;  // edge i and its reverse i ^ 1
  std::vector<int> first_, level_, current_;
  std::int64_t flow_ = 0;
};

}  // namespace tpusim::ir
