// A plan played symbolically: which members' contributions each slot holds, move by move.
//   plan.c1  a member sends only what it holds
//   plan.c2  nothing arrives twice (all-gather), no contribution is added twice (reduce-scatter), a sum is put in the
//            place of a member's own values once, and finished (all-reduce in place)
//   plan.c3  at the end everyone holds what the definition says
//   plan.c4  total_bytes is the sum of the moves
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

namespace {

using Set = std::vector<bool>;  // contributions by member

struct Held {
  std::vector<Set> sets;  // by (member, slot, part, cell) -> whose contributions it sums
  std::size_t members, parts, cells;
  std::size_t at(std::int64_t member, std::int64_t slot, std::int64_t part, std::int64_t cell) const {
    return ((static_cast<std::size_t>(member) * members + static_cast<std::size_t>(slot)) * parts +
            static_cast<std::size_t>(part)) *
               cells +
           static_cast<std::size_t>(cell);
  }
};

// A part of a slot in as many cells as all works' pieces can be told apart by.
std::int64_t cells_of(const CollectivePlan& plan) {
  std::int64_t cells = 1;
  for (const Phase& phase : plan.phases)
    for (const Phase::Work& work : phase.works) cells = std::lcm(cells, pieces_of(work.algorithm, work.pieces));
  TPUSIM_CHECK(cells <= 256, "plans are verified with up to 256 pieces");
  return cells;
}

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
  bool replace = false;  // a finished sum in the place of own values
  Set contributions;
};

std::string twice(const Arrival& a, std::size_t contribution, std::size_t phase) {
  return fmt::format("plan.c2: contribution {} to slot {} reaches member {} twice in phase {}", contribution, a.slot,
                     a.to, phase);
}

std::string apply(const std::vector<Arrival>& arrivals, std::size_t phase, Held& held) {
  for (const Arrival& a : arrivals) {
    if (std::find(a.contributions.begin(), a.contributions.end(), true) == a.contributions.end())
      return fmt::format("plan.c1: member {} sends slot {} in phase {} before it holds it", a.from, a.slot, phase);
    Set& target = held.sets[a.target];
    if (a.replace && target == a.contributions) return twice(a, 0, phase);
    for (std::size_t i = 0; i < a.contributions.size(); ++i) {
      if (a.replace && target[i] && !a.contributions[i])
        return fmt::format("plan.c2: contribution {} to slot {} is lost at member {} in phase {}", i, a.slot, a.to,
                           phase);
      if (!a.replace && a.contributions[i] && target[i]) return twice(a, i, phase);
      if (a.contributions[i]) target[i] = true;
    }
  }
  return "";
}

// A reduce-scatter is the all-gather backwards, with senders and receivers exchanged.
std::vector<LineStep> steps_of_work(const CollectivePlan& plan, const Phase::Work& work, LineSteps steps_of) {
  std::vector<LineStep> steps =
      steps_of(work.algorithm, plan.axes[static_cast<std::size_t>(work.axis)].size, work.pieces);
  if (!work.reduce || reduces_in_place(work.algorithm)) return steps;
  std::reverse(steps.begin(), steps.end());
  for (LineStep& step : steps)
    for (Move& move : step) std::swap(move.from, move.to);
  return steps;
}

// What the moves of a step bring, on the line through `member`, read before anything is written.
std::vector<Arrival> arrivals_of(const CollectivePlan& plan, std::size_t p, std::size_t w, std::int32_t member,
                                 const LineStep& step, const Held& held, std::int64_t& bytes) {
  const Phase::Work& work = plan.phases[p].works[w];
  const std::int64_t pieces = pieces_of(work.algorithm, work.pieces);
  const auto cells = static_cast<std::int64_t>(held.cells);
  std::vector<Arrival> arrivals;
  for (const Move& move : step) {
    const std::int32_t from = on_line(plan, member, work.axis, move.from),
                       to = on_line(plan, member, work.axis, move.to);
    for (std::int32_t slot : chunk_slots(plan, p, w, member, move.chunk)) {
      if (!move.free)
        bytes += piece_of(plan.part_elements[static_cast<std::size_t>(work.part)], move.piece, pieces).count *
                 plan.element_bytes;
      if (from == to) continue;
      const std::int64_t first = move.piece == 0 ? 0 : (move.piece - 1) * cells / pieces,
                         last = move.piece == 0 ? cells : move.piece * cells / pieces;
      for (std::int64_t cell = first; cell < last; ++cell)
        arrivals.push_back({from, to, slot, held.at(to, slot, work.part, cell),
                            reduces_in_place(work.algorithm) && !move.add,
                            held.sets[held.at(from, slot, work.part, cell)]});
    }
  }
  return arrivals;
}

// After a reduce-scatter along an axis a member keeps only its own chunk; after the gather it copies finished sums.
void keep_own_chunk(const CollectivePlan& plan, std::size_t p, std::size_t w, Held& held) {
  const Phase::Work& work = plan.phases[p].works[w];
  for (std::int32_t member = 0; member < plan.members; ++member)
    for (std::int32_t c = 0; c < plan.axes[static_cast<std::size_t>(work.axis)].size; ++c) {
      if (on_line(plan, member, work.axis, c) == member) continue;
      for (std::int32_t slot : chunk_slots(plan, p, w, member, c))
        for (std::size_t cell = 0; cell < held.cells; ++cell) {
          Set& set = held.sets[held.at(member, slot, work.part, static_cast<std::int64_t>(cell))];
          set.assign(set.size(), false);
        }
    }
}

std::string play(const CollectivePlan& plan, LineSteps steps_of, Held& held, std::int64_t& bytes) {
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (std::size_t w = 0; w < plan.phases[p].works.size(); ++w) {
      const Phase::Work& work = plan.phases[p].works[w];
      const std::vector<LineStep> steps = steps_of_work(plan, work, steps_of);
      for (std::int32_t member = 0; member < plan.members; ++member) {
        if (on_line(plan, member, work.axis, 0) != member) continue;  // one visit per line
        for (const LineStep& step : steps)
          if (std::string broken = apply(arrivals_of(plan, p, w, member, step, held, bytes), p, held); !broken.empty())
            return broken;
      }
      if (work.reduce && !reduces_in_place(work.algorithm)) keep_own_chunk(plan, p, w, held);
    }
  return "";
}

// plan.c3
std::string check_end(const CollectivePlan& plan, const Held& held) {
  const bool gather = plan.kind == CollectiveKind::all_gather;
  for (std::size_t m = 0; m < held.members; ++m)
    for (std::size_t slot = 0; slot < held.members; ++slot)
      for (std::size_t part = 0; part < held.parts; ++part)
        for (std::size_t cell = 0; cell < held.cells; ++cell) {
          if (plan.part_elements[part] == 0) continue;
          const Set& set = held.sets[held.at(static_cast<std::int64_t>(m), static_cast<std::int64_t>(slot),
                                             static_cast<std::int64_t>(part), static_cast<std::int64_t>(cell))];
          const auto count = std::count(set.begin(), set.end(), true);
          const bool wants = plan.kind != CollectiveKind::reduce_scatter || m == slot;
          const std::int64_t due = gather ? 1 : plan.members;
          if (wants && (count != due || (gather && !set[slot])))
            return fmt::format("plan.c3: member {} ends with {} of {} contributions to slot {}", m, count, due, slot);
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
  held.cells = static_cast<std::size_t>(cells_of(plan));
  held.sets.assign(held.members * held.members * held.parts * held.cells, Set(held.members, false));
  const bool gather = plan.kind == CollectiveKind::all_gather;
  for (std::size_t m = 0; m < held.members; ++m)
    for (std::size_t slot = 0; slot < held.members; ++slot)
      for (std::size_t part = 0; part < held.parts; ++part)
        for (std::size_t cell = 0; cell < held.cells; ++cell)
          if (!gather || m == slot)
            held.sets[held.at(static_cast<std::int64_t>(m), static_cast<std::int64_t>(slot),
                              static_cast<std::int64_t>(part), static_cast<std::int64_t>(cell))][m] = true;
  std::int64_t bytes = 0;
  if (std::string broken = play(plan, steps_of, held, bytes); !broken.empty()) return broken;
  if (std::string broken = check_end(plan, held); !broken.empty()) return broken;
  if (bytes != plan.total_bytes)
    return fmt::format("plan.c4: {} bytes are moved, {} are charged", bytes, plan.total_bytes);
  return "";
}

}  // namespace tpusim::plan
