// Which plans there are for a collective on a grid, and what the alpha-beta model says of each.
//
//   in order       the axes one after the other: a reduce-scatter along the first shrinks what the next has to carry,
//   so
//                  slow axes come last in a reduce-scatter and first in an all-gather (two-level plans over hosts and
//                  slices are this); an all-reduce may take its last axis in place
//   rotated parts  k axes: the data in k parts, part j beginning at axis j, so that all axes work at once (the
//                  multi-axis "bucket" algorithm; its time is k floor(X/2) a + V(1-1/n)/(2kW) for k wrapped axes of
//                  size X)
// Along a ring or a line the link says which algorithms there are; along a switched axis the machine's offers do. A
// group on one axis has each offer as a candidate; on several the cheapest is taken for each axis. The estimate of a
// phase is that of its slowest work, since the phases are in lockstep.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
#include "sim/plan/collectives/estimate.hpp"

namespace tpusim::plan {

namespace {

using Order = std::vector<std::int32_t>;

LineAlgorithm algorithm_for(fabric::Link link, bool two_way) {
  switch (link) {
    case fabric::Link::ring:
      return two_way ? LineAlgorithm::bidirectional_ring : LineAlgorithm::ring;
    case fabric::Link::line:
      return LineAlgorithm::line;
    case fabric::Link::switched:
      return LineAlgorithm::ring;
  }
  return LineAlgorithm::ring;
}

// Takes the cheapest of the axis's offers that does what the work is for, or the one that is `forced`.
void take_offer(const CollectivePlan& plan, Phase::Work& work, bool in_place, int forced) {
  const GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
  Phase::Work best = work;
  bool found = false;
  for (std::size_t i = 0; i < axis.offers.size(); ++i) {
    if (reduces_in_place(axis.offers[i].algorithm) != in_place) continue;
    if (forced >= 0 && forced != static_cast<int>(i)) continue;
    work.offer = static_cast<std::int8_t>(i);
    work.algorithm = axis.offers[i].algorithm;
    work.pieces = in_place ? best_pieces(plan, work) : 1;
    const auto total = [&](const Phase::Work& w) { return work_time(plan, w).total() + axis.offers[i].base; };
    if (!found || total(work) < work_time(plan, best).total() + link_cost(axis, best).base) best = work;
    found = true;
  }
  work = best;
}

bool offers(const GroupAxis& axis, bool in_place) {
  return std::any_of(axis.offers.begin(), axis.offers.end(),
                     [&](const fabric::Offer& o) { return reduces_in_place(o.algorithm) == in_place; });
}

// How the axes of a plan are worked on.
struct Manner {
  bool two_way = true;    // both ways round rings
  bool in_place = false;  // the last axis of an all-reduce is reduced in place
  int offer = -1;         // which offer of the only axis; -1: the cheapest of each
};

// The reduce-scatter works of one part that takes the axes in `order`.
std::vector<Phase::Work> reduce_works(const CollectivePlan& plan, const Order& order, std::int32_t part,
                                      const Manner& manner) {
  std::vector<Phase::Work> works;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Phase::Work work;
    work.part = part;
    work.axis = order[i];
    work.algorithm = algorithm_for(plan.axes[static_cast<std::size_t>(order[i])].link, manner.two_way);
    work.reduce = true;
    for (std::size_t later = i + 1; later < order.size(); ++later) {
      work.free_axes.push_back(static_cast<std::int8_t>(order[later]));
      work.slots *= plan.axes[static_cast<std::size_t>(order[later])].size;
    }
    take_offer(plan, work, manner.in_place && i + 1 == order.size(), manner.offer);
    works.push_back(work);
  }
  return works;
}

// An all-gather takes the axes in the opposite order, with the same free axes: it undoes the reduce-scatter.
void fill_phases(CollectivePlan& plan, const std::vector<Order>& orders, const Manner& manner) {
  const std::size_t k = plan.axes.size();
  std::vector<Phase> reduce(k), gather(k);
  for (std::size_t part = 0; part < orders.size(); ++part) {
    if (plan.part_elements[part] == 0) continue;
    std::vector<Phase::Work> works = reduce_works(plan, orders[part], static_cast<std::int32_t>(part), manner);
    for (std::size_t i = 0; i < k; ++i) {
      reduce[i].works.push_back(works[i]);
      works[i].reduce = false;
      gather[k - 1 - i].works.push_back(works[i]);
    }
  }
  if (manner.in_place) gather.erase(gather.begin());
  if (plan.kind != CollectiveKind::all_gather) plan.phases = reduce;
  if (plan.kind != CollectiveKind::reduce_scatter) plan.phases.insert(plan.phases.end(), gather.begin(), gather.end());
}

// Pads the shard so that the pieces of what is reduced in place are equal.
void pad_to_pieces(CollectivePlan& plan) {
  std::int64_t multiple = 1;
  for (const Phase& phase : plan.phases)
    for (const Phase::Work& work : phase.works)
      if (reduces_in_place(work.algorithm)) multiple = pieces_of(work.algorithm, work.pieces);
  if (multiple == 1) return;
  TPUSIM_CHECK(plan.part_elements.size() == 1, "a plan in parts that reduces in place");
  plan.shard_elements = plan.part_elements[0] = round_up(plan.shard_elements, multiple);
}

// Elements, for each slot of a chunk, that the members of a line of `n` send in all.
std::int64_t line_elements(const Phase::Work& work, std::int64_t n, std::int64_t part) {
  // Every chunk up and down each of n-1 edges, half of it in each tree.
  if (work.algorithm == LineAlgorithm::double_tree) return checked_mul(checked_mul(2 * (n - 1), n), part);
  // Every chunk from everyone to the switch, and its sum there again.
  if (work.algorithm == LineAlgorithm::in_network) return checked_mul(checked_mul(n, n + 1), part);
  // Every chunk reaches everyone else once.
  return checked_mul(checked_mul(n, n - 1), part);
}

void count_bytes(CollectivePlan& plan) {
  plan.total_bytes = 0;
  for (const Phase& phase : plan.phases)
    for (const Phase::Work& work : phase.works) {
      const std::int64_t n = plan.axes[static_cast<std::size_t>(work.axis)].size;
      const std::int64_t e = plan.part_elements[static_cast<std::size_t>(work.part)];
      const std::int64_t per_line = line_elements(work, n, e);
      const std::int64_t lines = plan.members / n;
      plan.total_bytes = checked_add(
          plan.total_bytes, checked_mul(checked_mul(checked_mul(per_line, lines), work.slots), plan.element_bytes));
    }
}

Candidate estimated(CollectivePlan plan) {
  Candidate candidate;
  for (const Phase& phase : plan.phases) {
    const WorkTime worst = phase_time(plan, phase);
    candidate.alpha_term += worst.alpha;
    candidate.beta_term += worst.beta;
  }
  candidate.alpha_term += base_seconds(plan);
  candidate.plan = std::move(plan);
  return candidate;
}

std::string protocol_text(fabric::Protocol protocol) {
  return protocol == fabric::Protocol::none ? "" : fmt::format(" ({})", name_of(protocol));
}

// The first part's axes, in the order of a reduce-scatter.
std::string describe(const CollectivePlan& plan) {
  if (plan.phases.empty()) return "nothing to do";
  std::string axes;
  const std::size_t k = plan.axes.size();
  for (std::size_t i = 0; i < k; ++i) {
    const Phase& phase = plan.phases[plan.kind == CollectiveKind::all_gather ? k - 1 - i : i];
    if (phase.works.empty()) continue;
    const Phase::Work& work = phase.works.front();
    const GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
    if (!axes.empty()) axes += ", then ";
    axes +=
        fmt::format("{} of {}{}{}", name_of(work.algorithm), axis.size,
                    axis.stride > 1 ? fmt::format(" (stride {})", axis.stride) : "",
                    work.offer < 0 ? "" : protocol_text(axis.offers[static_cast<std::size_t>(work.offer)].protocol));
  }
  const std::size_t parts = plan.part_elements.size();
  return parts == 1 ? axes : fmt::format("{} parts in rotated order: {}", parts, axes);
}

// What the choice does not need.
void finish(CollectivePlan& plan) {
  plan.algorithm = describe(plan);
  count_bytes(plan);
}

bool distinct_links(const std::vector<GroupAxis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = i + 1; j < axes.size(); ++j)
      if (axes[i].physical == axes[j].physical) return false;
  return true;
}

// Of one part that takes the axes in `order`, which is the order of a reduce-scatter.
Seconds time_in_order(const CollectivePlan& plan, const Order& order, const Manner& manner) {
  Seconds sum;
  for (const Phase::Work& work : reduce_works(plan, order, 0, manner)) sum += work_time(plan, work).total();
  return sum;
}

// All orders of up to three axes are candidates; of four or five the cheapest is, without writing the others out; of
// more, the one by falling rate, the best but for rounding.
std::vector<Order> axis_orders(const CollectivePlan& plan, const Manner& manner) {
  const std::vector<GroupAxis>& axes = plan.axes;
  Order order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Order> out;
  if (axes.size() <= 3) {
    do out.push_back(order);
    while (std::next_permutation(order.begin(), order.end()));
    return out;
  }
  if (axes.size() <= 5) {
    Order best = order;
    Seconds least = time_in_order(plan, order, manner);
    while (std::next_permutation(order.begin(), order.end())) {
      const Seconds time = time_in_order(plan, order, manner);
      if (time < least) least = time, best = order;
    }
    return {best};
  }
  const auto rate = [&](std::int32_t a) {
    const GroupAxis& axis = axes[static_cast<std::size_t>(a)];
    if (axis.link == fabric::Link::switched) return axis.beta.value();
    const double ways = algorithm_for(axis.link, manner.two_way) == LineAlgorithm::bidirectional_ring ? 2 : 1;
    return axis.beta.value() * ways / static_cast<double>(axis.stride);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return rate(a) > rate(b); });
  return {order};
}

CollectivePlan in_order(const CollectivePlan& whole, const Order& order, const Manner& manner) {
  CollectivePlan plan = whole;
  fill_phases(plan, {order}, manner);
  pad_to_pieces(plan);
  return plan;
}

CollectivePlan in_rotated_parts(const CollectivePlan& base, const Manner& manner) {
  CollectivePlan plan = base;
  const auto k = static_cast<std::int64_t>(plan.axes.size());
  std::vector<Order> orders;
  for (std::int64_t part = 0; part < k; ++part) {
    plan.part_elements.push_back(base.shard_elements / k + (part < base.shard_elements % k ? 1 : 0));
    Order order;
    for (std::int64_t i = 0; i < k; ++i) order.push_back(static_cast<std::int32_t>((part + i) % k));
    orders.push_back(std::move(order));
  }
  fill_phases(plan, orders, manner);
  return plan;
}

// The ways to work on the axes: both ways round rings or one way; each offer of an only axis; an all-reduce by halves
// or with its last axis in place.
std::vector<Manner> manners(const CollectivePlan& plan) {
  std::vector<Manner> out;
  const std::vector<GroupAxis>& axes = plan.axes;
  const auto any = [&](auto&& f) { return std::any_of(axes.begin(), axes.end(), f); };
  const bool any_ring = any([](const GroupAxis& a) { return a.link == fabric::Link::ring; });
  for (const bool in_place : {false, true}) {
    if (in_place &&
        (plan.kind != CollectiveKind::all_reduce || !any([](const GroupAxis& a) { return offers(a, true); })))
      continue;
    if (axes.size() == 1 && offers(axes[0], in_place)) {
      for (std::size_t i = 0; i < axes[0].offers.size(); ++i)
        if (reduces_in_place(axes[0].offers[i].algorithm) == in_place)
          out.push_back({true, in_place, static_cast<int>(i)});
    } else {
      out.push_back({true, in_place, -1});
      if (any_ring) out.push_back({false, in_place, -1});
    }
  }
  return out;
}

// Candidates, cheapest first, not finished.
std::vector<Candidate> ranked(CollectiveKind kind, ir::Reduction reduction, std::int64_t elements,
                              std::int64_t element_bytes, const std::vector<GroupAxis>& axes) {
  CollectivePlan base;
  base.kind = kind;
  base.reduction = reduction;
  base.axes = axes;
  for (const GroupAxis& axis : axes) base.members = checked_mul(base.members, axis.size, "the members of a group");
  base.element_bytes = element_bytes;
  base.shard_elements = ceil_div(elements, base.members);
  std::vector<Candidate> out;
  CollectivePlan whole = base;
  whole.part_elements = {whole.shard_elements};
  if (base.members == 1) {
    out.push_back(estimated(whole));
    return out;
  }
  // Parts that begin at different axes are what a compiler writes for a torus; no library offers them.
  const bool parts = axes.size() > 1 && distinct_links(axes) &&
                     std::all_of(axes.begin(), axes.end(), [](const GroupAxis& a) { return a.offers.empty(); });
  for (const Manner& manner : manners(base)) {
    for (const Order& order : axis_orders(whole, manner))
      if (!manner.in_place || offers(axes[static_cast<std::size_t>(order.back())], true))
        out.push_back(estimated(in_order(whole, order, manner)));
    if (parts) out.push_back(estimated(in_rotated_parts(base, manner)));
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.alpha_term + a.beta_term < b.alpha_term + b.beta_term;
  });
  return out;
}

}  // namespace

CollectivePlan with_pieces(CollectivePlan plan, std::int64_t pieces) {
  for (Phase& phase : plan.phases)
    for (Phase::Work& work : phase.works)
      if (reduces_in_place(work.algorithm)) work.pieces = pieces;
  pad_to_pieces(plan);
  finish(plan);
  return plan;
}

CollectivePlan resized(CollectivePlan plan, const std::vector<std::int64_t>& sizes, std::int64_t part_elements) {
  TPUSIM_CHECK(sizes.size() == plan.axes.size(), "sizes for other axes than a plan has");
  plan.members = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    plan.axes[i].size = sizes[i];
    plan.axes[i].physical_size = sizes[i] * plan.axes[i].stride;
    plan.members *= sizes[i];
  }
  plan.shard_elements = 0;
  for (std::int64_t& part : plan.part_elements) {
    if (part > 0) part = part_elements;
    plan.shard_elements += part;
  }
  for (Phase& phase : plan.phases)
    for (Phase::Work& work : phase.works) {
      work.slots = 1;
      for (std::int8_t free : work.free_axes) work.slots *= sizes[static_cast<std::size_t>(free)];
    }
  pad_to_pieces(plan);
  finish(plan);
  return plan;
}

std::vector<Candidate> candidates(CollectiveKind kind, ir::Reduction reduction, std::int64_t elements,
                                  std::int64_t element_bytes, const std::vector<GroupAxis>& axes) {
  std::vector<Candidate> out = ranked(kind, reduction, elements, element_bytes, axes);
  for (Candidate& candidate : out) finish(candidate.plan);
  return out;
}

CollectivePlan choose(CollectiveKind kind, ir::Reduction reduction, std::int64_t elements, std::int64_t element_bytes,
                      const std::vector<GroupAxis>& axes) {
  CollectivePlan plan = std::move(ranked(kind, reduction, elements, element_bytes, axes).front().plan);
  finish(plan);
  return plan;
}

}  // namespace tpusim::plan
