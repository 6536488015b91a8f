#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "sim/base/random.hpp"
#include "sim/strategies/strategies.hpp"

namespace tpusim::strategies {
namespace {

using plan::Unit;

std::vector<std::int64_t> even_stages(std::int64_t stages) {
  return balance_stages({0, stages, 0, {}}, stages);
}
std::vector<Unit> played(const std::vector<plan::UnitSegment>& segments) {
  std::vector<Unit> all;
  for (const plan::UnitSegment& segment : segments)
    for (std::int64_t r = 0; r < segment.repeat; ++r)
      for (const Unit& unit : segment.body)
        all.push_back({unit.phase, unit.phase == ir::Phase::update ? unit.microbatch : unit.microbatch + r});
  return all;
}
std::int64_t most_alive(const std::vector<Unit>& units) {
  std::int64_t alive = 0, most = 0;
  for (const Unit& u : units) {
    if (u.phase == ir::Phase::forward) ++alive;
    if (u.phase == ir::Phase::backward) --alive;
    most = std::max(most, alive);
  }
  return most;
}
// Forward and backward of unit length, transfers free: when the last backward ends, or -1 when the stages wait in a
// circle.
std::int64_t makespan(const plan::ScheduleSpec& spec) {
  const std::size_t stages = spec.stages.size();
  std::vector<std::vector<Unit>> units;
  for (const auto& s : spec.stages) units.push_back(played(s));
  std::vector<std::size_t> next(stages, 0);
  std::vector<std::int64_t> clock(stages, 0);
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> forward_end, backward_end;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      while (next[s] < units[s].size()) {
        const Unit& u = units[s][next[s]];
        std::int64_t ready = 0;
        if (u.phase == ir::Phase::forward && s > 0) {
          const auto it = forward_end.find({s - 1, u.microbatch});
          if (it == forward_end.end()) break;
          ready = it->second;
        }
        if (u.phase == ir::Phase::backward && s + 1 < stages) {
          const auto it = backward_end.find({s + 1, u.microbatch});
          if (it == backward_end.end()) break;
          ready = it->second;
        }
        if (u.phase != ir::Phase::update) {
          clock[s] = std::max(clock[s], ready) + 1;
          (u.phase == ir::Phase::forward ? forward_end : backward_end)[{s, u.microbatch}] = clock[s];
        }
        ++next[s];
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < stages; ++s)
    if (next[s] < units[s].size()) return -1;
  return *std::max_element(clock.begin(), clock.end());
}

TEST_CASE("Every stage does every microbatch forward and then backward once, and updates once at the end") {
  for (const PipelineSchedule kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (std::int64_t p = 1; p <= 6; ++p)
      for (std::int64_t m = 1; m <= 12; ++m) {
        const plan::ScheduleSpec spec = make_schedule(kind, even_stages(p), m);
        REQUIRE(static_cast<std::int64_t>(spec.stages.size()) == p);
        CHECK(spec.microbatches == m);
        for (const auto& segments : spec.stages) {
          std::vector<int> forward(static_cast<std::size_t>(m), 0), backward(static_cast<std::size_t>(m), 0);
          const std::vector<Unit> units = played(segments);
          for (std::size_t i = 0; i + 1 < units.size(); ++i) {
            const std::size_t b = static_cast<std::size_t>(units[i].microbatch);
            REQUIRE(b < static_cast<std::size_t>(m));
            if (units[i].phase == ir::Phase::forward) ++forward[b];
            if (units[i].phase == ir::Phase::backward) {
              CHECK(forward[b] == 1);
              ++backward[b];
            }
          }
          CHECK(forward == std::vector<int>(static_cast<std::size_t>(m), 1));
          CHECK(backward == std::vector<int>(static_cast<std::size_t>(m), 1));
          CHECK(units.back().phase == ir::Phase::update);
          CHECK(units.back().microbatch == -1);
        }
      }
}

TEST_CASE("1F1B keeps min(p - s, m) microbatches alive on stage s; GPipe keeps all") {
  for (std::int64_t p = 1; p <= 6; ++p)
    for (std::int64_t m = 1; m <= 12; ++m) {
      const plan::ScheduleSpec one = make_schedule(PipelineSchedule::one_f_one_b, even_stages(p), m);
      const plan::ScheduleSpec all = make_schedule(PipelineSchedule::gpipe, even_stages(p), m);
      for (std::int64_t s = 0; s < p; ++s) {
        CHECK(most_alive(played(one.stages[static_cast<std::size_t>(s)])) == std::min(p - s, m));
        CHECK(most_alive(played(all.stages[static_cast<std::size_t>(s)])) == (p == 1 ? 1 : m));
      }
    }
}

TEST_CASE("Both schedules idle (p - 1)/(m + p - 1) of a step with equal stages and free transfers") {
  // Busy: m forwards and m backwards of length 1; a step takes 2 (m + p - 1).
  for (const PipelineSchedule kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (std::int64_t p = 1; p <= 6; ++p)
      for (std::int64_t m = 1; m <= 12; ++m) {
        if (kind == PipelineSchedule::one_f_one_b && m < p) continue;  // too few microbatches to fill the pipe in turn
        CHECK(makespan(make_schedule(kind, even_stages(p), m)) == 2 * (m + p - 1));
      }
}

TEST_CASE("A schedule's size does not depend on the number of microbatches") {
  for (const PipelineSchedule kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const plan::ScheduleSpec few = make_schedule(kind, even_stages(4), 1000);
    const plan::ScheduleSpec many = make_schedule(kind, even_stages(4), 1000000);
    for (std::size_t s = 0; s < 4; ++s) {
      CHECK(few.stages[s].size() == many.stages[s].size());
      CHECK(many.stages[s].size() <= 4);
      for (const plan::UnitSegment& segment : many.stages[s]) CHECK(segment.body.size() <= 2);
    }
  }
}

TEST_CASE("Equal layers are divided evenly; what is before and after them lies on the outer stages") {
  CHECK(balance_stages({1, 8, 1, {}}, 4) == std::vector<std::int64_t>{0, 3, 5, 7, 10});
  CHECK(balance_stages({1, 8, 1, {}}, 1) == std::vector<std::int64_t>{0, 10});
  CHECK(balance_stages({0, 4, 0, {}}, 4) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("A light head leaves the stages even, a heavy one takes layers off the last stage") {
  // Layers of 3; head 2: even stages cost 6, 6, 6, 8, and moving a layer away would make one of 9.
  CHECK(balance_stages({1, 8, 1, {0, 3, 3, 3, 3, 3, 3, 3, 3, 2}}, 4) == std::vector<std::int64_t>{0, 3, 5, 7, 10});
  // Head 7: even 6, 6, 6, 13; with one layer less 6, 6, 9, 10, the least possible, for the last layer stays with the
  // head.
  const SiteCosts heavy{1, 8, 1, {0, 3, 3, 3, 3, 3, 3, 3, 3, 7}};
  const std::vector<std::int64_t> stages = balance_stages(heavy, 4);
  double worst = 0;
  for (std::size_t s = 0; s < 4; ++s) worst = std::max(worst, stage_cost(heavy, stages, s));
  CHECK(worst == 10);
  CHECK(stages.back() - stages[3] == 2);  // one layer and the head
}

TEST_CASE("No contiguous split has a smaller largest stage") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    SiteCosts sites{static_cast<std::int64_t>(random.below(2)),
                    static_cast<std::int64_t>(1 + random.below(9)),
                    static_cast<std::int64_t>(random.below(2)),
                    {}};
    for (std::int64_t i = 0; i < sites.before + sites.layers + sites.after; ++i)
      sites.cost.push_back(static_cast<double>(random.below(20)));
    const std::int64_t stages = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(sites.layers)));
    const auto worst = [&](const std::vector<std::int64_t>& first) {
      double most = 0;
      for (std::size_t s = 0; s + 1 < first.size(); ++s) most = std::max(most, stage_cost(sites, first, s));
      return most;
    };
    const std::vector<std::int64_t> found = balance_stages(sites, stages);
    REQUIRE(found.size() == static_cast<std::size_t>(stages) + 1);
    // All splits of the layers into `stages` non-empty runs.
    double best = 1e300;
    std::vector<std::int64_t> first = {0};
    const auto search = [&](const auto& self, std::int64_t layer, std::int64_t left) -> void {
      if (left == 1) {
        first.push_back(sites.before + sites.layers + sites.after);
        best = std::min(best, worst(first));
        first.pop_back();
        return;
      }
      for (std::int64_t next = layer + 1; next <= sites.layers - (left - 1); ++next) {
        first.push_back(sites.before + next);
        self(self, next, left - 1);
        first.pop_back();
      }
    };
    search(search, 0, stages);
    CHECK(worst(found) == best);
    for (std::size_t s = 0; s + 1 < found.size(); ++s) CHECK(found[s] < found[s + 1]);
  }
}

}  // namespace
}  // namespace tpusim::strategies
