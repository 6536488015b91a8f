// The reader that keeps time: every instruction's duration from tables, every token a time in picoseconds.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/run/backend.hpp"
#include "sim/run/time_token.hpp"
#include "sim/timing/chip_cost.hpp"
#include "sim/timing/collective_time.hpp"

namespace tpusim::timing {

// Durations of everything that a StepProgram can issue, on a machine. Transfers are numbered: collectives, then
// permutes, then stage reduces.
struct Durations {
  std::vector<SimTime> kernels, transfers;
  std::int32_t permute0 = 0, stage_reduce0 = 0;  // number of the first permute, stage reduce
};
Durations durations(const plan::StepProgram& program, const topologies::Chip& chip, const fabric::Fabric& fabric,
                    const SpeedUp& speed_up = {});

// What a backend saw happen, for timelines and for replaying in exactly this order.
struct Event {
  std::int32_t device_class = 0;
  plan::InstrKind kind = plan::InstrKind::kernel;
  std::int32_t body = 0, site = 0;
  std::int64_t microbatch = 0;
  std::int64_t start = 0, end = 0;  // ps
};

// A buffer comes to life when the instruction that allocates it starts, and is gone when all that use it have ended and
// the compute stream has come to its release.
struct MemoryEvent {
  std::int32_t device_class = 0;
  plan::BufferId buffer;
  bool allocated = false;  // else released
  std::int64_t time = 0;   // ps
};

class TimingBackend {
 public:
  using Token = run::TimeToken;
  static constexpr bool kOrdered = true;
  // batch_ready(step): when the batch of a step is on the chips, in ps; empty: always there.
  TimingBackend(const Durations& durations, std::size_t classes, std::function<std::int64_t(std::int64_t)> batch_ready);

  Token origin() const { return {}; }
  Token join(const Token& a, const Token& b) const { return run::join(a, b); }
  Token kernel(std::int32_t c, const run::KernelCall& call, const Token& stream, const Token& ready);
  Token collective(const run::CollectiveCall& call, const Token& stream, const Token& ready);
  Token permute(const run::PermuteCall& call, const Token& stream, const Token& sender, const Token& receiver);
  Token stage_reduce(const run::StageReduceCall& call, const Token& stream, const Token& ready);
  Token allocate(std::int32_t c, const run::Instance& instance, const Token& memory) {
    if (memory_log != nullptr) {
      allocated_[static_cast<std::size_t>(c)].push_back(memory_log->size());
      memory_log->push_back({c, instance.buffer, true, 0});
    }
    return memory;
  }
  Token release(std::int32_t c, const run::Instance& instance, const Token& memory, const Token& done) {
    if (memory_log != nullptr)
      memory_log->push_back({c, instance.buffer, false, std::max(done.ps, reached_[static_cast<std::size_t>(c)])});
    return run::join(memory, done);
  }
  Token batch(std::int32_t c, std::int64_t step) const;

  run::Spent& spent(std::int32_t c) { return spent_[static_cast<std::size_t>(c)]; }
  // Called for everything issued, when set. Repetition must be off for it, and for the log, to see all.
  std::function<void(const Event&)> observer;
  // Gets everything allocated and released, when set: of each class in plan order, not in order of time.
  std::vector<MemoryEvent>* memory_log = nullptr;

 private:
  void made(std::int32_t c, std::int64_t start);
  Token transfer(std::int32_t number, const Token& stream, const Token& ready, bool crosses);
  const Durations& durations_;
  std::vector<run::Spent> spent_;
  std::vector<std::vector<std::size_t>> allocated_;  // by class: in the log, for the instruction to be issued next
  std::vector<std::int64_t> reached_;                // by class: end of the last kernel
  std::function<std::int64_t(std::int64_t)> batch_ready_;
};

}  // namespace tpusim::timing
