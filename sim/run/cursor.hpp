// A position in a schedule that never ends: step after step, segment after segment, repeat after repeat.
#pragma once

#include <cstdint>

#include "sim/plan/step_program.hpp"

namespace tpusim::run {

// A call with its place in the run resolved.
struct ResolvedCall {
  std::int32_t site = 0;
  std::int32_t kind = -1;  // -1: none (before a step's first call, after its last)
  std::int64_t microbatch = 0;
  std::int64_t number = 0;  // of the class's calls since the start of the run; names instances of scope call
};

class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(const plan::Schedule& schedule);
  const ResolvedCall& previous() const { return previous_; }  // kind -1 at a step's first call
  const ResolvedCall& current() const { return current_; }
  const ResolvedCall& next() const { return next_; }  // kind -1 at a step's last call
  std::int64_t step() const { return step_; }
  // To the next call; steps follow each other for ever.
  void advance();
  bool at_step_start() const { return previous_.kind < 0; }
  // Whether the current call begins a repeat of its segment, how many repeats are left after this one, and which
  // segment it is.
  bool at_repeat_start() const { return body_ == 0; }
  std::int64_t repeats_left() const { return schedule_->segments[segment_].repeat - 1 - repeat_; }
  std::int32_t segment() const { return static_cast<std::int32_t>(segment_); }
  // Skips `repeats` whole repeats of the segment: microbatches and call numbers grow as if they had been played. At a
  // repeat start only.
  void skip(std::int64_t repeats);
  // How many calls after the current one, within its repeat, stand between neighbours as it does: all of one kind and
  // one microbatch, their sites at equal distances, the calls before and after included.
  std::int64_t alike() const;
  // Past that many of them: the last one becomes the current call.
  void pass(std::int64_t calls);

 private:
  ResolvedCall resolve(std::size_t segment, std::int64_t repeat, std::size_t body, std::int64_t number) const;
  // The place after (segment, repeat, body) within the step; false at its end.
  bool follow(std::size_t& segment, std::int64_t& repeat, std::size_t& body) const;
  void look_ahead();
  const plan::Schedule* schedule_ = nullptr;
  std::size_t segment_ = 0, body_ = 0;
  std::int64_t repeat_ = 0, step_ = 0;
  ResolvedCall previous_, current_, next_;
};

}  // namespace tpusim::run
