// Pass 6: where each buffer instance dies. An instance is released by the last kernel of the plan that uses it. A
// transfer is asynchronous and releases nothing: what it reads lives until the first kernel that reads its result, or
// else until a `done` at the end of the following call.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

class Lifetimes {
 public:
  Lifetimes(const Lowering& l, const CallKind& kind, Parts& parts)
      : l_(l), kind_(kind), parts_(parts), use_of_(l.out.buffers.size() * 3, -1) {
    for (std::vector<Node>* part : {&parts.prefetch, &parts.main, &parts.deferred})
      for (Node& node : *part) all_.push_back(&node);
  }
  void run();

 private:
  struct Use {
    BufferRef ref;
    std::int32_t last;  // position of the last node that uses it; -1: beyond all kernels
  };
  bool dies(const BufferRef& ref) const;
  std::int32_t holder(std::size_t n) const;
  void use(const BufferRef& ref, std::int32_t position);
  void collect();
  void place_x_in(std::int32_t last);

  const Lowering& l_;
  const CallKind& kind_;
  Parts& parts_;
  std::vector<Node*> all_;
  std::vector<Use> uses_;
  std::vector<std::int32_t> use_of_;  // by buffer and site: index into uses_, or -1
};

// Whether an instance that this call uses lives no longer than the call (for x_in see place_x_in).
bool Lifetimes::dies(const BufferRef& ref) const {
  const bool backward = kind_.phase == ir::Phase::backward, update = kind_.phase == ir::Phase::update;
  const bool sends = (kind_.stage_edge & 2) != 0;
  switch (l_.roles[at(ref.buffer.index)]) {
    case Role::persistent:
      return false;
    case Role::temporary:
      return true;
    case Role::saved:
      return backward;
    case Role::x:
      if (ref.site_delta < 0) return false;
      return backward || (sends && !l_.blocks[at(kind_.block)].x_out_in_backward);
    case Role::dx:
      return ref.site_delta == 0 || sends;
    case Role::gradient:
    case Role::reduced:
      return update && kind_.block >= 0 && !kind_.first;
    case Role::norm:
      return update && kind_.block < 0;
    case Role::gscale:
      return false;  // by the last update call (templates.cpp)
  }
  return false;
}

// The kernel at which what the asynchronous node n reads may go: the first that reads what n writes. -1: none in this
// call.
std::int32_t Lifetimes::holder(std::size_t n) const {
  for (std::size_t m = n + 1; m < all_.size(); ++m)
    for (const BufferRef& written : all_[n]->writes)
      if (std::find(all_[m]->reads.begin(), all_[m]->reads.end(), written) != all_[m]->reads.end())
        return all_[m]->asynchronous() ? holder(m) : static_cast<std::int32_t>(m);
  return -1;
}

void Lifetimes::use(const BufferRef& ref, std::int32_t position) {
  std::int32_t& known = use_of_[at(ref.buffer.index) * 3 + at(ref.site_delta + 1)];
  if (known < 0) {
    known = static_cast<std::int32_t>(uses_.size());
    uses_.push_back({ref, position});
    return;
  }
  Use& u = uses_[at(known)];
  u.last = u.last < 0 || position < 0 ? -1 : std::max(u.last, position);
}

void Lifetimes::collect() {
  for (std::size_t n = 0; n < all_.size(); ++n) {
    const Node& node = *all_[n];
    const auto here = static_cast<std::int32_t>(n);
    if (!node.asynchronous()) {
      for (const BufferRef& ref : node.reads) use(ref, here);
      for (const BufferRef& ref : node.writes) use(ref, here);
      continue;
    }
    const std::int32_t hold = holder(n);
    for (const BufferRef& ref : node.reads) use(ref, hold);
    for (const BufferRef& ref : node.writes) use(ref, hold);
  }
  // A block without parameters (features as they come) gets a gradient that it does not read.
  if (kind_.phase == ir::Phase::backward && kind_.block >= 0)
    if (const BufferId dx = l_.blocks[at(kind_.block)].dx_out; dx.valid() && use_of_[at(dx.index) * 3 + 1] < 0)
      use({dx, 0}, -1);
}

// x of the previous site: this call may be the one that ends it, which its neighbours decide (templates.cpp).
void Lifetimes::place_x_in(std::int32_t last) {
  const auto first = static_cast<std::int32_t>(parts_.prefetch.size()),
             end = first + static_cast<std::int32_t>(parts_.main.size());
  if (last >= first && last < end) {
    parts_.x_in_last = last - first;
    return;
  }
  if (parts_.main.empty() || parts_.main.back().asynchronous()) {
    Node done;
    done.kind = InstrKind::done;
    parts_.main.push_back(done);
  }
  parts_.x_in_last = static_cast<std::int32_t>(parts_.main.size()) - 1;
}

void Lifetimes::run() {
  collect();
  Node tail;
  tail.kind = InstrKind::done;
  std::int32_t x_in = -2;
  for (const Use& u : uses_) {
    if (l_.roles[at(u.ref.buffer.index)] == Role::x && u.ref.site_delta < 0) {
      parts_.x_in = u.ref;
      x_in = u.last;
    }
    if (!dies(u.ref)) continue;
    if (u.last < 0)
      tail.deaths.push_back(u.ref);
    else
      all_[at(u.last)]->deaths.push_back(u.ref);
  }
  if (x_in != -2) place_x_in(x_in);
  if (!tail.deaths.empty()) parts_.deferred.push_back(tail);
}

}  // namespace

void end_lifetimes(const Lowering& l, const CallKind& kind, Parts& parts) {
  Lifetimes(l, kind, parts).run();
}

}  // namespace tpusim::plan::passes
