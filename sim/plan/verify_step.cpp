// The numbered rules of a StepProgram. Structure is checked whole; the life of every instance by playing each stage's
// schedule, whole up to kPlayedCalls calls, else that many from the start.
//   step.c1  every index names something that is there
//   step.c2  every neighbourhood that the schedules hold has its template
//   step.c3  what is read is live and was written
//   step.c4  what is written is live
//   step.c5  what is allocated is not live, and not persistent
//   step.c6  what is released is live, and not persistent
//   step.c7  at the end of the step nothing is live but what is persistent
//   step.c8  a kernel's operands are made inside it or read, and what it writes is made inside it
//   step.c9  a collective's ops are of one kind over the axes it names, not the pipeline's; its plan has that many
//   members and its resources
//            are the axes of the plan
//   step.c10 on each stage boundary the transfers sent are those received, in the same order
//   step.c11 each site of a stage runs forward and backward once for each microbatch, and its first and last backward
//   are marked step.c12 the memory summary is the peak of the order of allocations and releases (schedules that are
//   played whole) step.c13 a transfer releases nothing
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/plan/step_program.hpp"

namespace tpusim::plan {
namespace {

constexpr std::int64_t kPlayedCalls = 4096;
constexpr std::size_t kMostFaults = 50;

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}
bool in(std::int32_t i, std::size_t size) {
  return i >= 0 && at(i) < size;
}

using Values = std::vector<std::pair<ir::ValueId, BufferRef>>;

class Verifier {
 public:
  explicit Verifier(const StepProgram& p) : p_(p) {}
  std::vector<std::string> run();

 private:
  struct Owner {
    const Call* call = nullptr;
    std::int64_t microbatch = 0, number = 0;
  };
  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    if (faults_.size() < kMostFaults) faults_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  bool indices();
  bool values_exist(const Values& values) const;
  void neighbourhoods();
  void kernels();
  void collectives();
  void coverage(std::int32_t stage);
  void transfers();
  void play(std::int32_t stage);
  void play_instr(std::int32_t stage, const Template& t, std::size_t i, const Owner (&owners)[3]);
  std::uint64_t key(const BufferRef& ref, const Owner& owner) const;
  std::string name(const BufferRef& ref) const {
    return fmt::format("{}[{:+d}]", p_.buffers[at(ref.buffer.index)].label, ref.site_delta);
  }
  template <class Visit>
  void calls_of(const Schedule& schedule, Visit visit) const;

  const StepProgram& p_;
  std::vector<std::string> faults_;
  std::unordered_map<std::uint64_t, bool> live_;  // instance -> written
  std::int64_t bytes_ = 0, peak_ = 0;
};

bool Verifier::values_exist(const Values& values) const {
  return std::all_of(values.begin(), values.end(),
                     [this](const auto& v) { return in(v.second.buffer.index, p_.buffers.size()); });
}

bool Verifier::indices() {
  const std::size_t before = faults_.size();
  for (std::size_t k = 0; k < p_.kernels.size(); ++k)
    if (!in(p_.kernels[k].program, p_.programs.size()) || !values_exist(p_.kernels[k].reads) ||
        !values_exist(p_.kernels[k].writes))
      fault("step.c1: kernel {} names a program or buffer that is not there", k);
  for (std::size_t c = 0; c < p_.collectives.size(); ++c)
    if (!in(p_.collectives[c].program, p_.programs.size()) || !in(p_.collectives[c].plan, p_.plans.size()) ||
        !values_exist(p_.collectives[c].reads) || !values_exist(p_.collectives[c].writes))
      fault("step.c1: collective {} names a program, plan or buffer that is not there", c);
  for (std::size_t t = 0; t < p_.templates.size(); ++t)
    for (const Instr& i : p_.templates[t].instrs) {
      bool good = true;
      switch (i.kind) {
        case InstrKind::kernel:
          good = in(i.body, p_.kernels.size());
          break;
        case InstrKind::collective:
          good = in(i.body, p_.collectives.size());
          break;
        case InstrKind::send:
        case InstrKind::receive:
          good = in(i.body, p_.permutes.size());
          break;
        case InstrKind::stage_reduce:
          good = in(i.body, p_.stage_reduces.size());
          break;
        case InstrKind::done:
          good = i.body == -1 || in(i.body, p_.templates[t].instrs.size());
          break;
      }
      for (const BufferRef& ref : i.allocates) good = good && in(ref.buffer.index, p_.buffers.size());
      for (const Instr::Release& r : i.releases) good = good && in(r.ref.buffer.index, p_.buffers.size());
      if (!good) fault("step.c1: an instruction of template {} names something that is not there", t);
      if (i.kind != InstrKind::kernel && i.kind != InstrKind::done && !i.releases.empty())
        fault("step.c13: a transfer of template {} releases a buffer", t);
    }
  for (std::size_t s = 0; s < p_.schedules.size(); ++s)
    for (const Segment& segment : p_.schedules[s].segments)
      for (const Call& call : segment.body)
        if (!in(call.kind, p_.call_kinds.size()) || !in(call.site, p_.sites.size()))
          fault("step.c1: a call of stage {} names a kind or site that is not there", s);
  return faults_.size() == before;
}

// Calls of a schedule in order, at most kPlayedCalls: visit(call, microbatch, previous kind, next kind).
template <class Visit>
void Verifier::calls_of(const Schedule& schedule, Visit visit) const {
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

void Verifier::neighbourhoods() {
  for (std::size_t s = 0; s < p_.schedules.size(); ++s) {
    std::int32_t last[3] = {-2, -2, -2};
    calls_of(p_.schedules[s], [&](const Call& call, std::int64_t, std::int32_t previous, std::int32_t next) {
      if (last[0] == call.kind && last[1] == previous && last[2] == next) return;
      last[0] = call.kind, last[1] = previous, last[2] = next;
      if (p_.find_template(call.kind, previous, next) < 0)
        fault("step.c2: stage {} has no template for call kind {} between {} and {}", s, call.kind, previous, next);
    });
  }
}

void Verifier::kernels() {
  for (std::size_t k = 0; k < p_.kernels.size(); ++k) {
    const Kernel& kernel = p_.kernels[k];
    const ir::Program& program = p_.programs[at(kernel.program)].local;
    std::vector<ir::ValueId> made;
    for (ir::OpId id : kernel.ops) {
      if (!in(id.index, program.ops.size())) {
        fault("step.c8: kernel {} has an op that its program lacks", k);
        return;
      }
      for (ir::ValueId v : program.op(id).operands)
        if (std::find(made.begin(), made.end(), v) == made.end() &&
            std::none_of(kernel.reads.begin(), kernel.reads.end(), [v](const auto& read) { return read.first == v; }))
          fault("step.c8: kernel {} ({}) uses \"{}\" without reading it", k, kernel.label, program.value(v).label);
      for (ir::ValueId v : program.op(id).results) made.push_back(v);
    }
    for (const auto& write : kernel.writes)
      if (std::find(made.begin(), made.end(), write.first) == made.end())
        fault("step.c8: kernel {} ({}) writes what it does not make", k, kernel.label);
  }
}

void Verifier::collectives() {
  for (std::size_t c = 0; c < p_.collectives.size(); ++c) {
    const Collective& collective = p_.collectives[c];
    const ir::Program& program = p_.programs[at(collective.program)].local;
    const CollectivePlan& plan = p_.plans[at(collective.plan)];
    bool good = collective.ops.size() == collective.reads.size() && collective.ops.size() == collective.writes.size() &&
                !collective.ops.empty();
    for (std::size_t i = 0; good && i < collective.ops.size(); ++i) {
      const ir::OpKind& kind = program.op(collective.ops[i]).kind;
      if (const auto* gather = std::get_if<ir::AllGather>(&kind))
        good = plan.kind == CollectiveKind::all_gather && gather->axes == collective.mesh_axes;
      else if (const auto* scatter = std::get_if<ir::ReduceScatter>(&kind))
        good = plan.kind == CollectiveKind::reduce_scatter && scatter->axes == collective.mesh_axes;
      else if (const auto* reduce = std::get_if<ir::AllReduce>(&kind))
        good = plan.kind == CollectiveKind::all_reduce && reduce->axes == collective.mesh_axes &&
               reduce->kind == plan.reduction;
      else
        good = false;
    }
    for (std::uint8_t axis : collective.mesh_axes)
      good = good && static_cast<std::int32_t>(axis) != p_.pipeline_axis && axis < p_.mesh.axes.size();
    good = good && plan.members == p_.mesh.size(collective.mesh_axes);
    std::vector<std::int32_t> resources;
    for (const GroupAxis& axis : plan.axes)
      if (axis.size > 1) resources.push_back(axis.physical);
    std::sort(resources.begin(), resources.end());
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    if (!good || resources != collective.resources)
      fault("step.c9: collective {} ({}) is not what its ops and its plan say", c, collective.label);
  }
}

void Verifier::coverage(std::int32_t stage) {
  std::vector<std::int64_t> forward(p_.sites.size()), backward(p_.sites.size()), first(p_.sites.size()),
      last(p_.sites.size());
  for (const Segment& segment : p_.schedules[at(stage)].segments)
    for (const Call& call : segment.body) {
      const CallKind& kind = p_.call_kinds[at(call.kind)];
      if (kind.phase == ir::Phase::forward) forward[at(call.site)] += segment.repeat;
      if (kind.phase != ir::Phase::backward) continue;
      backward[at(call.site)] += segment.repeat;
      if (kind.first) first[at(call.site)] += segment.repeat;
      if (kind.last) last[at(call.site)] += segment.repeat;
    }
  for (std::size_t s = 0; s < p_.sites.size(); ++s) {
    const std::int64_t wanted = p_.sites[s].stage == stage ? p_.microbatches : 0,
                       one = p_.sites[s].stage == stage ? 1 : 0;
    if (forward[s] != wanted || backward[s] != wanted || first[s] != one || last[s] != one)
      fault("step.c11: site {} runs {} forward and {} backward calls on stage {}, not {}", s, forward[s], backward[s],
            stage, wanted);
  }
}

void Verifier::transfers() {
  std::vector<std::vector<std::int64_t>> sent(p_.permutes.size()), received(p_.permutes.size());
  bool whole = true;
  for (std::size_t s = 0; s < p_.schedules.size(); ++s) {
    whole = whole && p_.schedules[s].calls() <= kPlayedCalls;
    std::int64_t microbatches[3] = {-1, -1, -1};
    const Template* before = nullptr;
    // A receive posted for the following call carries that call's microbatch, which is known one call later.
    calls_of(p_.schedules[s], [&](const Call& call, std::int64_t microbatch, std::int32_t previous, std::int32_t next) {
      microbatches[0] = microbatches[1];
      microbatches[1] = microbatch;
      if (before != nullptr)
        for (const Instr& i : before->instrs)
          if (i.owner == 1 && i.kind == InstrKind::receive) received[at(i.body)].push_back(microbatch);
      const std::int32_t t = p_.find_template(call.kind, previous, next);
      before = t < 0 ? nullptr : &p_.templates[at(t)];
      if (before == nullptr) return;
      for (const Instr& i : before->instrs) {
        if (i.owner == 1) continue;
        const std::int64_t m = i.owner == 0 ? microbatches[1] : microbatches[0];
        if (i.kind == InstrKind::send) sent[at(i.body)].push_back(m);
        if (i.kind == InstrKind::receive) received[at(i.body)].push_back(m);
      }
    });
  }
  for (std::size_t p = 0; p < p_.permutes.size(); ++p) {
    if (!whole) {
      const std::size_t n = std::min(sent[p].size(), received[p].size());
      sent[p].resize(n);
      received[p].resize(n);
    }
    if (sent[p] != received[p])
      fault("step.c10: transfer {} from stage {} to {} is not received as it is sent", p, p_.permutes[p].from_stage,
            p_.permutes[p].to_stage);
  }
}

std::uint64_t Verifier::key(const BufferRef& ref, const Owner& owner) const {
  std::uint64_t site = 0, index = 0;
  switch (p_.buffers[at(ref.buffer.index)].scope) {
    case Scope::step:
      break;
    case Scope::site:
      site = static_cast<std::uint64_t>(owner.call->site + ref.site_delta);
      break;
    case Scope::microbatch:
      site = static_cast<std::uint64_t>(owner.call->site + ref.site_delta);
      index = static_cast<std::uint64_t>(owner.microbatch);
      break;
    case Scope::call:
      index = static_cast<std::uint64_t>(owner.number);
      break;
  }
  return (static_cast<std::uint64_t>(ref.buffer.index) << 44) ^ ((site & 0xfffff) << 24) ^ (index & 0xffffff);
}

void Verifier::play_instr(std::int32_t stage, const Template& t, std::size_t n, const Owner (&owners)[3]) {
  const Instr& i = t.instrs[n];
  const Owner& owner = owners[i.owner + 1];
  const auto where = [&] {
    return fmt::format("stage {}, call kind {} between {} and {}, instruction {}", stage, t.kind_index, t.previous,
                       t.next, n);
  };
  if (owner.call == nullptr) {
    fault("step.c1: {}: of a call that does not exist", where());
    return;
  }
  for (const BufferRef& ref : i.allocates) {
    const Buffer& buffer = p_.buffers[at(ref.buffer.index)];
    if (buffer.persistent || !live_.emplace(key(ref, owner), false).second)
      fault("step.c5: {}: allocates {} again", where(), name(ref));
    bytes_ += buffer.bytes;
  }
  peak_ = std::max(peak_, bytes_);
  const auto read = [&](const BufferRef& ref) {
    if (p_.buffers[at(ref.buffer.index)].persistent) return;
    const auto found = live_.find(key(ref, owner));
    if (found == live_.end() || !found->second)
      fault("step.c3: {}: reads {}, which is {}", where(), name(ref),
            found == live_.end() ? "not live" : "not written");
  };
  const auto write = [&](const BufferRef& ref) {
    if (p_.buffers[at(ref.buffer.index)].persistent) return;
    const auto found = live_.find(key(ref, owner));
    if (found == live_.end())
      fault("step.c4: {}: writes {}, which is not live", where(), name(ref));
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
      fault("step.c6: {}: releases {}, which is not there to be released", where(), name(release.ref));
    else
      bytes_ -= buffer.bytes;
  }
}

void Verifier::play(std::int32_t stage) {
  const Schedule& schedule = p_.schedules[at(stage)];
  live_.clear();
  bytes_ = peak_ = 0;
  struct Placed {
    const Call* call;
    std::int64_t microbatch;
    std::int32_t previous, next;
  };
  std::vector<Placed> calls;
  calls_of(schedule, [&](const Call& call, std::int64_t microbatch, std::int32_t previous, std::int32_t next) {
    calls.push_back({&call, microbatch, previous, next});
  });
  for (std::size_t c = 0; c < calls.size() && faults_.size() < kMostFaults; ++c) {
    Owner owners[3];
    for (std::size_t o = 0; o < 3; ++o)
      if (c + o >= 1 && c + o - 1 < calls.size())
        owners[o] = {calls[c + o - 1].call, calls[c + o - 1].microbatch, static_cast<std::int64_t>(c + o)};
    const std::int32_t t = p_.find_template(calls[c].call->kind, calls[c].previous, calls[c].next);
    if (t < 0) return;
    if (calls[c].next >= 0 && owners[2].call == nullptr) return;  // where playing stops
    for (std::size_t n = 0; n < p_.templates[at(t)].instrs.size(); ++n)
      play_instr(stage, p_.templates[at(t)], n, owners);
  }
  if (schedule.calls() > kPlayedCalls) return;
  for (const auto& left : live_)
    fault("step.c7: stage {}: {} is live at the end of the step", stage,
          p_.buffers[static_cast<std::size_t>(left.first >> 44)].label);
  if (!faults_.empty() || !in(stage, p_.memory.size())) return;
  std::int64_t resident = 0;
  for (const Buffer& buffer : p_.buffers) {
    if (!buffer.persistent) continue;
    std::int64_t count = 0;
    if (buffer.scope == Scope::step) {
      count =
          buffer.stages.empty() || std::find(buffer.stages.begin(), buffer.stages.end(), stage) != buffer.stages.end()
              ? 1
              : 0;
    } else {
      for (const Site& site : p_.sites) count += site.block == buffer.block && site.stage == stage ? 1 : 0;
      if (buffer.scope == Scope::microbatch) count *= p_.microbatches;
    }
    resident += count * buffer.bytes;
  }
  const MemorySummary& memory = p_.memory[at(stage)];
  const std::int64_t parts =
      memory.at_peak[0] + memory.at_peak[1] + memory.at_peak[2] + memory.at_peak[3] + memory.at_peak[4];
  if (memory.peak_bytes != resident + peak_ || parts != memory.peak_bytes)
    fault("step.c12: stage {}: the peak is {} bytes, not {}", stage, resident + peak_, memory.peak_bytes);
}

std::vector<std::string> Verifier::run() {
  if (!indices()) return faults_;
  neighbourhoods();
  kernels();
  collectives();
  for (std::int32_t s = 0; s < p_.stages; ++s) coverage(s);
  transfers();
  for (std::int32_t s = 0; s < p_.stages; ++s) play(s);
  return faults_;
}

}  // namespace

std::vector<std::string> verify(const StepProgram& program) {
  return Verifier(program).run();
}

}  // namespace tpusim::plan
