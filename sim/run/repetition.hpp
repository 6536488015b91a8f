// Exact shortcuts for readers that keep time. Both rest on one fact: an instruction's start is a maximum of earlier times, so
// adding a constant to all of them adds it to the result, and a time that is not later than min(compute stream, memory) of its
// class can no longer matter ("settled"): every later start takes the maximum with one of the two.
//
//   calls     a call's outcome depends on its template and on the unsettled times relative to that minimum; the outcome is kept
//             and reused: layers repeat
//   repeats   when, at the end of a round, the joint state of all classes relative to each other equals that of k rounds ago, the
//             remaining repeats are added, not played: microbatches repeat
// Both are exact in integer picoseconds; tests play every scenario with and without.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "sim/run/class_state.hpp"
#include "sim/run/compiled.hpp"
#include "sim/run/time_token.hpp"

namespace tpusim::run {

template <Backend B>
class Interpreter;

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int64_t>& numbers) const {
    std::uint64_t h = 0x9e3779b97f4a7c15ull;
    for (std::int64_t n : numbers) h = (h ^ static_cast<std::uint64_t>(n)) * 0xbf58476d1ce4e5b9ull ^ (h >> 31);
    return static_cast<std::size_t>(h);
  }
};

// Whether nothing about the entry can matter any more.
template <class B, class Token>
bool settled(const B&, ClassState<Token>& s, Meetings<Token>& meetings, Entry<Token>& entry) {
  if (entry.write.meeting >= 0) {
    if (!meetings.at(entry.write.meeting).done) return false;
    entry.write = {meetings.at(entry.write.meeting).completion, -1};
  }
  while (!entry.reader_meetings.empty()) {
    if (!meetings.at(entry.reader_meetings.back()).done) return false;
    entry.readers = join(entry.readers, meetings.at(entry.reader_meetings.back()).completion);
    entry.reader_meetings.erase_at(entry.reader_meetings.size() - 1);
  }
  const std::int64_t base = std::min(s.memory.ps, s.compute.token.ps);
  return entry.write.token.ps <= base && entry.readers.ps <= base;
}

// For readers that keep no time.
struct NoRepetition {};

// For tokens that are TimeToken (B::kOrdered).
template <Backend B>
class Repetition {
 public:
  // At a call's start: applies the known outcome and returns true, or notes what to remember.
  bool replay(Interpreter<B>& in, std::int32_t c);
  // At a call's end.
  void remember(Interpreter<B>& in, std::int32_t c);
  // At a round's end: skips repeats if the state has come round.
  void observe(Interpreter<B>& in);

 private:
  using Numbers = std::vector<std::int64_t>;
  struct Outcome {
    Numbers tokens;
    Spent spent;
  };
  struct Recording {
    bool active = false;
    std::int64_t base = 0;
    Numbers key;
    Spent spent;
  };
  struct Past {
    Numbers signature;
    std::vector<std::int64_t> bases;
    std::vector<Spent> spent;
    std::vector<std::vector<std::int64_t>> calls;
  };
  static void push(Numbers& out, const TimeToken& t, std::int64_t base);
  static TimeToken pull(const Numbers& in, std::size_t& at, std::int64_t base);
  bool call_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key);
  bool signature(Interpreter<B>& in, Past& out, std::int64_t& left);
  void skip(Interpreter<B>& in, const Past& then, const Past& now, std::int64_t period, std::int64_t times);

  std::unordered_map<Numbers, Outcome, NumbersHash> outcomes_;
  std::vector<Recording> recordings_;
  std::deque<Past> history_;
};

}  // namespace tpusim::run

#include "sim/run/repetition.inl"
