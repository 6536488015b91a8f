// Exact shortcuts for readers that keep time. Both rest on one fact: an instruction's start is a maximum of earlier
// times, so adding a constant to all of them adds it to the result; and a time that cannot be the largest of any
// maximum to come does not matter. Kernels start after their class's compute stream, transfers that allocate after its
// memory token, and transfers of what a kernel of their own call made after that kernel, so with
//   base = min(compute stream, memory)
// whatever only they use does not matter any more once it is at most base. A *bare* transfer is none of these (a
// gradient summed in place, one call later): it starts as soon as its links and its data allow. Times of its data are
// kept exactly until it has had them (Exactness), and a time of a link does not matter once it is at most base and all
// such data.
//
// calls: a call's outcome depends on its template and on the times that matter, relative to base. It is kept and
// reused, so layers repeat. Of a call that meets other stages this holds for the stretch between the meetings.
//
// runs: a call whose outcome was its predecessor's, and which left nothing else behind, is followed by more of the same
// as long as the calls are alike: they are added, not looked up.
//
// repeats: when, at the end of a round, the joint state of all classes relative to each other equals that of k rounds
// ago, the remaining repeats are added, not played: microbatches repeat.
//
// All are exact in integer picoseconds; tests play random programs with and without. Cost: O(what matters) for each
// call.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/run/class_state.hpp"
#include "sim/run/compiled.hpp"
#include "sim/run/time_token.hpp"

namespace tpusim::run {

template <Backend B>
class Interpreter;

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int64_t>& numbers) const {
    std::uint64_t h = numbers.size();
    for (std::int64_t n : numbers) {
      h = (h ^ static_cast<std::uint64_t>(n)) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 32;
    }
    return static_cast<std::size_t>(h);
  }
};

// For readers that keep no time.
struct NoRepetition {
  void forget() {}
};

// For tokens that are TimeToken (B::kOrdered).
template <Backend B>
class Repetition {
 public:
  // At a call's start: applies the known outcome and returns true, or notes what to remember.
  bool replay(Interpreter<B>& in, std::int32_t c);
  // The same for the inner stretch of a call that crosses, before each of its instructions.
  bool replay_inner(Interpreter<B>& in, std::int32_t c);
  // At a call's end, played or replayed: keeps the instances that outlive it and still matter, and remembers the
  // outcome.
  void store(Interpreter<B>& in, std::int32_t c);
  // At a round's end: skips repeats if the state has come round.
  void observe(Interpreter<B>& in);
  std::vector<std::int64_t> relative_state(Interpreter<B>& in);
  // Drops what was observed so far; outcomes of calls stay true.
  void forget() {
    forget_history();
    for (Recording& r : recordings_) {
      r.active = r.inner = false;
      r.last = nullptr;
    }
  }

 private:
  using Numbers = std::vector<std::int64_t>;
  using State = ClassState<TimeToken>;
  struct Outcome {
    Numbers tokens;  // memory, compute, barrier, resources of the template, then write and readers of each kept slot
                     // (of an inner stretch: of each slot that it writes, then the readers of those that it reads)
    std::vector<std::int16_t> kept;  // slots
    Spent spent;                     // without `exposed`
    std::vector<std::pair<std::int32_t, std::int64_t>> exposed;
  };
  struct Recording {
    bool active = false;
    bool inner = false;  // of the inner stretch
    const Outcome* replayed = nullptr;
    const Outcome* last = nullptr;  // of the preceding call, if nothing but what that left outlived it
    std::int64_t base = 0;
    Numbers key;
    Spent spent;
  };
  struct Past {
    Numbers state;
    std::size_t hash = 0;  // of `state`
    std::vector<std::int64_t> bases;
    std::vector<Spent> spent;
    std::vector<std::vector<std::int64_t>> calls;
  };
  // A token relative to `base`; clamped: all that is at most `base` is the same. `busy_since` below `base` never
  // matters.
  static void push(Numbers& out, const TimeToken& t, std::int64_t base, bool clamped);
  static void push(Numbers& out, const Entry<TimeToken>& entry, std::int64_t base, bool clamped);
  static void pull(const Numbers& in, std::size_t& at, std::int64_t base, TimeToken& out);
  bool call_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key);
  bool inner_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key);
  void push_clocks(Interpreter<B>& in, State& s, Numbers& out, std::int64_t base);
  void apply(Interpreter<B>& in, std::int32_t c, const Outcome& outcome, std::int64_t base);
  void note_spent(Interpreter<B>& in, std::int32_t c, const Recording& rec, Outcome& outcome);
  bool kept_after(Interpreter<B>& in, State& s, const Slot& slot, Entry<TimeToken>& entry, std::int64_t base);
  bool settled(Interpreter<B>& in, State& s, Entry<TimeToken>& entry, std::int64_t base);
  std::int64_t run_on(Interpreter<B>& in, std::int32_t c, const Outcome& outcome, std::int64_t base);
  void remember(Interpreter<B>& in, std::int32_t c, Recording& rec);
  bool describe(Interpreter<B>& in, Numbers& out, std::vector<std::int64_t>& bases);
  bool describe_class(Interpreter<B>& in, State& s, std::int64_t base, Numbers& out);
  void describe_entry(Interpreter<B>& in, State& s, const Kept<TimeToken>& kept, std::int64_t base, Numbers& out);
  bool describe_meetings(Interpreter<B>& in, const std::vector<std::int64_t>& bases, Numbers& out);
  void forget_history() {
    history_.clear();
    history_numbers_ = 0;
  }
  static std::int64_t rank_of(Interpreter<B>& in, std::int32_t meeting);
  void skip(Interpreter<B>& in, const Past& then, const Past& now, std::int64_t period, std::int64_t times);

  // Bounds on memory; what does not fit is played.
  static constexpr std::size_t kMostOutcomes = 16384;
  static constexpr std::size_t kMostHistory = std::size_t{1} << 23;  // numbers in the states of `history_`

  std::unordered_map<Numbers, Outcome, NumbersHash> outcomes_;
  std::vector<Recording> recordings_;
  std::vector<std::pair<std::int16_t, std::size_t>> matched_;  // scratch: slots and their entries in `few`
  std::deque<Past> history_;
  std::size_t history_numbers_ = 0;  // in the states of `history_`
};

}  // namespace tpusim::run

#include "sim/run/repeats.inl"
#include "sim/run/repetition.inl"
