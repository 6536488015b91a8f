// Implementation of interpreter.hpp: meetings of classes, and stalls.
#pragma once

#include <fmt/format.h>

namespace tpusim::run {

template <Backend B>
std::size_t Interpreter<B>::instruction_number(const CompiledInstr& instr) const {
  const auto body = static_cast<std::size_t>(instr.body);
  if (instr.kind == plan::InstrKind::collective) return body;
  if (instr.kind == plan::InstrKind::stage_reduce) return program_.collectives.size() + program_.permutes.size() + body;
  return program_.collectives.size() + body;
}

// Leaves a class's arrival at the meeting that the instruction is; the last one completes it.
template <Backend B>
std::int32_t Interpreter<B>::meet(std::int32_t c, const CompiledInstr& instr, const Token& ready, const Token& stream) {
  State& s = state_[static_cast<std::size_t>(c)];
  const std::size_t instruction = instruction_number(instr);
  const MeetingKey key = meeting_key(c, instr);
  Meeting<Token>* m = meetings_.find(instruction, key);
  if (m == nullptr) {
    m = &meetings_.open(instruction, key);
    const ResolvedCall& call = owner(s, instr.owner);
    m->site = call.site;
    m->microbatch = call.microbatch;
    m->step = s.cursor.step();
    meeting_classes(c, instr, m->classes);
    Meetings<Token>::expect(*m);
  }
  const auto p = static_cast<std::size_t>(std::find(m->classes.begin(), m->classes.end(), c) - m->classes.begin());
  TPUSIM_CHECK(p < m->classes.size(), "a class at a meeting that is not its own");
  TPUSIM_CHECK(m->present[p] == 0, "a class arrives twice at one meeting");
  m->present[p] = 1;
  m->ready[p] = ready;
  m->stream[p] = stream;
  fill_member(c, s, instr, m->members[p]);
  if (instr.kind == plan::InstrKind::stage_reduce) ++s.stage_reduce_count[static_cast<std::size_t>(instr.body)];
  const std::int32_t id = m->id;
  if (++m->arrived == static_cast<std::int32_t>(m->classes.size())) complete(instruction, id);
  return id;
}

template <Backend B>
void Interpreter<B>::fill_member(std::int32_t c, const State& s, const CompiledInstr& instr,
                                 CollectiveMember& member) const {
  member.device_class = c;
  if constexpr (!B::kOrdered) {
    instances(s, instr.reads, instr.writes, member.reads);
    instances(s, instr.writes, instr.allocates, member.writes);
  }
}

template <Backend B>
std::int64_t Interpreter<B>::group_base(std::int64_t device, const ir::MeshAxes& axes) const {
  for (std::uint8_t axis : axes) device -= program_.mesh.coordinate(device, axis) * stride_[axis];
  return device;
}

template <Backend B>
MeetingKey Interpreter<B>::meeting_key(std::int32_t c, const CompiledInstr& instr) const {
  const State& s = state_[static_cast<std::size_t>(c)];
  const std::int64_t device = classes_[static_cast<std::size_t>(c)].device;
  const auto body = static_cast<std::size_t>(instr.body);
  MeetingKey key;
  key.kind = static_cast<std::int32_t>(instr.kind == plan::InstrKind::receive ? plan::InstrKind::send : instr.kind);
  key.body = instr.body;
  const ir::MeshAxes pipeline =
      program_.pipeline_axis < 0 ? ir::MeshAxes{} : ir::MeshAxes{static_cast<std::uint8_t>(program_.pipeline_axis)};
  if (instr.kind == plan::InstrKind::collective) {
    key.group = folding_ == Folding::per_stage ? c : group_base(device, program_.collectives[body].mesh_axes);
    key.a = owner(s, instr.owner).number;
    key.b = instr.owner;
  } else if (instr.kind == plan::InstrKind::stage_reduce) {
    key.group = group_base(device, pipeline);
    key.a = s.cursor.step();
    key.b = s.stage_reduce_count[body];
  } else {
    key.group = group_base(device, pipeline);
    key.stage =
        program_.permutes[body].from(classes_[static_cast<std::size_t>(c)].stage, instr.kind == plan::InstrKind::send);
    key.a = s.cursor.step();
    key.b = owner(s, instr.owner).microbatch;
  }
  return key;
}

template <Backend B>
void Interpreter<B>::meeting_classes(std::int32_t c, const CompiledInstr& instr, std::vector<std::int32_t>& out) const {
  const std::int64_t device = classes_[static_cast<std::size_t>(c)].device;
  const auto body = static_cast<std::size_t>(instr.body);
  if (instr.kind == plan::InstrKind::collective) {
    for (std::int64_t d : program_.mesh.group_of(device, program_.collectives[body].mesh_axes))
      out.push_back(static_cast<std::int32_t>(d));
    return;
  }
  TPUSIM_CHECK(program_.pipeline_axis >= 0, "a transfer between stages without a pipeline axis");
  const ir::MeshAxes pipeline = {static_cast<std::uint8_t>(program_.pipeline_axis)};
  const std::int64_t first = group_base(device, pipeline),
                     stride = stride_[static_cast<std::size_t>(program_.pipeline_axis)];
  const auto add = [&](std::int32_t stage) {
    out.push_back(folding_ == Folding::per_stage ? stage : static_cast<std::int32_t>(first + stage * stride));
  };
  if (instr.kind == plan::InstrKind::stage_reduce) {
    for (std::int32_t stage : program_.stage_reduces[body].stages) add(stage);
  } else {
    const bool sends = instr.kind == plan::InstrKind::send;
    const std::int32_t stage = classes_[static_cast<std::size_t>(c)].stage;
    for (std::int32_t end : {program_.permutes[body].from(stage, sends), program_.permutes[body].to(stage, sends)}) {
      TPUSIM_CHECK(end >= 0 && end < program_.stages, "a transfer with a stage that does not exist");
      add(end);
    }
  }
}

template <Backend B>
void Interpreter<B>::complete(std::size_t instruction, std::int32_t id) {
  const Meeting<Token>& m = meetings_.at(id);
  Token ready = m.ready[0], stream = m.stream[0], done{};
  for (std::size_t i = 1; i < m.ready.size(); ++i) {
    ready = backend_.join(ready, m.ready[i]);
    stream = backend_.join(stream, m.stream[i]);
  }
  const auto kind = static_cast<plan::InstrKind>(m.key.kind);
  if (kind == plan::InstrKind::collective) {
    done = backend_.collective(CollectiveCall{m.key.body, m.site, m.microbatch, m.step, &m.members}, stream, ready);
  } else if (kind == plan::InstrKind::stage_reduce) {
    StageReduceCall call;
    call.stage_reduce = m.key.body;
    call.classes = m.classes;
    if constexpr (!B::kOrdered)
      for (const CollectiveMember& member : m.members) call.instances.push_back(member.writes[0]);
    done = backend_.stage_reduce(call, stream, ready);
  } else {
    PermuteCall call{m.key.body, m.classes[0], m.classes[1], {}, {}, m.microbatch};
    if constexpr (!B::kOrdered) {
      call.source = m.members[0].reads[0];
      call.target = m.members[1].writes[0];
    }
    done = backend_.permute(call, stream, m.ready[0], m.ready[1]);
  }
  meetings_.complete(instruction, id, done);
}

template <Backend B>
std::string Interpreter<B>::awaited(const Meeting<Token>& m) const {
  const auto body = static_cast<std::size_t>(m.key.body);
  const auto kind = static_cast<plan::InstrKind>(m.key.kind);
  if (kind == plan::InstrKind::collective)
    return fmt::format("the {} of {} at site {}, microbatch {}",
                       plan::name_of(program_.plans[static_cast<std::size_t>(program_.collectives[body].plan)].kind),
                       program_.collectives[body].label, m.site, m.microbatch);
  if (kind == plan::InstrKind::stage_reduce)
    return fmt::format(
        "the sum of {} over stages",
        program_.buffers[static_cast<std::size_t>(program_.stage_reduces[body].buffer.buffer.index)].label);
  const plan::Permute& permute = program_.permutes[body];
  return fmt::format("{} from stage {} to stage {}, microbatch {}",
                     program_.buffers[static_cast<std::size_t>(permute.buffer.buffer.index)].label, m.key.stage,
                     permute.to(m.key.stage, true), m.microbatch);
}

template <Backend B>
StallReport Interpreter<B>::stall() const {
  StallReport report;
  for (std::size_t c = 0; c < state_.size(); ++c) {
    const State& s = state_[c];
    if (s.blocked < 0 || meetings_.done(s.blocked)) continue;
    const Meeting<Token>& m = meetings_.at(s.blocked);
    Wait wait{static_cast<std::int32_t>(c), classes_[c].device, classes_[c].stage, awaited(m), {}};
    for (std::size_t i = 0; i < m.classes.size(); ++i)
      if (m.present[i] == 0) wait.missing.push_back(m.classes[i]);
    report.waits.push_back(std::move(wait));
  }
  report.cycle = shortest_cycle(report.waits);
  return report;
}

}  // namespace tpusim::run
