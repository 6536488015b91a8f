// The solver of the fluid network: which part of it changed, progressive filling of that part, and new finish times.
//
// Progressive filling with a heap. s_l = (C_l - used_l)/open_l is what each flow without a rate can still get on link
// l. Fixing flows at the smallest s never lowers another link's s (r <= s_l implies (C - used - r)/(open - 1) >= s_l),
// so a key in the heap is a lower bound: only the top is recomputed, and goes back when its share has risen. Rounding
// can lower a share by a few ulps; such keys are pushed again, so the smallest share found is the one that a scan of
// all links finds, bit for bit. Each link is full once: O(hops + links log links) and the keys that went back.
//
// What stays. When flows leave and nothing else changes, all rates below the lowest rate r of those that left stay:
// filling without them does the same up to r, since no link that they crossed was full before their own rate was
// reached and no other link knew of them. So the part is what is connected through flows at r or above, and slower ones
// only take their place on its links. Where equal transfers run at different rates the fastest end first, and little is
// left to do.
#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/engine/fluid.hpp"

namespace tpusim::engine {

namespace {

// Two shares this close are one bottleneck: progressive filling divides the same capacity in different orders, and each
// order rounds differently. Far above 2^-52 times the number of terms, far below any difference that a user could mean.
constexpr double kRelativeTolerance = 1e-12;

// Below the lowest rate that left by more than rounding: a flow at that rate is always solved again.
constexpr double kSafelyBelow = 1 - 1e-9;

constexpr auto kLater = [](const std::pair<double, std::int32_t>& a, const std::pair<double, std::int32_t>& b) {
  return a.first > b.first;
};

}  // namespace

double FluidNetwork::share(std::int32_t index) const {
  const Filling& l = fillings_[static_cast<std::size_t>(index)];
  const double taken = l.used + static_cast<double>(l.at_level) * l.level;
  return (links_[static_cast<std::size_t>(index)].capacity - taken) / static_cast<double>(l.open);
}

// Its own bound and that of the non-blocking links that it crosses.
double FluidNetwork::bound_of(const FlowState& f) const {
  double bound = f.bound;
  for (std::int32_t h = f.hops + f.shared; h < f.hops + f.route; ++h)
    bound = std::min(bound, links_[static_cast<std::size_t>(hops_[static_cast<std::size_t>(h)].link)].capacity);
  return bound;
}

void FluidNetwork::solve() {
  ++solves_;
  keep_below_ *= kSafelyBelow;
  for (std::int32_t seed : dirty_links_) {
    // A part that was solved for an earlier seed has its flag taken back.
    if (!link(seed).dirty || solve_alone(seed)) continue;
    collect_part(seed);
    solve_part();
  }
  dirty_links_.clear();
  for (std::int32_t slot : dirty_flows_)
    if (flow(slot).phase == Phase::moving && flow(slot).shared == 0) apply_rate(slot, bound_of(flow(slot)));
  dirty_flows_.clear();
  keep_below_ = std::numeric_limits<double>::infinity();
  arm_wake();
}

// A link without flows, or with one that crosses nothing else: no part to look for.
bool FluidNetwork::solve_alone(std::int32_t index) {
  LinkState& l = link(index);
  if (l.flows.size() > 1) return false;
  if (l.flows.size() == 1) {
    const Crossing c = l.flows[0];
    const FlowState& f = flow(c.slot);
    if (f.shared > 1) return false;
    apply_rate(c.slot, std::min(bound_of(f), l.capacity / static_cast<double>(hop(c.hop).count)));
  }
  l.dirty = false;
  return true;
}

// The slower flows on a link take their share first, as filling in ascending order would give it to them.
void FluidNetwork::take_kept(std::int32_t index) {
  Filling& l = filling(index);
  std::sort(kept_.begin(), kept_.end());
  for (const auto& [rate, its_hop] : kept_) {
    if (l.at_level > 0 && l.level < rate) {
      l.used += static_cast<double>(l.at_level) * l.level;
      l.at_level = 0;
    }
    l.level = rate;
    l.at_level += hop(its_hop).count;
  }
}

// Everything connected with a link through flows that are not kept, by breadth-first search.
void FluidNetwork::collect_part(std::int32_t seed) {
  const auto take_link = [this](std::int32_t index) {
    LinkState& l = link(index);
    l.dirty = false;
    if (l.in_part) return;
    l.in_part = true;
    filling(index) = {};
    part_links_.push_back(index);
  };
  take_link(seed);
  for (std::size_t i = 0; i < part_links_.size(); ++i) {
    kept_.clear();
    for (const Crossing& c : link(part_links_[i]).flows) {
      if (mark(c.slot) != Mark::none) continue;
      if (const double rate = rates_[static_cast<std::size_t>(c.slot)]; rate < keep_below_) {
        kept_.push_back({rate, c.hop});
        continue;
      }
      mark(c.slot) = Mark::in_part;
      part_flows_.push_back(c.slot);
      const FlowState& f = flow(c.slot);
      for (std::int32_t k = f.hops; k < f.hops + f.shared; ++k) {
        take_link(hop(k).link);
        filling(hop(k).link).open += hop(k).count;
      }
    }
    if (filling(part_links_[i]).open > 0) take_kept(part_links_[i]);
  }
}

void FluidNetwork::solve_part() {
  fill_part();
  for (std::int32_t index : part_links_) link(index).in_part = false;
  for (std::int32_t slot : part_flows_) {
    mark(slot) = Mark::none;
    apply_rate(slot, rates_[static_cast<std::size_t>(slot)]);
  }
  part_links_.clear();
  part_flows_.clear();
}

void FluidNetwork::fix_flow(std::int32_t slot, double rate) {
  const FlowState& f = flow(slot);
  mark(slot) = Mark::fixed;
  rates_[static_cast<std::size_t>(slot)] = rate;
  for (std::int32_t h = f.hops; h < f.hops + f.shared; ++h) {
    const std::int32_t index = hop(h).link;
    Filling& l = filling(index);
    l.open -= hop(h).count;
    if (l.at_level > 0 && l.level < rate) {
      l.used += static_cast<double>(l.at_level) * l.level;
      l.at_level = 0;
    }
    l.level = rate;
    l.at_level += hop(h).count;
    if (!link(index).touched) {
      link(index).touched = true;
      touched_.push_back(index);
    }
  }
}

void FluidNetwork::push_key(std::int32_t index) {
  filling(index).key = share(index);
  heap_.push_back({filling(index).key, index});
  std::push_heap(heap_.begin(), heap_.end(), kLater);
}

// The lowest share or bound of what has no rate yet; infinite when nothing limits it.
double FluidNetwork::next_level(double level) {
  double next = std::numeric_limits<double>::infinity();
  while (!heap_.empty()) {
    const auto [key, index] = heap_.front();
    // Not a comparison of two results: a key is the very double that was pushed, and another one means a later push.
    const bool stale = filling(index).open == 0 || filling(index).key != key;
    if (!stale && !(share(index) > key)) {
      next = std::max(level, key);
      break;
    }
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
    if (!stale) push_key(index);
  }
  while (bounded_taken_ < bounded_.size() && mark(bounded_[bounded_taken_].second) == Mark::fixed) ++bounded_taken_;
  return bounded_taken_ < bounded_.size() ? std::min(next, bounded_[bounded_taken_].first) : next;
}

// Gives the rate `next` to all flows over links that are full at it and to all whose bound it is.
std::size_t FluidNetwork::fix_full(double level, double next) {
  const double limit = next * (1 + kRelativeTolerance);
  full_.clear();
  while (!heap_.empty() && heap_.front().first <= limit) {
    const auto [key, index] = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
    if (filling(index).open == 0 || filling(index).key != key) continue;
    if (std::max(level, share(index)) <= limit)
      full_.push_back(index);
    else
      push_key(index);
  }
  std::size_t fixed = 0;
  for (std::int32_t index : full_)
    for (const Crossing& c : link(index).flows)
      if (mark(c.slot) == Mark::in_part) {
        fix_flow(c.slot, next);
        ++fixed;
      }
  for (; bounded_taken_ < bounded_.size() && bounded_[bounded_taken_].first <= limit; ++bounded_taken_)
    if (mark(bounded_[bounded_taken_].second) != Mark::fixed) {
      fix_flow(bounded_[bounded_taken_].second, next);
      ++fixed;
    }
  return fixed;
}

void FluidNetwork::lower_keys() {
  for (std::int32_t index : touched_) {
    link(index).touched = false;
    if (filling(index).open > 0 && share(index) < filling(index).key) push_key(index);
  }
  touched_.clear();
}

// Rates are fixed in ascending order, so each link sums count x rate over distinct ascending rates.
void FluidNetwork::fill_part() {
  heap_.clear();
  bounded_.clear();
  bounded_taken_ = 0;
  for (std::int32_t index : part_links_)
    if (filling(index).open > 0) {
      filling(index).key = share(index);
      heap_.push_back({filling(index).key, index});
    }
  std::make_heap(heap_.begin(), heap_.end(), kLater);
  for (std::int32_t slot : part_flows_)
    if (const double bound = bound_of(flow(slot)); std::isfinite(bound)) bounded_.push_back({bound, slot});
  std::sort(bounded_.begin(), bounded_.end());
  double level = 0;
  for (std::size_t open = part_flows_.size(); open > 0;) {
    const double next = next_level(level);
    if (!std::isfinite(next)) {  // nothing limits the rest
      for (std::int32_t slot : part_flows_)
        if (mark(slot) != Mark::fixed) rates_[static_cast<std::size_t>(slot)] = next;
      return;
    }
    const std::size_t fixed = fix_full(level, next);
    TPUSIM_CHECK(fixed > 0, "progressive filling does not advance");
    lower_keys();
    open -= fixed;
    level = next;
  }
}

void FluidNetwork::apply_rate(std::int32_t slot, double rate) {
  FlowState& f = flow(slot);
  // An unchanged rate keeps its anchor and its finish time: nothing is rounded twice.
  if (!(rate < f.rate) && !(f.rate < rate) && f.place.bucket >= 0) return;
  const SimTime now = simulator_.now();
  if (f.rate > 0) f.remaining = std::max(0.0, f.remaining - f.rate * (now - f.since).seconds().value());
  f.since = now;
  f.rate = rate;
  rates_[static_cast<std::size_t>(slot)] = rate;
  finishes_.remove(slot, place());
  if (rate > 0) finishes_.add(slot, now + SimTime::from(Seconds(f.remaining / rate)), place());
}

}  // namespace tpusim::engine
