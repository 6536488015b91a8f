#include "sim/plan/collectives/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_text.hpp"

namespace tpusim::plan {

WorkTime work_time(const CollectivePlan& plan, const Phase::Work& work) {
  const GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
  WorkTime time;
  double elements = 0;
  for (const StepLoad& load :
       step_loads(work.algorithm, axis.size, work.pieces, plan.part_elements[static_cast<std::size_t>(work.part)])) {
    time.steps += load.count;
    elements += static_cast<double>(load.count) * static_cast<double>(std::max(load.forward, load.backward));
  }
  time.bytes = static_cast<double>(work.slots * plan.element_bytes) * elements;
  const Seconds latency = step_seconds(axis, work, 0);
  time.alpha = latency * static_cast<double>(time.steps);
  time.beta = step_seconds(axis, work, time.bytes) - latency;
  return time;
}

WorkTime phase_time(const CollectivePlan& plan, const Phase& phase) {
  WorkTime worst;
  for (const Phase::Work& work : phase.works) {
    const WorkTime time = work_time(plan, work);
    if (time.alpha + time.beta > worst.alpha + worst.beta) worst = time;
  }
  return worst;
}

// More pieces fill the pipeline better and cost more steps. Of g
// pieces the steps carry L g + r pieces in all, L in a full step and r for what filling and draining add, so that with
// b the bytes of one piece when there is but one, t = (g + const) a + (L + r/g) b / W, least at g = sqrt(r b / (a W)).
std::int64_t best_pieces(const CollectivePlan& plan, const Phase::Work& work) {
  constexpr std::int64_t kMost = 1024, kLong = 256;  // kLong: long enough for steps that are full
  const GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
  const LinkCost cost = link_cost(axis, work);
  const std::int64_t cuts = pieces_of(work.algorithm, 1);
  std::int64_t full = 0, all = 0;
  for (const StepLoad& load : step_loads(work.algorithm, axis.size, kLong, cuts * kLong)) {
    full = std::max({full, load.forward, load.backward});
    all += load.count * std::max(load.forward, load.backward);
  }
  const auto ends = static_cast<double>(all - kLong * full);
  const double piece =
      static_cast<double>(plan.shard_elements) * static_cast<double>(plan.element_bytes) / static_cast<double>(cuts);
  const double step = cost.alpha.value() * cost.beta.value();
  const double best = step > 0 ? std::sqrt(std::max(0.0, ends * piece / step)) : static_cast<double>(kMost);
  const double most = static_cast<double>(std::min(kMost, plan.shard_elements / cuts));  // no piece below an element
  return static_cast<std::int64_t>(std::clamp(std::round(best), 1.0, std::max(1.0, most)));
}

std::string formula_of(const CollectivePlan& plan, double bytes) {
  std::string symbols, numbers;
  const auto add = [](std::string& text, const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
  if (const Seconds base = base_seconds(plan); base > Seconds()) {
    add(symbols, "b");
    add(numbers, format_seconds(base));
  }
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

}  // namespace tpusim::plan
