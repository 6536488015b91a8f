#include "sim/engine/fluid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::engine {

LinkId FluidNetwork::add_link(BytesPerSecond capacity, Sharing sharing) {
  TPUSIM_CHECK(capacity.value() >= 0, "a link with a capacity of " + std::to_string(capacity.value()) + " B/s");
  LinkState& l = links_.emplace_back();
  l.capacity = capacity.value();
  l.sharing = sharing;
  fillings_.emplace_back();
  return LinkId(links_.size() - 1);
}

void FluidNetwork::set_capacity(LinkId id, BytesPerSecond capacity) {
  TPUSIM_CHECK(capacity.value() >= 0, "a link with a capacity of " + std::to_string(capacity.value()) + " B/s");
  LinkState& l = link(id.index);
  l.capacity = capacity.value();
  keep_below_ = 0;
  if (l.sharing == Sharing::shared) {
    touch(id.index);
  } else {
    for (const Crossing& c : l.flows) touch_flow(c.slot);
  }
}

FlowId FluidNetwork::start(const FlowSpec& spec, Action done) {
  TPUSIM_CHECK(spec.bytes.value() >= 0 && std::isfinite(spec.bytes.value()),
               "a flow of " + std::to_string(spec.bytes.value()) + " bytes");
  TPUSIM_CHECK(spec.bound.value() > 0, "a flow bounded by " + std::to_string(spec.bound.value()) + " B/s");
  for (const Hop& h : spec.route)
    TPUSIM_CHECK(h.link.index >= 0 && static_cast<std::size_t>(h.link.index) < links_.size() && h.count >= 1,
                 "a hop over link " + std::to_string(h.link.index) + " x " + std::to_string(h.count));
  TPUSIM_CHECK(spec.route.size() <= 0xffff, "a route of " + std::to_string(spec.route.size()) + " hops");
  const std::int32_t slot = take_slot();
  FlowState& f = flow(slot);
  store_route(f, spec.route);
  f.number = next_number_++;
  f.phase = Phase::latency;
  f.rate = 0;
  f.bound = spec.bound.value();
  f.remaining = spec.bytes.value();
  FlowEnd& e = ends_[static_cast<std::size_t>(slot)];
  e = {done, spec.order, {}};
  ++active_;
  const FlowId id{slot, f.number};
  if (!(spec.bytes.value() > 0)) {
    e.event = simulator_.after(spec.latency, Priority::completion, [this, slot] { end(slot); });
  } else if (spec.latency > SimTime()) {
    arrivals_.add(slot, simulator_.now() + spec.latency, place());
    arm(arrive_event_, arrive_at_, arrivals_, Priority::start, &FluidNetwork::arrive);
  } else {
    begin_moving(slot);
  }
  return id;
}

std::int32_t FluidNetwork::take_slot() {
  if (free_.empty()) {
    if (flows_.size() > 0x7ffffffe) capacity_error("the number of flows at one time");
    flows_.emplace_back();
    ends_.emplace_back();
    marks_.push_back(Mark::none);
    rates_.push_back(0);
    return static_cast<std::int32_t>(flows_.size() - 1);
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

// A slot keeps its block of hops for the next flow, and changes it when a route is longer.
void FluidNetwork::store_route(FlowState& f, const std::vector<Hop>& route) {
  if (!route.empty() && (f.block < 0 || route.size() > std::size_t{1} << f.block)) {
    const int block = std::bit_width(route.size() - 1);
    if (free_blocks_.size() <= static_cast<std::size_t>(block))
      free_blocks_.resize(static_cast<std::size_t>(block) + 1);
    if (f.block >= 0) free_blocks_[static_cast<std::size_t>(f.block)].push_back(f.hops);
    std::vector<std::int32_t>& blocks = free_blocks_[static_cast<std::size_t>(block)];
    if (blocks.empty()) {
      if (hops_.size() + (std::size_t{1} << block) > 0x7fffffff) capacity_error("the hops of all flows at one time");
      f.hops = static_cast<std::int32_t>(hops_.size());
      hops_.resize(hops_.size() + (std::size_t{1} << block));
    } else {
      f.hops = blocks.back();
      blocks.pop_back();
    }
    f.block = static_cast<std::int8_t>(block);
  }
  std::int32_t at = f.hops;
  for (const Sharing kind : {Sharing::shared, Sharing::non_blocking}) {
    for (const Hop& h : route)
      if (link(h.link.index).sharing == kind) hop(at++) = {h.count, h.link.index, -1};
    if (kind == Sharing::shared) f.shared = static_cast<std::uint16_t>(at - f.hops);
  }
  f.route = static_cast<std::uint16_t>(route.size());
}

bool FluidNetwork::cancel(FlowId id) {
  if (find(id) == nullptr) return false;
  leave(id.slot);
  arm(arrive_event_, arrive_at_, arrivals_, Priority::start, &FluidNetwork::arrive);
  arm_wake();
  return true;
}

const FluidNetwork::FlowState* FluidNetwork::find(FlowId id) const {
  if (id.slot < 0 || static_cast<std::size_t>(id.slot) >= flows_.size()) return nullptr;
  const FlowState& f = flows_[static_cast<std::size_t>(id.slot)];
  return f.phase != Phase::free && f.number == id.number ? &f : nullptr;
}

BytesPerSecond FluidNetwork::rate(FlowId id) const {
  const FlowState* f = find(id);
  return BytesPerSecond(f == nullptr ? 0 : f->rate);
}

Bytes FluidNetwork::remaining(FlowId id) const {
  const FlowState* f = find(id);
  if (f == nullptr) return Bytes(0);
  if (!(f->rate > 0)) return Bytes(f->remaining);
  return Bytes(std::max(0.0, f->remaining - f->rate * (simulator_.now() - f->since).seconds().value()));
}

BytesPerSecond FluidNetwork::load(LinkId id) const {
  std::vector<std::pair<double, std::int64_t>> rates;  // one entry per flow and hop over the link
  for (const Crossing& c : links_.at(static_cast<std::size_t>(id.index)).flows)
    rates.push_back({flows_[static_cast<std::size_t>(c.slot)].rate, hops_[static_cast<std::size_t>(c.hop)].count});
  std::sort(rates.begin(), rates.end());
  double sum = 0;
  for (std::size_t i = 0; i < rates.size();) {
    std::int64_t count = 0;
    const double r = rates[i].first;
    for (; i < rates.size() && !(r < rates[i].first); ++i) count += rates[i].second;
    sum += static_cast<double>(count) * r;
  }
  return BytesPerSecond(sum);
}

void FluidNetwork::begin_moving(std::int32_t slot) {
  FlowState& f = flow(slot);
  f.phase = Phase::moving;
  rates_[static_cast<std::size_t>(slot)] = 0;
  keep_below_ = 0;
  f.since = simulator_.now();
  for (std::int32_t h = f.hops; h < f.hops + f.route; ++h) {
    HopState& state = hop(h);
    LinkState& l = link(state.link);
    state.position = static_cast<std::int32_t>(l.flows.size());
    l.flows.push_back({slot, h});
    if (l.sharing == Sharing::shared) touch(state.link);
  }
  if (f.shared == 0) touch_flow(slot);
}

void FluidNetwork::leave(std::int32_t slot) {
  FlowState& f = flow(slot);
  if (f.phase == Phase::moving) {
    finishes_.remove(slot, place());
    keep_below_ = std::min(keep_below_, f.rate);
    for (std::int32_t h = f.hops; h < f.hops + f.route; ++h) {
      const HopState& state = hop(h);
      LinkState& l = link(state.link);
      const Crossing last = l.flows.back();
      l.flows[static_cast<std::size_t>(state.position)] = last;
      hop(last.hop).position = state.position;
      l.flows.pop_back();
      if (l.sharing == Sharing::shared) touch(state.link);
    }
  } else {
    arrivals_.remove(slot, place());
    simulator_.cancel(ends_[static_cast<std::size_t>(slot)].event);
  }
  f.phase = Phase::free;
  f.rate = 0;
  --active_;
  free_.push_back(slot);
}

void FluidNetwork::end(std::int32_t slot) {
  Action done = ends_[static_cast<std::size_t>(slot)].done;
  leave(slot);
  done();
}

void FluidNetwork::touch(std::int32_t index) {
  LinkState& l = link(index);
  if (l.dirty) return;
  l.dirty = true;
  dirty_links_.push_back(index);
  if (dirty_links_.size() == 1) request_solve();
}

void FluidNetwork::touch_flow(std::int32_t slot) {
  if (flow(slot).shared > 0) {
    touch(hop(flow(slot).hops).link);
  } else {
    dirty_flows_.push_back(slot);
    request_solve();
  }
}

void FluidNetwork::request_solve() {
  if (!simulator_.pending(solve_event_))
    solve_event_ = simulator_.at(simulator_.now(), Priority::solve, [this] { solve(); });
}

// Keeps one event at the calendar's next instant.
void FluidNetwork::arm(Handle& event, SimTime& armed, Calendar& calendar, Priority priority,
                       void (FluidNetwork::*what)()) {
  const std::optional<SimTime> next = calendar.next_time();
  if (next && simulator_.pending(event) && armed == *next) return;
  simulator_.cancel(event);
  if (!next) return;
  armed = *next;
  event = simulator_.at(armed, priority, [this, what] { (this->*what)(); });
}

void FluidNetwork::arm_wake() {
  arm(wake_event_, wake_at_, finishes_, Priority::completion, &FluidNetwork::wake);
}

void FluidNetwork::arrive() {
  arrivals_.take_due(simulator_.now(), place(), [this](std::int32_t slot) { begin_moving(slot); });
  arm(arrive_event_, arrive_at_, arrivals_, Priority::start, &FluidNetwork::arrive);
}

void FluidNetwork::wake() {
  ended_.clear();
  finishes_.take_due(simulator_.now(), place(), [this](std::int32_t slot) {
    ended_.push_back({ends_[static_cast<std::size_t>(slot)].order, flow(slot).number, slot});
  });
  const auto earlier = [](const Ended& a, const Ended& b) {
    return a.order != b.order ? a.order < b.order : a.number < b.number;
  };
  if (!std::is_sorted(ended_.begin(), ended_.end(), earlier)) std::sort(ended_.begin(), ended_.end(), earlier);
  // An action may start flows and even run the simulator on: what it walks over is its own.
  std::vector<Action> actions = std::move(actions_);
  actions.clear();
  for (const Ended& e : ended_) {
    actions.push_back(ends_[static_cast<std::size_t>(e.slot)].done);
    leave(e.slot);
  }
  arm_wake();
  for (Action& done : actions) done();
  actions_ = std::move(actions);
}

}  // namespace tpusim::engine
