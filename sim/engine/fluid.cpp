#include "sim/engine/fluid.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace tpusim::engine {

namespace {

// Two shares this close are one bottleneck: progressive filling divides the same capacity in different orders, and each
// order rounds differently. Far above 2^-52 times the number of terms, far below any difference that a user could mean.
constexpr double kRelativeTolerance = 1e-12;

// What each flow without a rate can still get on a link: (C - used)/open, never below the level already reached.
double share(double capacity, double used, double level, std::int64_t at_level, std::int64_t open, double floor) {
  const double taken = used + static_cast<double>(at_level) * (at_level > 0 ? level : 0);
  return std::max(floor, (capacity - taken) / static_cast<double>(open));
}

}  // namespace

LinkId FluidNetwork::add_link(BytesPerSecond capacity) {
  TPUSIM_CHECK(capacity.value() >= 0, "a link with a capacity of " + std::to_string(capacity.value()) + " B/s");
  links_.emplace_back().capacity = capacity.value();
  return LinkId(links_.size() - 1);
}

void FluidNetwork::set_capacity(LinkId id, BytesPerSecond capacity) {
  TPUSIM_CHECK(capacity.value() >= 0, "a link with a capacity of " + std::to_string(capacity.value()) + " B/s");
  link(id).capacity = capacity.value();
  touch(id);
}

FlowId FluidNetwork::start(FlowSpec spec, Action done) {
  TPUSIM_CHECK(spec.bytes.value() >= 0 && std::isfinite(spec.bytes.value()),
               "a flow of " + std::to_string(spec.bytes.value()) + " bytes");
  TPUSIM_CHECK(spec.bound.value() > 0, "a flow bounded by " + std::to_string(spec.bound.value()) + " B/s");
  for (const Hop& hop : spec.route)
    TPUSIM_CHECK(hop.link.index >= 0 && static_cast<std::size_t>(hop.link.index) < links_.size() && hop.count >= 1,
                 "a hop over link " + std::to_string(hop.link.index) + " x " + std::to_string(hop.count));
  std::int32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::int32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  FlowState& f = flow(slot);
  f = FlowState{};
  f.number = next_number_++;
  f.phase = Phase::latency;
  f.route = std::move(spec.route);
  f.bound = spec.bound.value();
  f.order = spec.order;
  f.remaining = spec.bytes.value();
  f.done = done;
  ++active_;
  const FlowId id{slot, f.number};
  if (!(spec.bytes.value() > 0))
    f.start_event = simulator_.after(spec.latency, Priority::completion, [this, slot] { end(slot); });
  else if (spec.latency > SimTime())
    f.start_event = simulator_.after(spec.latency, Priority::start, [this, slot] { begin_moving(slot); });
  else
    begin_moving(slot);
  return id;
}

bool FluidNetwork::cancel(FlowId id) {
  if (find(id) == nullptr) return false;
  leave(id.slot);
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
  const LinkState& l = links_.at(static_cast<std::size_t>(id.index));
  std::vector<std::int32_t> slots = l.flows;
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  for (std::int32_t slot : slots) {
    const FlowState& f = flows_[static_cast<std::size_t>(slot)];
    for (const Hop& hop : f.route)
      if (hop.link == id) rates.push_back({f.rate, hop.count});
  }
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
  f.since = simulator_.now();
  for (const Hop& hop : f.route) {
    link(hop.link).flows.push_back(slot);
    touch(hop.link);
  }
  if (f.route.empty()) {
    dirty_flows_.push_back(slot);
    request_solve();
  }
}

void FluidNetwork::leave(std::int32_t slot) {
  FlowState& f = flow(slot);
  simulator_.cancel(f.start_event);
  finishes_.cancel(f.finish_event);
  if (f.phase == Phase::moving)
    for (const Hop& hop : f.route) {
      std::vector<std::int32_t>& list = link(hop.link).flows;
      const auto it = std::find(list.begin(), list.end(), slot);
      TPUSIM_CHECK(it != list.end(), "a flow is not on its link");
      *it = list.back();
      list.pop_back();
      touch(hop.link);
    }
  f.phase = Phase::free;
  f.rate = 0;
  --active_;
  free_.push_back(slot);
}

void FluidNetwork::end(std::int32_t slot) {
  Action done = flow(slot).done;
  leave(slot);
  done();
}

void FluidNetwork::touch(LinkId id) {
  LinkState& l = link(id);
  if (!l.dirty) {
    l.dirty = true;
    dirty_links_.push_back(static_cast<std::size_t>(id.index));
  }
  request_solve();
}

void FluidNetwork::request_solve() {
  if (!simulator_.pending(solve_event_))
    solve_event_ = simulator_.at(simulator_.now(), Priority::solve, [this] { solve(); });
}

void FluidNetwork::solve() {
  ++solves_;
  for (std::size_t seed : dirty_links_) {
    // A part that was solved for an earlier seed has its flag taken back.
    if (!links_[seed].dirty) continue;
    collect_part(seed);
    solve_part();
  }
  dirty_links_.clear();
  for (std::int32_t slot : dirty_flows_)
    if (flow(slot).phase == Phase::moving && flow(slot).route.empty()) {
      take_into_part(slot);
      solve_part();
    }
  dirty_flows_.clear();
  arm_wake();
}

void FluidNetwork::take_into_part(std::int32_t slot) {
  FlowState& f = flow(slot);
  if (f.in_part) return;
  f.in_part = true;
  f.fixed = false;
  part_flows_.push_back(slot);
}

// Everything connected with a link through flows, by breadth-first search.
void FluidNetwork::collect_part(std::size_t seed) {
  const auto take_link = [this](std::size_t index) {
    LinkState& l = links_[index];
    l.dirty = false;
    if (l.in_part) return;
    l.in_part = true;
    l.open = 0;
    l.used = 0;
    l.level = 0;
    l.at_level = 0;
    part_links_.push_back(index);
  };
  take_link(seed);
  for (std::size_t i = 0; i < part_links_.size(); ++i)
    for (std::int32_t slot : links_[part_links_[i]].flows) {
      if (flow(slot).in_part) continue;
      take_into_part(slot);
      for (const Hop& hop : flow(slot).route) {
        take_link(static_cast<std::size_t>(hop.link.index));
        link(hop.link).open += hop.count;
      }
    }
}

void FluidNetwork::solve_part() {
  fill_part();
  apply_rates();
  for (std::size_t index : part_links_) links_[index].in_part = false;
  for (std::int32_t slot : part_flows_) flow(slot).in_part = false;
  part_links_.clear();
  part_flows_.clear();
}

void FluidNetwork::fix_flow(FlowState& f, double rate) {
  f.fixed = true;
  f.new_rate = rate;
  for (const Hop& hop : f.route) {
    LinkState& l = link(hop.link);
    l.open -= hop.count;
    if (l.at_level > 0 && l.level < rate) {
      l.used += static_cast<double>(l.at_level) * l.level;
      l.at_level = 0;
    }
    l.level = rate;
    l.at_level += hop.count;
  }
}

// Progressive filling. Rates are fixed in ascending order, so each link sums count x rate over distinct ascending
// rates.
void FluidNetwork::fill_part() {
  std::vector<std::size_t> open_links = part_links_;
  std::vector<std::int32_t> open_flows = part_flows_;
  double level = 0;
  while (!open_flows.empty()) {
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t index : open_links) {
      const LinkState& l = links_[index];
      if (l.open > 0) next = std::min(next, share(l.capacity, l.used, l.level, l.at_level, l.open, level));
    }
    for (std::int32_t slot : open_flows) next = std::min(next, flow(slot).bound);
    if (!std::isfinite(next)) {  // nothing limits the rest
      for (std::int32_t slot : open_flows) flow(slot).new_rate = next;
      return;
    }
    const double limit = next * (1 + kRelativeTolerance);
    std::vector<std::size_t> full;
    for (std::size_t index : open_links) {
      const LinkState& l = links_[index];
      if (l.open > 0 && share(l.capacity, l.used, l.level, l.at_level, l.open, level) <= limit) full.push_back(index);
    }
    for (std::size_t index : full)
      for (std::int32_t slot : links_[index].flows)
        if (!flow(slot).fixed) fix_flow(flow(slot), next);
    for (std::int32_t slot : open_flows)
      if (!flow(slot).fixed && flow(slot).bound <= limit) fix_flow(flow(slot), next);
    const auto closed_link = [this](std::size_t index) { return links_[index].open == 0; };
    const auto closed_flow = [this](std::int32_t slot) { return flow(slot).fixed; };
    open_links.erase(std::remove_if(open_links.begin(), open_links.end(), closed_link), open_links.end());
    const std::size_t before = open_flows.size();
    open_flows.erase(std::remove_if(open_flows.begin(), open_flows.end(), closed_flow), open_flows.end());
    TPUSIM_CHECK(open_flows.size() < before, "progressive filling does not advance");
    level = next;
  }
}

void FluidNetwork::apply_rates() {
  const SimTime now = simulator_.now();
  for (std::int32_t slot : part_flows_) {
    FlowState& f = flow(slot);
    // An unchanged rate keeps its anchor and its finish time: nothing is rounded twice.
    if (!(f.new_rate < f.rate) && !(f.rate < f.new_rate) && finishes_.pending(f.finish_event)) continue;
    if (f.rate > 0) f.remaining = std::max(0.0, f.remaining - f.rate * (now - f.since).seconds().value());
    f.since = now;
    f.rate = f.new_rate;
    finishes_.cancel(f.finish_event);
    if (f.rate > 0)
      f.finish_event =
          finishes_.schedule(now + SimTime::from(Seconds(f.remaining / f.rate)), Priority::completion, slot);
  }
}

void FluidNetwork::arm_wake() {
  simulator_.cancel(wake_event_);
  if (const std::optional<SimTime> next = finishes_.next_time())
    wake_event_ = simulator_.at(*next, Priority::completion, [this] { wake(); });
}

void FluidNetwork::wake() {
  std::vector<std::int32_t> ended;
  for (auto next = finishes_.next_time(); next && *next <= simulator_.now(); next = finishes_.next_time())
    ended.push_back(finishes_.pop()->payload);
  std::sort(ended.begin(), ended.end(), [this](std::int32_t a, std::int32_t b) {
    const FlowState &x = flow(a), &y = flow(b);
    return x.order != y.order ? x.order < y.order : x.number < y.number;
  });
  std::vector<Action> actions;
  for (std::int32_t slot : ended) {
    actions.push_back(flow(slot).done);
    leave(slot);
  }
  arm_wake();
  for (Action& done : actions) done();
}

}  // namespace tpusim::engine
