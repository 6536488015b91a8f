// The reader that answers nothing: for legality, stalls and counts.
#pragma once

#include "sim/run/backend.hpp"

namespace tpusim::run {

struct NullBackend {
  struct Token {};
  static constexpr bool kOrdered = false;
  std::int64_t kernels = 0, collectives = 0, permutes = 0, stage_reduces = 0, allocations = 0, releases = 0;

  Token origin() { return {}; }
  Token join(Token, Token) { return {}; }
  Token kernel(std::int32_t, const KernelCall&, Token, Token) { return ++kernels, Token{}; }
  Token collective(const CollectiveCall&, Token, Token) { return ++collectives, Token{}; }
  Token permute(const PermuteCall&, Token, Token, Token) { return ++permutes, Token{}; }
  Token stage_reduce(const StageReduceCall&, Token, Token) { return ++stage_reduces, Token{}; }
  Token allocate(std::int32_t, const Instance&, Token) { return ++allocations, Token{}; }
  Token release(std::int32_t, const Instance&, Token, Token) { return ++releases, Token{}; }
  Token batch(std::int32_t, std::int64_t) { return {}; }
};
static_assert(Backend<NullBackend>);

}  // namespace tpusim::run
