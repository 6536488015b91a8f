// The token of readers that keep time: when, and what the time before it was spent on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tpusim::run {

// Why a device waited before the transfers that led to a token were under way.
enum class Cause : std::uint8_t { overhead, input, bubble };

struct TimeToken {
  std::int64_t ps = 0;
  std::int64_t busy_since = 0;  // from then until `ps` some transfer that leads here was under way without a break
  Cause before = Cause::overhead;
  std::int32_t transfer = -1;  // the transfer that ended last on the way here, by the reader's numbering; -1 none
  bool operator==(const TimeToken&) const = default;
};

// Both: the later one; where the earlier was still under way when the later's transfers began, they are one stretch.
// Ties go by the number of the transfer, never by `busy_since`, which a shortcut may round up to a time that no longer
// matters.
inline TimeToken join(const TimeToken& a, const TimeToken& b) {
  if (b.ps < a.busy_since) return a;
  if (a.ps < b.busy_since) return b;
  const TimeToken& late = a.ps < b.ps || (a.ps == b.ps && a.transfer < b.transfer) ? b : a;
  const TimeToken& early = &late == &a ? b : a;
  TimeToken out = late;
  if (early.ps >= late.busy_since && early.busy_since < late.busy_since) {
    out.busy_since = early.busy_since;
    out.before = early.before;
  }
  return out;
}

// What a class has spent its time on, in picoseconds; each instant once. Sums to the completion of its compute stream.
struct Spent {
  std::int64_t compute = 0, communication = 0, bubble = 0, input = 0, overhead = 0;
  std::vector<std::int64_t> exposed;  // by transfer: its part of `communication`
  bool operator==(const Spent&) const = default;
  Spent& operator+=(const Spent& o) {
    compute += o.compute, communication += o.communication, bubble += o.bubble, input += o.input,
        overhead += o.overhead;
    if (exposed.size() < o.exposed.size()) exposed.resize(o.exposed.size());
    for (std::size_t i = 0; i < o.exposed.size(); ++i) exposed[i] += o.exposed[i];
    return *this;
  }
  friend Spent operator-(Spent a, const Spent& o) { return a += o * -1; }
  friend Spent operator*(const Spent& a, std::int64_t n) {
    Spent out{a.compute * n, a.communication * n, a.bubble * n, a.input * n, a.overhead * n, a.exposed};
    for (std::int64_t& e : out.exposed) e *= n;
    return out;
  }
  std::int64_t total() const { return compute + communication + bubble + input + overhead; }
};

}  // namespace tpusim::run
