// What the files of the plan's verifier share. Internal to sim/plan.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/plan/step_program.hpp"

namespace tpusim::plan {

// Schedules are played whole up to so many calls, else so many from the start.
constexpr std::int64_t kPlayedCalls = 4096;

class Faults {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    if (!full()) list_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  bool full() const { return list_.size() >= 50; }
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

// Calls of a schedule in order, at most kPlayedCalls: visit(call, microbatch, previous kind, next kind).
template <class Visit>
void walk_calls(const Schedule& schedule, Visit visit) {
  std::int64_t played = 0;
  std::int32_t previous = -1;
  for (std::size_t s = 0; s < schedule.segments.size(); ++s) {
    const Segment& segment = schedule.segments[s];
    for (std::int64_t r = 0; r < segment.repeat; ++r)
      for (std::size_t c = 0; c < segment.body.size(); ++c) {
        std::int32_t next = -1;
        if (c + 1 < segment.body.size())
          next = segment.body[c + 1].kind;
        else if (r + 1 < segment.repeat)
          next = segment.body[0].kind;
        else if (s + 1 < schedule.segments.size())
          next = schedule.segments[s + 1].body[0].kind;
        visit(segment.body[c], segment.body[c].microbatch + r, previous, next);
        previous = segment.body[c].kind;
        if (++played >= kPlayedCalls) return;
      }
  }
}

// Rules step.c3 to step.c7 and step.c12 for one stage, by playing its schedule.
void verify_lifetimes(const StepProgram& program, std::int32_t stage, Faults& faults);

}  // namespace tpusim::plan
