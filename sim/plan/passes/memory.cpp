// Pass 9: peak live bytes of each stage, from the order of allocations and releases alone. A template is summed up once
// by its net growth and its peak; repeats are added by arithmetic, so that the cost does not depend on the number of
// microbatches.
#include <algorithm>
#include <array>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

using Split = std::array<std::int64_t, 5>;  // by Category

std::int64_t total(const Split& s) {
  return s[0] + s[1] + s[2] + s[3] + s[4];
}
Split plus(Split a, const Split& b, std::int64_t times = 1) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = checked_add(a[i], checked_mul(b[i], times, "live bytes"), "live bytes");
  return a;
}

struct Growth {
  Split net{}, peak{};  // relative to the start; peak at least the start itself
};

class Memory {
 public:
  explicit Memory(Lowering& l) : l_(l) {
    for (const Template& t : l.out.templates) growth_.push_back(of(t));
  }
  MemorySummary stage(std::int32_t s) const;

 private:
  Growth of(const Template& t) const;
  Split resident(std::int32_t stage) const;
  // A walk over calls: what is live now, and the fullest moment so far.
  struct Walk {
    Split live{}, peak{};
    void add(const Growth& g) {
      const Split highest = plus(live, g.peak);
      if (total(highest) > total(peak)) peak = highest;
      live = plus(live, g.net);
    }
  };
  void play(Walk& walk, const Schedule& schedule, std::size_t segment, bool opens, bool closes) const;

  Lowering& l_;
  std::vector<Growth> growth_;
};

Growth Memory::of(const Template& t) const {
  Growth g;
  const auto change = [&](const BufferRef& ref, std::int64_t sign) {
    const Buffer& buffer = l_.out.buffers[at(ref.buffer.index)];
    g.net[static_cast<std::size_t>(buffer.category)] += sign * buffer.bytes;
  };
  for (const Instr& instr : t.instrs) {
    for (const BufferRef& ref : instr.allocates) change(ref, 1);
    if (total(g.net) > total(g.peak)) g.peak = g.net;
    for (const Instr::Release& release : instr.releases) change(release.ref, -1);
  }
  return g;
}

// What is there before the step and after it.
Split Memory::resident(std::int32_t stage) const {
  std::vector<std::int64_t> sites(l_.blocks.size());
  for (const Site& site : l_.out.sites)
    if (site.stage == stage) ++sites[at(site.block)];
  Split out{};
  for (const Buffer& buffer : l_.out.buffers) {
    if (!buffer.persistent) continue;
    std::int64_t count = 1;
    if (buffer.scope == Scope::step) {
      const bool here =
          buffer.stages.empty() || std::find(buffer.stages.begin(), buffer.stages.end(), stage) != buffer.stages.end();
      count = here ? 1 : 0;
    } else {
      count = sites[at(buffer.block)];
      if (buffer.scope == Scope::microbatch)
        count = checked_mul(count, l_.out.microbatches, "the microbatches of a step");
    }
    std::int64_t& sum = out[static_cast<std::size_t>(buffer.category)];
    sum = checked_add(sum, checked_mul(buffer.bytes, count, "resident bytes"), "resident bytes");
  }
  return out;
}

// One repeat of a segment; `opens`: it comes from the segment before, `closes`: it goes on to the one after.
void Memory::play(Walk& walk, const Schedule& schedule, std::size_t s, bool opens, bool closes) const {
  const std::vector<Call>& body = schedule.segments[s].body;
  for (std::size_t c = 0; c < body.size(); ++c) {
    std::int32_t previous = -1, next = -1;
    if (c > 0)
      previous = body[c - 1].kind;
    else if (!opens)
      previous = body.back().kind;
    else if (s > 0)
      previous = schedule.segments[s - 1].body.back().kind;
    if (c + 1 < body.size())
      next = body[c + 1].kind;
    else if (!closes)
      next = body.front().kind;
    else if (s + 1 < schedule.segments.size())
      next = schedule.segments[s + 1].body.front().kind;
    walk.add(growth_[at(l_.out.find_template(body[c].kind, previous, next))]);
  }
}

MemorySummary Memory::stage(std::int32_t s) const {
  const Schedule& schedule = l_.out.schedules[at(s)];
  Walk walk;
  walk.live = walk.peak = resident(s);
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const std::int64_t repeat = schedule.segments[i].repeat;
    play(walk, schedule, i, true, repeat == 1);
    if (repeat > 2) {
      // Repeats in between are alike: each grows by the same amount, so the fullest is the first of them or the last.
      const Split before = walk.live;
      play(walk, schedule, i, false, false);
      Split net{};
      for (std::size_t k = 0; k < net.size(); ++k) net[k] = walk.live[k] - before[k];
      if (repeat > 3) {
        walk.live = plus(before, net, repeat - 3);
        play(walk, schedule, i, false, false);
      }
    }
    if (repeat > 1) play(walk, schedule, i, false, true);
  }
  MemorySummary summary;
  summary.peak_bytes = total(walk.peak);
  for (std::size_t k = 0; k < walk.peak.size(); ++k) summary.at_peak[k] = walk.peak[k];
  return summary;
}

}  // namespace

void summarize_memory(Lowering& l) {
  const Memory memory(l);
  for (std::int32_t s = 0; s < l.out.stages; ++s) l.out.memory.push_back(memory.stage(s));
}

}  // namespace tpusim::plan::passes
