#include <doctest/doctest.h>

#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

// Node `body` of a kind that reads and writes buffers by number.
Node node(InstrKind kind, std::int32_t body, std::vector<std::int32_t> reads, std::vector<std::int32_t> writes) {
  Node n;
  n.kind = kind;
  n.body = body;
  for (std::int32_t r : reads) n.reads.push_back({BufferId(r), 0});
  for (std::int32_t w : writes) n.writes.push_back({BufferId(w), 0});
  return n;
}
constexpr InstrKind kKernel = InstrKind::kernel, kCollective = InstrKind::collective;

std::vector<std::int32_t> bodies(const std::vector<Node>& part) {
  std::vector<std::int32_t> out;
  for (const Node& n : part) out.push_back(n.kind == InstrKind::done ? -1 : n.body);
  return out;
}
using Bodies = std::vector<std::int32_t>;

TEST_CASE("independent work runs between a collective and the first use of its result") {
  // 0 makes a; 1 reduces it to b; 2 uses b; 3 and 4 need neither.
  const std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kCollective, 1, {0}, {1}),
                                   node(kKernel, 2, {1}, {2}), node(kKernel, 3, {0}, {3}), node(kKernel, 4, {3}, {4})};
  CHECK(bodies(order(nodes, {}, 8).main) == Bodies{0, 1, 3, 4, 2});
}

TEST_CASE("a collective is issued as soon as its operand is there, before kernels of earlier program order") {
  const std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kKernel, 1, {}, {1}), node(kCollective, 2, {0}, {2}),
                                   node(kKernel, 3, {1, 2}, {3})};
  CHECK(bodies(order(nodes, {}, 8).main) == Bodies{0, 2, 1, 3});
}

TEST_CASE("a reader comes before the one that overwrites what it reads") {
  const std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kCollective, 1, {0}, {1}),
                                   node(kKernel, 2, {0, 1}, {2}), node(kKernel, 3, {}, {0})};
  // 3 needs no collective, yet may not go ahead of 2, which reads buffer 0 before 3 writes it again.
  CHECK(bodies(order(nodes, {}, 8).main) == Bodies{0, 1, 2, 3});
}

TEST_CASE("what reads parameters alone goes right before its first user") {
  std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kKernel, 1, {}, {1}), node(kKernel, 2, {0}, {2}),
                             node(kKernel, 3, {1, 2}, {3})};
  nodes[1].late = true;
  CHECK(bodies(order(nodes, {}, 8).main) == Bodies{0, 2, 1, 3});
}

TEST_CASE("gathers of parameters are prefetched, or stand right before their use") {
  std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kCollective, 1, {0}, {1}), node(kKernel, 2, {}, {2}),
                             node(kKernel, 3, {1, 2}, {3})};
  nodes[0].late = nodes[1].late = nodes[0].prefetch = nodes[1].prefetch = true;
  LowerOptions options;
  const Parts ahead = order(nodes, options, 8);
  CHECK(bodies(ahead.prefetch) == Bodies{0, 1});
  CHECK(bodies(ahead.main) == Bodies{2, 3});
  options.prefetch = 0;
  const Parts at_use = order(nodes, options, 8);
  CHECK(at_use.prefetch.empty());
  CHECK(bodies(at_use.main) == Bodies{2, 0, 1, 3});
}

TEST_CASE("adding what a collective brings, and reducing that sum, is left to the following call") {
  std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kCollective, 1, {0}, {1}), node(kKernel, 2, {1, 5}, {5}),
                             node(kCollective, 3, {5}, {5}), node(kKernel, 4, {}, {4})};
  nodes[2].accumulate = true;
  const Parts parts = order(nodes, {}, 8);
  CHECK(bodies(parts.main) == Bodies{0, 1, 4});
  CHECK(bodies(parts.deferred) == Bodies{2, 3});
}

TEST_CASE("without overlap the reductions stand at the end, and each is waited for") {
  std::vector<Node> nodes = {node(kKernel, 0, {}, {0}), node(kCollective, 1, {0}, {0}), node(kKernel, 2, {}, {2}),
                             node(kCollective, 3, {2}, {2})};
  nodes[1].bucket = nodes[3].bucket = true;
  LowerOptions options;
  CHECK(bodies(order(nodes, options, 8).main) == Bodies{0, 1, 2, 3});
  options.overlap = false;
  const Parts parts = order(nodes, options, 8);
  CHECK(bodies(parts.main) == Bodies{0, 2, 1, 3, -1, -1});
  CHECK(parts.main[4].awaits == 2);
  CHECK(parts.main[5].awaits == 3);
}

}  // namespace
}  // namespace tpusim::plan::passes
