// The life of every instance of one stage: its schedule is played, allocations, reads, writes and releases in plan
// order.
#include <algorithm>
#include <unordered_map>

#include "sim/plan/verify_step.hpp"

namespace tpusim::plan {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

class Player {
 public:
  Player(const StepProgram& p, std::int32_t stage, Faults& faults) : p_(p), stage_(stage), faults_(faults) {}
  void play();

 private:
  struct Owner {
    const Call* call = nullptr;
    std::int64_t microbatch = 0, number = 0;
  };
  void play_instr(const Template& t, std::size_t i, const Owner (&owners)[3]);
  void check_end();
  std::int64_t resident() const;
  std::uint64_t key(const BufferRef& ref, const Owner& owner) const;
  std::string name(const BufferRef& ref) const {
    return fmt::format("{}[{:+d}]", p_.buffers[at(ref.buffer.index)].label, ref.site_delta);
  }

  const StepProgram& p_;
  std::int32_t stage_;
  Faults& faults_;
  std::unordered_map<std::uint64_t, bool> live_;  // instance -> written
  std::int64_t bytes_ = 0, peak_ = 0;
};

std::uint64_t Player::key(const BufferRef& ref, const Owner& owner) const {
  std::uint64_t site = 0, index = 0;
  switch (p_.buffers[at(ref.buffer.index)].scope) {
    case Scope::step:
      break;
    case Scope::site:
      site = static_cast<std::uint64_t>(std::int64_t{owner.call->site} + ref.site_delta);
      break;
    case Scope::microbatch:
      site = static_cast<std::uint64_t>(std::int64_t{owner.call->site} + ref.site_delta);
      index = static_cast<std::uint64_t>(owner.microbatch);
      break;
    case Scope::call:
      index = static_cast<std::uint64_t>(owner.number);
      break;
  }
  return (static_cast<std::uint64_t>(ref.buffer.index) << 44) ^ ((site & 0xfffff) << 24) ^ (index & 0xffffff);
}

void Player::play_instr(const Template& t, std::size_t n, const Owner (&owners)[3]) {
  const Instr& i = t.instrs[n];
  const Owner& owner = owners[i.owner + 1];
  const auto where = [&] {
    return fmt::format("stage {}, call kind {} between {} and {}, instruction {}", stage_, t.kind_index, t.previous,
                       t.next, n);
  };
  if (owner.call == nullptr) {
    faults_.add("step.c1: {}: of a call that does not exist", where());
    return;
  }
  for (const BufferRef& ref : i.allocates) {
    const Buffer& buffer = p_.buffers[at(ref.buffer.index)];
    if (buffer.persistent || !live_.emplace(key(ref, owner), false).second)
      faults_.add("step.c5: {}: allocates {} again", where(), name(ref));
    bytes_ += buffer.bytes;
  }
  peak_ = std::max(peak_, bytes_);
  const auto read = [&](const BufferRef& ref) {
    if (p_.buffers[at(ref.buffer.index)].persistent) return;
    const auto found = live_.find(key(ref, owner));
    if (found == live_.end() || !found->second)
      faults_.add("step.c3: {}: reads {}, which is {}", where(), name(ref),
                  found == live_.end() ? "not live" : "not written");
  };
  const auto write = [&](const BufferRef& ref) {
    if (p_.buffers[at(ref.buffer.index)].persistent) return;
    const auto found = live_.find(key(ref, owner));
    if (found == live_.end())
      faults_.add("step.c4: {}: writes {}, which is not live", where(), name(ref));
    else
      found->second = true;
  };
  switch (i.kind) {
    case InstrKind::kernel:
      for (const auto& v : p_.kernels[at(i.body)].reads) read(v.second);
      for (const auto& v : p_.kernels[at(i.body)].writes) write(v.second);
      break;
    case InstrKind::collective:
      for (const auto& v : p_.collectives[at(i.body)].reads) read(v.second);
      for (const auto& v : p_.collectives[at(i.body)].writes) write(v.second);
      break;
    case InstrKind::send:
      read(p_.permutes[at(i.body)].buffer);
      break;
    case InstrKind::receive:
      write(p_.permutes[at(i.body)].target);
      break;
    case InstrKind::stage_reduce:
      read(p_.stage_reduces[at(i.body)].buffer);
      break;
    case InstrKind::done:
      break;
  }
  for (const Instr::Release& release : i.releases) {
    const Owner& of = owners[release.owner + 1];
    const Buffer& buffer = p_.buffers[at(release.ref.buffer.index)];
    if (of.call == nullptr || buffer.persistent || live_.erase(key(release.ref, of)) == 0)
      faults_.add("step.c6: {}: releases {}, which is not there to be released", where(), name(release.ref));
    else
      bytes_ -= buffer.bytes;
  }
}

// What is there before the step and after it.
std::int64_t Player::resident() const {
  std::int64_t sum = 0;
  for (const Buffer& buffer : p_.buffers) {
    if (!buffer.persistent) continue;
    std::int64_t count = 0;
    if (buffer.scope == Scope::step) {
      count =
          buffer.stages.empty() || std::find(buffer.stages.begin(), buffer.stages.end(), stage_) != buffer.stages.end()
              ? 1
              : 0;
    } else {
      for (const Site& site : p_.sites) count += site.block == buffer.block && site.stage == stage_ ? 1 : 0;
      if (buffer.scope == Scope::microbatch) count *= p_.microbatches;
    }
    sum += count * buffer.bytes;
  }
  return sum;
}

void Player::check_end() {
  std::vector<std::uint64_t> left;
  for (const auto& instance : live_) left.push_back(instance.first);
  std::sort(left.begin(), left.end());
  for (std::uint64_t instance : left)
    faults_.add("step.c7: stage {}: {} is live at the end of the step", stage_,
                p_.buffers[static_cast<std::size_t>(instance >> 44)].label);
  if (!faults_.empty() || at(stage_) >= p_.memory.size()) return;
  const MemorySummary& memory = p_.memory[at(stage_)];
  const std::int64_t parts =
      memory.at_peak[0] + memory.at_peak[1] + memory.at_peak[2] + memory.at_peak[3] + memory.at_peak[4];
  if (memory.peak_bytes != resident() + peak_ || parts != memory.peak_bytes)
    faults_.add("step.c12: stage {}: the peak is {} bytes, not {}", stage_, resident() + peak_, memory.peak_bytes);
}

void Player::play() {
  const Schedule& schedule = p_.schedules[at(stage_)];
  struct Placed {
    const Call* call;
    std::int64_t microbatch;
    std::int32_t previous, next;
  };
  std::vector<Placed> calls;
  walk_calls(schedule, [&](const Call& call, std::int64_t microbatch, std::int32_t previous, std::int32_t next) {
    calls.push_back({&call, microbatch, previous, next});
  });
  for (std::size_t c = 0; c < calls.size() && !faults_.full(); ++c) {
    Owner owners[3];
    for (std::size_t o = 0; o < 3; ++o)
      if (c + o >= 1 && c + o - 1 < calls.size())
        owners[o] = {calls[c + o - 1].call, calls[c + o - 1].microbatch, static_cast<std::int64_t>(c + o)};
    const std::int32_t t = p_.find_template(calls[c].call->kind, calls[c].previous, calls[c].next);
    if (t < 0) return;
    if (calls[c].next >= 0 && owners[2].call == nullptr) return;  // where playing stops
    for (std::size_t n = 0; n < p_.templates[at(t)].instrs.size(); ++n) play_instr(p_.templates[at(t)], n, owners);
  }
  if (schedule.calls() <= kPlayedCalls) check_end();
}

}  // namespace

void verify_lifetimes(const StepProgram& program, std::int32_t stage, Faults& faults) {
  Player(program, stage, faults).play();
}

}  // namespace tpusim::plan
