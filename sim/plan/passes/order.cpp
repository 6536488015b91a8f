// Pass 5: the order in which a call issues its nodes (list scheduling, deterministic).
//
// Collectives, sends and sums over stages are asynchronous: each is issued as soon as its operands are written. Among
// the kernels that are ready the earliest of the program goes first, except that one which needs the result of an
// outstanding asynchronous node yields to those that do not; so independent work, such as weight gradients, runs beside
// a collective. What reads parameters alone is placed right before its first user (or ahead of the call, when it is
// prefetched).
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

using Edges = std::vector<std::vector<std::int32_t>>;  // by node: the nodes it must follow

// Dependences through buffer instances: read after write, write after read and after write, in the given order.
Edges dependences(const std::vector<Node>& nodes, std::size_t buffers) {
  struct Instance {
    std::int32_t writer = -1;
    std::vector<std::int32_t> readers;
  };
  std::vector<Instance> instances;
  std::vector<std::int32_t> index(buffers * 3, -1);
  const auto instance = [&](const BufferRef& ref) -> Instance& {
    std::int32_t& i = index[at(ref.buffer.index) * 3 + at(ref.site_delta + 1)];
    if (i < 0) {
      i = static_cast<std::int32_t>(instances.size());
      instances.emplace_back();
    }
    return instances[at(i)];
  };
  Edges edges(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto self = static_cast<std::int32_t>(n);
    const auto after = [&](std::int32_t other) {
      if (other >= 0 && other != self && std::find(edges[n].begin(), edges[n].end(), other) == edges[n].end())
        edges[n].push_back(other);
    };
    for (const BufferRef& ref : nodes[n].reads) {
      Instance& i = instance(ref);
      after(i.writer);
      i.readers.push_back(self);
    }
    for (const BufferRef& ref : nodes[n].writes) {
      Instance& i = instance(ref);
      after(i.writer);
      for (std::int32_t reader : i.readers) after(reader);
      i.writer = self;
      i.readers.clear();
    }
  }
  return edges;
}

class Scheduler {
 public:
  Scheduler(std::vector<Node> nodes, const LowerOptions& options, std::size_t buffers)
      : nodes_(std::move(nodes)),
        options_(options),
        edges_(dependences(nodes_, buffers)),
        placed_(nodes_.size()),
        apart_(nodes_.size()),
        outstanding_(nodes_.size()) {}
  Parts run();

 private:
  void set_apart();
  bool ready(std::size_t n) const;
  bool waits(std::size_t n) const;
  void place(std::size_t n);
  void place_late(std::size_t n);
  void issue();
  void put_buckets(std::vector<Node>& part, const std::vector<std::int32_t>& which);

  std::vector<Node> nodes_;
  const LowerOptions& options_;
  Edges edges_;
  std::vector<std::uint8_t> placed_;
  std::vector<std::uint8_t> apart_;        // not of the main list's scheduling: prefetched, late, deferred, after it
  std::vector<std::uint8_t> outstanding_;  // asynchronous, issued, its result not yet needed by anybody
  std::vector<std::int32_t> deferred_, last_;
  Parts parts_;
};

void Scheduler::set_apart() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];  // its flags stay when it is moved to its part
    const bool receive = node.kind == InstrKind::receive;
    if (receive || (node.prefetch && options_.prefetch > 0)) {
      apart_[n] = placed_[n] = 1;
      parts_.prefetch.push_back(std::move(nodes_[n]));
      continue;
    }
    if (node.late) {
      apart_[n] = 1;
      continue;
    }
    // A gradient that a collective brings is added by the following call; so is what needs the sum.
    bool defer = false;
    for (std::int32_t d : edges_[n]) defer = defer || (node.accumulate && nodes_[at(d)].kind == InstrKind::collective);
    for (std::int32_t d : edges_[n])
      defer = defer || std::find(deferred_.begin(), deferred_.end(), d) != deferred_.end();
    if (defer) {
      apart_[n] = 1;
      deferred_.push_back(static_cast<std::int32_t>(n));
    } else if (node.bucket && !options_.overlap) {
      apart_[n] = 1;
      last_.push_back(static_cast<std::int32_t>(n));
    } else if (node.kind == InstrKind::kernel) {
      for (std::int32_t d : edges_[n])
        if (std::find(last_.begin(), last_.end(), d) != last_.end() && apart_[n] == 0) {
          apart_[n] = 1;
          last_.push_back(static_cast<std::int32_t>(n));
        }
    }
  }
}

bool Scheduler::ready(std::size_t n) const {
  for (std::int32_t d : edges_[n])
    if (placed_[at(d)] == 0 && !nodes_[at(d)].late) return false;
  return true;
}

bool Scheduler::waits(std::size_t n) const {
  for (std::int32_t d : edges_[n])
    if (outstanding_[at(d)] != 0) return true;
  return false;
}

void Scheduler::place_late(std::size_t n) {
  for (std::int32_t d : edges_[n])
    if (nodes_[at(d)].late && placed_[at(d)] == 0) {
      place_late(at(d));
      placed_[at(d)] = 1;
      parts_.main.push_back(std::move(nodes_[at(d)]));
    }
}

void Scheduler::place(std::size_t n) {
  place_late(n);
  placed_[n] = 1;
  outstanding_[n] = nodes_[n].asynchronous() ? 1 : 0;
  if (!nodes_[n].asynchronous())
    for (std::int32_t d : edges_[n]) outstanding_[at(d)] = 0;
  parts_.main.push_back(std::move(nodes_[n]));
}

// Issues every asynchronous node that can go; one may make another ready.
void Scheduler::issue() {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (placed_[n] == 0 && apart_[n] == 0 && nodes_[n].asynchronous() && ready(n)) {
        place(n);
        again = true;
      }
  }
}

// With overlap off each reduction is waited for where it ends.
void Scheduler::put_buckets(std::vector<Node>& part, const std::vector<std::int32_t>& which) {
  const std::size_t first = part.size();
  for (std::int32_t n : which) part.push_back(std::move(nodes_[at(n)]));
  if (options_.overlap) return;
  const std::size_t end = part.size();
  for (std::size_t i = first; i < end; ++i)
    if (part[i].bucket) {
      Node done;
      done.kind = InstrKind::done;
      done.awaits = static_cast<std::int32_t>(i);
      part.push_back(done);
    }
}

Parts Scheduler::run() {
  parts_.main.reserve(nodes_.size() + 1);
  set_apart();
  for (;;) {
    issue();
    std::size_t best = nodes_.size(), waiting = nodes_.size();
    bool left = false;
    for (std::size_t n = 0; n < nodes_.size() && best == nodes_.size(); ++n) {
      if (placed_[n] != 0 || apart_[n] != 0 || nodes_[n].asynchronous()) continue;
      left = true;
      if (!ready(n)) continue;
      if (!waits(n))
        best = n;
      else if (waiting == nodes_.size())
        waiting = n;
    }
    if (!left) break;
    if (best == nodes_.size()) best = waiting;
    TPUSIM_CHECK(best < nodes_.size(), "no kernel of a call is ready");
    place(best);
  }
  issue();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    TPUSIM_CHECK(placed_[n] != 0 || apart_[n] != 0, "a transfer of a call is never ready");
    if (nodes_[n].late && placed_[n] == 0) {  // its users are deferred, or beyond the call
      place_late(n);
      placed_[n] = 1;
      parts_.main.push_back(std::move(nodes_[n]));
    }
  }
  put_buckets(parts_.main, last_);
  put_buckets(parts_.deferred, deferred_);
  return std::move(parts_);
}

}  // namespace

Parts order(std::vector<Node> nodes, const LowerOptions& options, std::size_t buffers) {
  return Scheduler(std::move(nodes), options, buffers).run();
}

}  // namespace tpusim::plan::passes
