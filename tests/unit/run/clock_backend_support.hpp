// The smallest reader that keeps time: a duration for each kernel, one for each kind of transfer.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/run/interpreter.hpp"

namespace tpusim::run::testing {

struct ClockBackend {
  using Token = TimeToken;
  static constexpr bool kOrdered = true;
  std::vector<std::int64_t> kernels, collectives, permutes;  // ps, by body
  std::int64_t stage_reduce_ps = 1;
  std::vector<std::int64_t> batches;  // by step; empty: always there
  std::vector<Spent> all = std::vector<Spent>(64);
  struct Interval {
    std::string what;
    std::int64_t start = 0, end = 0;
    bool operator==(const Interval&) const = default;
  };
  std::vector<Interval> log;

  Token origin() const { return {}; }
  Token join(const Token& a, const Token& b) const { return run::join(a, b); }
  Token run_from(const std::string& what, std::int64_t start, std::int64_t length) {
    log.push_back({what, start, start + length});
    return {start + length, start + length, Cause::overhead, -1};
  }
  Token kernel(std::int32_t c, const KernelCall& call, const Token& stream, const Token& ready) {
    const std::int64_t start = std::max(stream.ps, ready.ps);
    spent(c).overhead += start - stream.ps;
    spent(c).compute += kernels[static_cast<std::size_t>(call.kernel)];
    return run_from("kernel " + std::to_string(call.kernel), start, kernels[static_cast<std::size_t>(call.kernel)]);
  }
  Token collective(const CollectiveCall& call, const Token& stream, const Token& ready) {
    return run_from("collective " + std::to_string(call.collective), std::max(stream.ps, ready.ps),
                    collectives[static_cast<std::size_t>(call.collective)]);
  }
  Token permute(const PermuteCall& call, const Token& stream, const Token& sender, const Token& receiver) {
    return run_from("permute " + std::to_string(call.permute), std::max({stream.ps, sender.ps, receiver.ps}),
                    permutes[static_cast<std::size_t>(call.permute)]);
  }
  Token stage_reduce(const StageReduceCall& call, const Token& stream, const Token& ready) {
    return run_from("sum " + std::to_string(call.stage_reduce), std::max(stream.ps, ready.ps), stage_reduce_ps);
  }
  Token allocate(std::int32_t, const Instance&, const Token& memory) const { return memory; }
  Token release(std::int32_t, const Instance&, const Token& memory, const Token& done) const {
    return run::join(memory, done);
  }
  Token batch(std::int32_t, std::int64_t step) const {
    if (batches.empty()) return {};
    const std::int64_t ps = batches[static_cast<std::size_t>(step)];
    return {ps, ps, Cause::input, -1};
  }
  Spent& spent(std::int32_t c) { return all[static_cast<std::size_t>(c)]; }
};
static_assert(Backend<ClockBackend>);

}  // namespace tpusim::run::testing
