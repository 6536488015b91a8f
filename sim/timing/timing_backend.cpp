#include "sim/timing/timing_backend.hpp"

#include <algorithm>

namespace tpusim::timing {

using run::Cause;
using run::TimeToken;

namespace {

std::int64_t add(std::int64_t start, SimTime duration) {
  return (SimTime::from_ps(start) + duration).ps();
}

}  // namespace

Durations durations(const plan::StepProgram& program, const topologies::Chip& chip, const fabric::Fabric& fabric,
                    const SpeedUp& speed_up) {
  Durations out;
  for (const plan::Kernel& kernel : program.kernels)
    out.kernels.push_back(SimTime::from(kernel_time(kernel, chip, speed_up).total()));
  std::vector<SimTime> plans;
  for (const plan::CollectivePlan& plan : program.plans)
    plans.push_back(collective_time(plan, fabric.collective_overhead, fabric, speed_up));
  for (const plan::Collective& collective : program.collectives)
    out.transfers.push_back(plans[static_cast<std::size_t>(collective.plan)]);
  out.permute0 = static_cast<std::int32_t>(out.transfers.size());
  for (const plan::Permute& permute : program.permutes) out.transfers.push_back(permute_time(permute, speed_up));
  out.stage_reduce0 = static_cast<std::int32_t>(out.transfers.size());
  for (const plan::StageReduce& reduce : program.stage_reduces)
    out.transfers.push_back(stage_reduce_time(reduce, speed_up));
  return out;
}

TimingBackend::TimingBackend(const Durations& durations, std::size_t classes,
                             std::function<std::int64_t(std::int64_t)> batch_ready)
    : durations_(durations),
      spent_(classes),
      allocated_(classes),
      reached_(classes, 0),
      batch_ready_(std::move(batch_ready)) {
  for (run::Spent& spent : spent_) spent.exposed.assign(durations.transfers.size(), 0);
}

void TimingBackend::made(std::int32_t c, std::int64_t start) {
  if (memory_log == nullptr) return;
  for (std::size_t i : allocated_[static_cast<std::size_t>(c)]) (*memory_log)[i].time = start;
  allocated_[static_cast<std::size_t>(c)].clear();
}

// The gap before the kernel is shared out: while a transfer that it waits for was under way, communication; before
// that, what the transfer itself waited for.
TimeToken TimingBackend::kernel(std::int32_t c, const run::KernelCall& call, const Token& stream, const Token& ready) {
  const std::int64_t start = std::max(stream.ps, ready.ps);
  run::Spent& spent = spent_[static_cast<std::size_t>(c)];
  if (start > stream.ps) {
    const std::int64_t under_way = std::clamp(ready.busy_since, stream.ps, start);
    spent.communication += start - under_way;
    if (ready.transfer >= 0) spent.exposed[static_cast<std::size_t>(ready.transfer)] += start - under_way;
    const std::int64_t before = under_way - stream.ps;
    switch (ready.before) {
      case Cause::overhead:
        spent.overhead += before;
        break;
      case Cause::input:
        spent.input += before;
        break;
      case Cause::bubble:
        spent.bubble += before;
        break;
    }
  }
  const SimTime duration = durations_.kernels[static_cast<std::size_t>(call.kernel)];
  const std::int64_t end = add(start, duration);
  spent.compute += duration.ps();
  made(c, start);
  reached_[static_cast<std::size_t>(c)] = end;
  if (observer) observer({c, plan::InstrKind::kernel, call.kernel, call.site, call.microbatch, start, end});
  return {end, end, Cause::overhead, -1};
}

// Without a break after the transfer whose links, or whose data, it waited for. Data of another stage is different:
// whatever that stage was doing, the receiver waited for work that another chip had not finished.
TimeToken TimingBackend::transfer(std::int32_t number, const Token& stream, const Token& ready, bool crosses) {
  const std::int64_t start = std::max(stream.ps, ready.ps);
  TimeToken out{add(start, durations_.transfers[static_cast<std::size_t>(number)]), start,
                crosses ? Cause::bubble : ready.before, number};
  const TimeToken& last = stream.ps >= ready.ps ? stream : ready;
  if (crosses && &last == &ready) return out;
  if (last.transfer >= 0 && last.ps == start && last.busy_since < start) {
    out.busy_since = last.busy_since;
    out.before = last.before;
  }
  return out;
}

TimeToken TimingBackend::collective(const run::CollectiveCall& call, const Token& stream, const Token& ready) {
  const TimeToken out = transfer(call.collective, stream, ready, false);
  const std::int64_t start = out.ps - durations_.transfers[static_cast<std::size_t>(call.collective)].ps();
  for (const run::CollectiveMember& member : *call.members) {
    made(member.device_class, start);
    if (observer)
      observer({member.device_class, plan::InstrKind::collective, call.collective, call.site, call.microbatch, start,
                out.ps});
  }
  return out;
}

TimeToken TimingBackend::permute(const run::PermuteCall& call, const Token& stream, const Token& sender,
                                 const Token& receiver) {
  const std::int32_t number = durations_.permute0 + call.permute;
  const TimeToken out = transfer(number, stream, run::join(sender, receiver), true);
  if (observer) {
    const std::int64_t start = out.ps - durations_.transfers[static_cast<std::size_t>(number)].ps();
    observer({call.from_class, plan::InstrKind::send, call.permute, 0, call.microbatch, start, out.ps});
    observer({call.to_class, plan::InstrKind::receive, call.permute, 0, call.microbatch, start, out.ps});
  }
  return out;
}

TimeToken TimingBackend::stage_reduce(const run::StageReduceCall& call, const Token& stream, const Token& ready) {
  const std::int32_t number = durations_.stage_reduce0 + call.stage_reduce;
  const TimeToken out = transfer(number, stream, ready, true);
  if (observer)
    for (std::int32_t c : call.classes)
      observer({c, plan::InstrKind::stage_reduce, call.stage_reduce, 0, -1,
                out.ps - durations_.transfers[static_cast<std::size_t>(number)].ps(), out.ps});
  return out;
}

TimeToken TimingBackend::batch(std::int32_t, std::int64_t step) const {
  if (!batch_ready_) return {};
  const std::int64_t ready = batch_ready_(step);
  return {ready, ready, Cause::input, -1};
}

static_assert(run::Backend<TimingBackend>);

}  // namespace tpusim::timing
