// A plan played symbolically: which members' contributions each slot holds, move by move.
//   plan.c1  a member sends only what it holds
//   plan.c2  nothing arrives twice (all-gather), no contribution is added twice (reduce-scatter)
//   plan.c3  at the end everyone holds what the definition says
//   plan.c4  total_bytes is the sum of the moves
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

namespace {

using Set = std::vector<bool>;  // contributions by member

struct Held {
  std::vector<Set> sets;  // by (member, slot, part, half) -> whose contributions it sums
  std::size_t members, parts;
  std::size_t at(std::int64_t member, std::int64_t slot, std::int64_t part, int half) const {
    return ((static_cast<std::size_t>(member) * members + static_cast<std::size_t>(slot)) * parts +
            static_cast<std::size_t>(part)) *
               2 +
           static_cast<std::size_t>(half);
  }
};

// Index of the member of the line through `member` along `axis` whose coordinate there is `c`.
std::int32_t on_line(const CollectivePlan& plan, std::int32_t member, std::int32_t axis, std::int32_t c) {
  std::int32_t stride = 1;
  for (std::size_t i = plan.axes.size() - 1; i > static_cast<std::size_t>(axis); --i)
    stride *= static_cast<std::int32_t>(plan.axes[i].size);
  const auto size = static_cast<std::int32_t>(plan.axes[static_cast<std::size_t>(axis)].size);
  return member + (c - member / stride % size) * stride;
}

struct Arrival {
  std::int32_t from = 0, to = 0, slot = 0;
  std::size_t target = 0;
  Set contributions;
};

std::string apply(const std::vector<Arrival>& arrivals, std::size_t phase, Held& held) {
  for (const Arrival& a : arrivals) {
    if (std::find(a.contributions.begin(), a.contributions.end(), true) == a.contributions.end())
      return fmt::format("plan.c1: member {} sends slot {} in phase {} before it holds it", a.from, a.slot, phase);
    Set& target = held.sets[a.target];
    for (std::size_t i = 0; i < a.contributions.size(); ++i) {
      if (a.contributions[i] && target[i])
        return fmt::format("plan.c2: contribution {} to slot {} reaches member {} twice in phase {}", i, a.slot, a.to,
                           phase);
      if (a.contributions[i]) target[i] = true;
    }
  }
  return "";
}

std::string play(const CollectivePlan& plan, LineSteps steps_of, Held& held, std::int64_t& bytes) {
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (std::size_t w = 0; w < plan.phases[p].works.size(); ++w) {
      const Phase::Work& work = plan.phases[p].works[w];
      std::vector<LineStep> steps = steps_of(work.algorithm, plan.axes[static_cast<std::size_t>(work.axis)].size);
      if (work.reduce) {
        std::reverse(steps.begin(), steps.end());
        for (LineStep& step : steps)
          for (Move& move : step) std::swap(move.from, move.to);
      }
      for (std::int32_t member = 0; member < plan.members; ++member) {
        if (on_line(plan, member, work.axis, 0) != member) continue;  // one visit per line
        for (const LineStep& step : steps) {
          std::vector<Arrival> arrivals;  // all sources of a step are read before any target is written
          for (const Move& move : step) {
            const std::int32_t from = on_line(plan, member, work.axis, move.from),
                               to = on_line(plan, member, work.axis, move.to);
            for (std::int32_t slot : chunk_slots(plan, p, w, member, move.chunk))
              for (int half = 0; half < 2; ++half) {
                if (move.half != 0 && move.half != half + 1) continue;
                bytes += half_elements(plan.part_elements[static_cast<std::size_t>(work.part)],
                                       static_cast<std::uint8_t>(half + 1)) *
                         plan.element_bytes;
                arrivals.push_back({from, to, slot, held.at(to, slot, work.part, half),
                                    held.sets[held.at(from, slot, work.part, half)]});
              }
          }
          if (std::string broken = apply(arrivals, p, held); !broken.empty()) return broken;
        }
      }
      // After a reduce-scatter along an axis a member keeps only its own chunk; after the gather it copies finished
      // sums.
      if (work.reduce)
        for (std::int32_t member = 0; member < plan.members; ++member)
          for (std::int32_t c = 0; c < plan.axes[static_cast<std::size_t>(work.axis)].size; ++c) {
            if (on_line(plan, member, work.axis, c) == member) continue;
            for (std::int32_t slot : chunk_slots(plan, p, w, member, c))
              for (int half = 0; half < 2; ++half) {
                Set& set = held.sets[held.at(member, slot, work.part, half)];
                set.assign(set.size(), false);
              }
          }
    }
  return "";
}

}  // namespace

std::string verify(const CollectivePlan& plan, LineSteps steps_of) {
  if (plan.members == 1) return plan.phases.empty() ? "" : "plan.c3: a group of one has phases";
  TPUSIM_CHECK(plan.members <= 256, "plans are verified on up to 256 members");
  Held held;
  held.members = static_cast<std::size_t>(plan.members);
  held.parts = plan.part_elements.size();
  held.sets.assign(held.members * held.members * held.parts * 2, Set(held.members, false));
  const bool gather = plan.kind == CollectiveKind::all_gather;
  for (std::size_t m = 0; m < held.members; ++m)
    for (std::size_t slot = 0; slot < held.members; ++slot)
      for (std::size_t part = 0; part < held.parts; ++part)
        for (int half = 0; half < 2; ++half)
          if (!gather || m == slot)
            held.sets[held.at(static_cast<std::int64_t>(m), static_cast<std::int64_t>(slot),
                              static_cast<std::int64_t>(part), half)][m] = true;
  std::int64_t bytes = 0;
  if (std::string broken = play(plan, steps_of, held, bytes); !broken.empty()) return broken;
  for (std::size_t m = 0; m < held.members; ++m)
    for (std::size_t slot = 0; slot < held.members; ++slot)
      for (std::size_t part = 0; part < held.parts; ++part)
        for (int half = 0; half < 2; ++half) {
          if (plan.part_elements[part] == 0) continue;
          const Set& set = held.sets[held.at(static_cast<std::int64_t>(m), static_cast<std::int64_t>(slot),
                                             static_cast<std::int64_t>(part), half)];
          const auto count = std::count(set.begin(), set.end(), true);
          const bool wants = plan.kind != CollectiveKind::reduce_scatter || m == slot;
          const std::int64_t due = gather ? 1 : plan.members;
          if (wants && (count != due || (gather && !set[slot])))
            return fmt::format("plan.c3: member {} ends with {} of {} contributions to slot {}", m, count, due, slot);
        }
  if (bytes != plan.total_bytes)
    return fmt::format("plan.c4: {} bytes are moved, {} are charged", bytes, plan.total_bytes);
  return "";
}

}  // namespace tpusim::plan
