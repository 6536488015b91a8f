// Which plans there are for a collective on a grid, and what the alpha-beta model says of each.
//
//   in order       the axes one after the other: a reduce-scatter along the first shrinks what the next has to carry,
//   so slow
//                  axes come last in a reduce-scatter and first in an all-gather (two-level plans over hosts and slices
//                  are this)
//   rotated parts  k axes: the data in k parts, part j beginning at axis j, so that all axes work at once (the
//   multi-axis "bucket"
//                  algorithm; its time is k floor(X/2) a + V(1-1/n)/(2kW) for k wrapped axes of size X)
// The estimate of a phase is that of its slowest work, since the phases are in lockstep.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/checked.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/plan/collective_plan.hpp"

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

// The reduce-scatter works of one part that takes the axes in `order`.
std::vector<Phase::Work> reduce_works(const CollectivePlan& plan, const Order& order, std::int32_t part, bool two_way) {
  std::vector<Phase::Work> works;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Phase::Work work;
    work.part = part;
    work.axis = order[i];
    work.algorithm = algorithm_for(plan.axes[static_cast<std::size_t>(order[i])].link, two_way);
    work.reduce = true;
    for (std::size_t later = i + 1; later < order.size(); ++later) {
      work.free_axes.push_back(static_cast<std::int8_t>(order[later]));
      work.slots *= plan.axes[static_cast<std::size_t>(order[later])].size;
    }
    works.push_back(work);
  }
  return works;
}

// An all-gather takes the axes in the opposite order, with the same free axes: it undoes the reduce-scatter.
void fill_phases(CollectivePlan& plan, const std::vector<Order>& orders, bool two_way) {
  const std::size_t k = plan.axes.size();
  std::vector<Phase> reduce(k), gather(k);
  for (std::size_t part = 0; part < orders.size(); ++part) {
    if (plan.part_elements[part] == 0) continue;
    std::vector<Phase::Work> works = reduce_works(plan, orders[part], static_cast<std::int32_t>(part), two_way);
    for (std::size_t i = 0; i < k; ++i) {
      reduce[i].works.push_back(works[i]);
      works[i].reduce = false;
      gather[k - 1 - i].works.push_back(works[i]);
    }
  }
  if (plan.kind != CollectiveKind::all_gather) plan.phases = reduce;
  if (plan.kind != CollectiveKind::reduce_scatter) plan.phases.insert(plan.phases.end(), gather.begin(), gather.end());
}

// Largest number of elements per slot in a step of `algorithm` on a line of `n`, and whether the last step is halved.
struct LineShape {
  std::int64_t whole_steps = 0, half_steps = 0;
  std::int64_t whole_moves = 0, first_half_moves = 0, second_half_moves = 0;
};
LineShape line_shape(LineAlgorithm algorithm, std::int64_t n) {
  switch (algorithm) {
    case LineAlgorithm::ring:
      return {n - 1, 0, n * (n - 1), 0, 0};
    case LineAlgorithm::line:
      return {n - 1, 0, n * (n - 1), 0, 0};
    case LineAlgorithm::bidirectional_ring: {
      const bool even = n % 2 == 0;
      const std::int64_t whole = even ? n / 2 - 1 : n / 2;
      return {whole, even ? 1 : 0, 2 * n * whole, even ? n : 0, even ? n : 0};
    }
  }
  return {};
}

void count_bytes(CollectivePlan& plan) {
  plan.total_bytes = 0;
  for (const Phase& phase : plan.phases)
    for (const Phase::Work& work : phase.works) {
      const std::int64_t n = plan.axes[static_cast<std::size_t>(work.axis)].size;
      const std::int64_t e = plan.part_elements[static_cast<std::size_t>(work.part)];
      const LineShape shape = line_shape(work.algorithm, n);
      std::int64_t per_line = checked_mul(shape.whole_moves, e);
      per_line = checked_add(per_line, checked_mul(shape.first_half_moves, half_elements(e, 1)));
      per_line = checked_add(per_line, checked_mul(shape.second_half_moves, half_elements(e, 2)));
      const std::int64_t lines = plan.members / n;
      plan.total_bytes = checked_add(
          plan.total_bytes, checked_mul(checked_mul(checked_mul(per_line, lines), work.slots), plan.element_bytes));
    }
}

struct WorkTime {
  Seconds alpha, beta;
  std::int64_t steps = 0;
  double bytes = 0;  // over one link, one direction
};
WorkTime work_time(const CollectivePlan& plan, const Phase::Work& work) {
  const GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
  const LineShape shape = line_shape(work.algorithm, axis.size);
  const std::int64_t e = plan.part_elements[static_cast<std::size_t>(work.part)];
  const double unit = static_cast<double>(work.slots * plan.element_bytes);
  const double moved = unit * (static_cast<double>(shape.whole_steps) * static_cast<double>(e) +
                               static_cast<double>(shape.half_steps) * static_cast<double>(half_elements(e, 1)));
  const Seconds latency = step_seconds(axis, 0);
  const std::int64_t steps = shape.whole_steps + shape.half_steps;
  return {latency * static_cast<double>(steps), step_seconds(axis, moved) - latency, steps, moved};
}

// Of the slowest work of a phase, which is what the phase takes.
WorkTime phase_time(const CollectivePlan& plan, const Phase& phase) {
  WorkTime worst;
  for (const Phase::Work& work : phase.works) {
    const WorkTime time = work_time(plan, work);
    if (time.alpha + time.beta > worst.alpha + worst.beta) worst = time;
  }
  return worst;
}

Candidate estimated(CollectivePlan plan) {
  Candidate candidate;
  for (const Phase& phase : plan.phases) {
    const WorkTime worst = phase_time(plan, phase);
    candidate.alpha_term += worst.alpha;
    candidate.beta_term += worst.beta;
  }
  candidate.plan = std::move(plan);
  return candidate;
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
    axes += fmt::format("{} of {}{}", name_of(work.algorithm), axis.size,
                        axis.stride > 1 ? fmt::format(" (stride {})", axis.stride) : "");
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
Seconds time_in_order(const CollectivePlan& plan, const Order& order, bool two_way) {
  Seconds sum;
  Phase::Work work;
  for (std::size_t i = order.size(); i-- > 0;) {
    const GroupAxis& axis = plan.axes[static_cast<std::size_t>(order[i])];
    work.axis = order[i];
    work.algorithm = algorithm_for(axis.link, two_way);
    const WorkTime time = work_time(plan, work);
    sum += time.alpha + time.beta;
    work.slots *= axis.size;
  }
  return sum;
}

// All orders of up to three axes are candidates; of four or five the cheapest is, without writing the others out; of
// more, the one by falling rate, the best but for rounding.
std::vector<Order> axis_orders(const CollectivePlan& plan, bool two_way) {
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
    Seconds least = time_in_order(plan, order, two_way);
    while (std::next_permutation(order.begin(), order.end())) {
      const Seconds time = time_in_order(plan, order, two_way);
      if (time < least) least = time, best = order;
    }
    return {best};
  }
  const auto rate = [&](std::int32_t a) {
    const GroupAxis& axis = axes[static_cast<std::size_t>(a)];
    if (axis.link == fabric::Link::switched) return axis.beta.value();
    const double ways = algorithm_for(axis.link, two_way) == LineAlgorithm::bidirectional_ring ? 2 : 1;
    return axis.beta.value() * ways / static_cast<double>(axis.stride);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return rate(a) > rate(b); });
  return {order};
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
  if (base.members == 1) {
    base.part_elements = {base.shard_elements};
    out.push_back(estimated(base));
    return out;
  }
  bool any_ring = false;
  for (const GroupAxis& axis : axes) any_ring = any_ring || axis.link == fabric::Link::ring;
  const auto k = static_cast<std::int64_t>(axes.size());
  for (int two_way = 1; two_way >= (any_ring ? 0 : 1); --two_way) {
    CollectivePlan whole = base;
    whole.part_elements = {whole.shard_elements};
    for (const Order& order : axis_orders(whole, two_way == 1)) {
      CollectivePlan plan = whole;
      fill_phases(plan, {order}, two_way == 1);
      out.push_back(estimated(std::move(plan)));
    }
    if (k > 1 && distinct_links(axes)) {
      CollectivePlan plan = base;
      std::vector<Order> orders;
      for (std::int64_t part = 0; part < k; ++part) {
        plan.part_elements.push_back(base.shard_elements / k + (part < base.shard_elements % k ? 1 : 0));
        Order order;
        for (std::int64_t i = 0; i < k; ++i) order.push_back(static_cast<std::int32_t>((part + i) % k));
        orders.push_back(std::move(order));
      }
      fill_phases(plan, orders, two_way == 1);
      out.push_back(estimated(std::move(plan)));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.alpha_term + a.beta_term < b.alpha_term + b.beta_term;
  });
  return out;
}

}  // namespace

std::string formula_of(const CollectivePlan& plan, double bytes) {
  std::string symbols, numbers;
  const auto add = [](std::string& text, const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
  for (const Phase& phase : plan.phases) {
    const WorkTime time = phase_time(plan, phase);
    if (time.steps == 0) continue;
    add(symbols, fmt::format("{} a + {:.4g} V/W", time.steps, time.bytes / bytes));
    add(numbers,
        fmt::format("{} x {} + {} / {}", time.steps, format_seconds(time.alpha / static_cast<double>(time.steps)),
                    format_bytes(Bytes(time.bytes)),
                    time.beta > Seconds() ? format_rate(Bytes(time.bytes) / time.beta) : "infinite rate"));
  }
  return symbols.empty() ? "nothing to send" : symbols + " = " + numbers;
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
