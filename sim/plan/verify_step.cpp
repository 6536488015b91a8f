// The numbered rules of a StepProgram: those of its structure, and the list of all.
//
// clang-format off
//   step.c1  every index names something that is there
//   step.c2  every neighbourhood that the schedules hold has its template
//   step.c3  what is read is live and was written
//   step.c4  what is written is live
//   step.c5  what is allocated is not live, and not persistent
//   step.c6  what is released is live, and not persistent
//   step.c7  at the end of the step nothing is live but what is persistent
//   step.c8  a kernel's operands are made inside it or read, and what it writes is made inside it
//   step.c9  a collective's ops are of one kind over the axes it names, not the pipeline's; its plan has that many members, and its
//            resources are the axes of the plan
//   step.c10 on each stage boundary the transfers sent are those received, in the same order
//   step.c11 each site of a stage runs forward and backward once for each microbatch, and its first and last backward are marked
//   step.c12 the memory summary is the peak of the order of allocations and releases (schedules that are played whole)
//   step.c13 a transfer releases nothing
// clang-format on
#include "sim/plan/verify_step.hpp"

#include <algorithm>

namespace tpusim::plan {
namespace {

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
  bool indices();
  bool values_exist(const Values& values) const;
  void neighbourhoods();
  void kernels();
  void collectives();
  void coverage(std::int32_t stage);
  void transfers();

  const StepProgram& p_;
  Faults faults_;
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
      faults_.add("step.c1: kernel {} names a program or buffer that is not there", k);
  for (std::size_t c = 0; c < p_.collectives.size(); ++c)
    if (!in(p_.collectives[c].program, p_.programs.size()) || !in(p_.collectives[c].plan, p_.plans.size()) ||
        !values_exist(p_.collectives[c].reads) || !values_exist(p_.collectives[c].writes))
      faults_.add("step.c1: collective {} names a program, plan or buffer that is not there", c);
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
      if (!good) faults_.add("step.c1: an instruction of template {} names something that is not there", t);
      if (i.kind != InstrKind::kernel && i.kind != InstrKind::done && !i.releases.empty())
        faults_.add("step.c13: a transfer of template {} releases a buffer", t);
    }
  for (std::size_t s = 0; s < p_.schedules.size(); ++s)
    for (const Segment& segment : p_.schedules[s].segments)
      for (const Call& call : segment.body)
        if (!in(call.kind, p_.call_kinds.size()) || !in(call.site, p_.sites.size()))
          faults_.add("step.c1: a call of stage {} names a kind or site that is not there", s);
  return faults_.size() == before;
}

void Verifier::neighbourhoods() {
  for (std::size_t s = 0; s < p_.schedules.size(); ++s) {
    std::int32_t last[3] = {-2, -2, -2};
    walk_calls(p_.schedules[s], [&](const Call& call, std::int64_t, std::int32_t previous, std::int32_t next) {
      if (last[0] == call.kind && last[1] == previous && last[2] == next) return;
      last[0] = call.kind, last[1] = previous, last[2] = next;
      if (p_.find_template(call.kind, previous, next) < 0)
        faults_.add("step.c2: stage {} has no template for call kind {} between {} and {}", s, call.kind, previous,
                    next);
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
        faults_.add("step.c8: kernel {} has an op that its program lacks", k);
        return;
      }
      for (ir::ValueId v : program.op(id).operands)
        if (std::find(made.begin(), made.end(), v) == made.end() &&
            std::none_of(kernel.reads.begin(), kernel.reads.end(), [v](const auto& read) { return read.first == v; }))
          faults_.add("step.c8: kernel {} ({}) uses \"{}\" without reading it", k, kernel.label,
                      program.value(v).label);
      for (ir::ValueId v : program.op(id).results) made.push_back(v);
    }
    for (const auto& write : kernel.writes)
      if (std::find(made.begin(), made.end(), write.first) == made.end())
        faults_.add("step.c8: kernel {} ({}) writes what it does not make", k, kernel.label);
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
      faults_.add("step.c9: collective {} ({}) is not what its ops and its plan say", c, collective.label);
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
      faults_.add("step.c11: site {} runs {} forward and {} backward calls on stage {}, not {}", s, forward[s],
                  backward[s], stage, wanted);
  }
}

void Verifier::transfers() {
  // By permute and stage of the sender.
  std::vector<std::vector<std::int64_t>> sent(p_.permutes.size() * p_.schedules.size()), received(sent.size());
  const auto place = [&](const Instr& i, std::size_t stage) {
    const std::int32_t from = p_.permutes[at(i.body)].from(static_cast<std::int32_t>(stage), i.kind == InstrKind::send);
    const bool exists = from >= 0 && at(from) < p_.schedules.size();
    if (!exists) faults_.add("step.c10: transfer {} is received from stage {}, which does not exist", i.body, from);
    return at(i.body) * p_.schedules.size() + (exists ? at(from) : 0);
  };
  bool whole = true;
  for (std::size_t s = 0; s < p_.schedules.size(); ++s) {
    whole = whole && p_.schedules[s].calls() <= kPlayedCalls;
    std::int64_t microbatches[3] = {-1, -1, -1};
    const Template* before = nullptr;
    // A receive posted for the following call carries that call's microbatch, which is known one call later.
    walk_calls(p_.schedules[s],
               [&](const Call& call, std::int64_t microbatch, std::int32_t previous, std::int32_t next) {
                 microbatches[0] = microbatches[1];
                 microbatches[1] = microbatch;
                 if (before != nullptr)
                   for (const Instr& i : before->instrs)
                     if (i.owner == 1 && i.kind == InstrKind::receive) received[place(i, s)].push_back(microbatch);
                 const std::int32_t t = p_.find_template(call.kind, previous, next);
                 before = t < 0 ? nullptr : &p_.templates[at(t)];
                 if (before == nullptr) return;
                 for (const Instr& i : before->instrs) {
                   if (i.owner == 1) continue;
                   const std::int64_t m = i.owner == 0 ? microbatches[1] : microbatches[0];
                   if (i.kind == InstrKind::send) sent[place(i, s)].push_back(m);
                   if (i.kind == InstrKind::receive) received[place(i, s)].push_back(m);
                 }
               });
  }
  for (std::size_t p = 0; p < sent.size(); ++p) {
    if (!whole) {
      const std::size_t n = std::min(sent[p].size(), received[p].size());
      sent[p].resize(n);
      received[p].resize(n);
    }
    if (sent[p] == received[p]) continue;
    const std::size_t number = p / p_.schedules.size();
    const auto from = static_cast<std::int32_t>(p % p_.schedules.size());
    faults_.add("step.c10: transfer {} from stage {} to {} is not received as it is sent", number, from,
                p_.permutes[number].to(from, true));
  }
}

std::vector<std::string> Verifier::run() {
  if (!indices()) return faults_.take();
  neighbourhoods();
  kernels();
  collectives();
  for (std::int32_t s = 0; s < p_.stages; ++s) coverage(s);
  transfers();
  for (std::int32_t s = 0; s < p_.stages; ++s) verify_lifetimes(p_, s, faults_);
  return faults_.take();
}

}  // namespace

std::vector<std::string> verify(const StepProgram& program) {
  return Verifier(program).run();
}

}  // namespace tpusim::plan
