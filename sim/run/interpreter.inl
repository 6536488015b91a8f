// Implementation of interpreter.hpp.
#pragma once

#include <fmt/format.h>

namespace tpusim::run {

template <Backend B>
Interpreter<B>::Interpreter(const plan::StepProgram& program, Folding folding, B& backend)
    : program_(program), folding_(folding), backend_(backend), templates_(compile(program)) {
  const std::int32_t kinds = static_cast<std::int32_t>(program.call_kinds.size());
  for (std::int32_t k = 0; k < kinds; ++k)
    for (std::int32_t before = -1; before < kinds; ++before)
      for (std::int32_t after = -1; after < kinds; ++after) template_of_.push_back(-1);
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    const plan::Template& tmpl = program.templates[t];
    std::int32_t kind = 0;
    while (kind < kinds && !(program.call_kinds[static_cast<std::size_t>(kind)] == tmpl.kind)) ++kind;
    TPUSIM_CHECK(kind < kinds, "a template of an unknown call kind");
    template_of_[static_cast<std::size_t>((kind * (kinds + 1) + tmpl.previous + 1) * (kinds + 1) + tmpl.next + 1)] = static_cast<std::int32_t>(t);
  }
  const std::int64_t devices = program.mesh.devices();
  std::int64_t stride = devices;
  for (const spmd::MeshAxis& axis : program.mesh.axes) stride_.push_back(stride /= axis.size);
  if (folding == Folding::per_device) {
    for (std::int64_t d = 0; d < devices; ++d)
      classes_.push_back({d, 1, program.pipeline_axis < 0 ? 0 : static_cast<std::int32_t>(program.mesh.coordinate(d, program.pipeline_axis))});
  } else {
    for (std::int32_t s = 0; s < program.stages; ++s)
      classes_.push_back({program.pipeline_axis < 0 ? 0 : s * stride_[static_cast<std::size_t>(program.pipeline_axis)], devices / program.stages, s});
  }
  state_.resize(classes_.size());
  calls_.assign(classes_.size(), std::vector<std::int64_t>(templates_.size(), 0));
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    State& s = state_[c];
    s.cursor = Cursor(program.schedules[static_cast<std::size_t>(classes_[c].stage)]);
    s.compute.token = backend.origin();
    s.memory = backend.origin();
    s.resources.resize(static_cast<std::size_t>(program.resources));
    for (Ref<Token>& r : s.resources) r.token = backend.origin();
    s.stage_reduce_count.assign(program.stage_reduces.size(), 0);
  }
}

template <Backend B>
std::optional<StallReport> Interpreter<B>::run(std::int64_t steps) {
  for (;;) {
    bool finished = true;
    for (const State& s : state_) finished = finished && s.tmpl < 0 && s.cursor.step() >= steps;
    if (finished) return std::nullopt;
    if (!round(steps)) return stall();
    if constexpr (B::kOrdered)
      if (repeat_) repetition_.observe(*this);
  }
}

// Every class plays at most one repeat of its segment; returns whether anybody got on.
template <Backend B>
bool Interpreter<B>::round(std::int64_t steps) {
  for (State& s : state_) s.round_over = false;
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t c = 0; c < state_.size(); ++c) {
      State& s = state_[c];
      if (s.round_over || (s.blocked >= 0 && !meetings_.at(s.blocked).done)) continue;
      if (s.tmpl < 0 && s.cursor.step() >= steps) continue;
      s.blocked = -1;
      advance(static_cast<std::int32_t>(c), steps);
      again = any = true;
    }
  }
  return any;
}

template <Backend B>
void Interpreter<B>::advance(std::int32_t c, std::int64_t steps) {
  State& s = state_[static_cast<std::size_t>(c)];
  while (s.cursor.step() < steps) {
    if (s.tmpl < 0) {
      begin_call(c);
      if constexpr (B::kOrdered)
        if (repeat_ && repetition_.replay(*this, c)) s.instr = templates_[static_cast<std::size_t>(s.tmpl)].instrs.size();
    }
    const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
    for (; s.instr < tmpl.instrs.size(); ++s.instr)
      if (!play(c, tmpl.instrs[s.instr])) return;
    end_call(c);
    if (s.cursor.at_repeat_start()) {
      s.round_over = true;
      return;
    }
  }
}

template <Backend B>
void Interpreter<B>::begin_call(std::int32_t c) {
  State& s = state_[static_cast<std::size_t>(c)];
  const auto kinds = static_cast<std::int32_t>(program_.call_kinds.size());
  s.tmpl = template_of_[static_cast<std::size_t>((s.cursor.current().kind * (kinds + 1) + s.cursor.previous().kind + 1) * (kinds + 1) + s.cursor.next().kind + 1)];
  TPUSIM_CHECK(s.tmpl >= 0, fmt::format("no template for call kind {} between {} and {}", s.cursor.current().kind, s.cursor.previous().kind, s.cursor.next().kind));
  s.instr = 0;
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  Entry<Token> fresh;
  fresh.write.token = backend_.origin();
  fresh.readers = backend_.origin();
  s.slots.assign(tmpl.slots.size(), fresh);
  if (B::kOrdered && s.few.empty()) return;
  for (std::int16_t slot : tmpl.incoming)
    if (const Entry<Token>* entry = s.find(instance(s, tmpl.slots[static_cast<std::size_t>(slot)]), B::kOrdered)) s.slots[static_cast<std::size_t>(slot)] = *entry;
}

template <Backend B>
void Interpreter<B>::end_call(std::int32_t c) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  if constexpr (B::kOrdered) {
    if (repeat_) repetition_.remember(*this, c);
    if (!s.few.empty())
      for (std::int16_t slot : tmpl.incoming) s.forget(instance(s, tmpl.slots[static_cast<std::size_t>(slot)]), true);
    std::erase_if(s.few, [&](auto& item) { return settled(backend_, s, meetings_, item.second); });
  } else {
    for (std::int16_t slot : tmpl.incoming)
      if (!tmpl.slots[static_cast<std::size_t>(slot)].outgoing) s.forget(instance(s, tmpl.slots[static_cast<std::size_t>(slot)]), false);
  }
  for (std::int16_t slot : tmpl.outgoing) {
    Entry<Token>& entry = s.slots[static_cast<std::size_t>(slot)];
    if constexpr (B::kOrdered)
      if (settled(backend_, s, meetings_, entry)) continue;
    s.put(instance(s, tmpl.slots[static_cast<std::size_t>(slot)]), entry, B::kOrdered);
  }
  ++calls_[static_cast<std::size_t>(c)][static_cast<std::size_t>(s.tmpl)];
  s.tmpl = -1;
  s.cursor.advance();
}

template <Backend B>
Instance Interpreter<B>::instance(const State& s, const Slot& slot) const {
  const ResolvedCall& call = owner(s, slot.owner);
  TPUSIM_CHECK(call.kind >= 0, "an instruction of a call that does not exist");
  Instance out;
  out.buffer = slot.ref.buffer;
  switch (program_.buffers[static_cast<std::size_t>(slot.ref.buffer.index)].scope) {
    case plan::Scope::step: break;
    case plan::Scope::site: out.site = call.site + slot.ref.site_delta; break;
    case plan::Scope::microbatch:
      out.site = call.site + slot.ref.site_delta;
      out.index = call.microbatch;
      break;
    case plan::Scope::call: out.index = call.number; break;
  }
  return out;
}

template <Backend B>
bool Interpreter<B>::settle(State& s, Ref<Token>& ref) {
  if (ref.meeting < 0) return true;
  const Meeting<Token>& meeting = meetings_.at(ref.meeting);
  if (!meeting.done) {
    s.blocked = ref.meeting;
    return false;
  }
  ref.token = meeting.completion;
  ref.meeting = -1;
  return true;
}

template <Backend B>
bool Interpreter<B>::settle(State& s, Entry<Token>& entry) {
  if (!settle(s, entry.write)) return false;
  while (!entry.reader_meetings.empty()) {
    const Meeting<Token>& meeting = meetings_.at(entry.reader_meetings.back());
    if (!meeting.done) {
      s.blocked = entry.reader_meetings.back();
      return false;
    }
    entry.readers = backend_.join(entry.readers, meeting.completion);
    entry.reader_meetings.erase_at(entry.reader_meetings.size() - 1);
  }
  return true;
}

// Whether nothing that the instruction needs to know is still a promise. No side effect but the settling.
template <Backend B>
bool Interpreter<B>::settle_operands(State& s, const CompiledInstr& instr) {
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  for (std::int32_t i = instr.reads; i < instr.writes; ++i)
    if (!settle(s, s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])].write)) return false;
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i)
    if (!settle(s, s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])])) return false;
  return true;
}

template <Backend B>
typename B::Token Interpreter<B>::ready_of(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  Token ready = backend_.origin();
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    const auto slot = static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)]);
    ready = backend_.join(ready, s.slots[slot].write.token);
    if (tmpl.slots[slot].data) ready = backend_.join(ready, backend_.batch(c, s.cursor.step()));
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {  // of an instance made just now these are the origin
    const Entry<Token>& entry = s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])];
    ready = backend_.join(backend_.join(ready, entry.write.token), entry.readers);
  }
  return ready;
}

template <Backend B>
typename B::Token Interpreter<B>::allocate(std::int32_t c, const CompiledInstr& instr, Token ready) {
  if (instr.allocates == instr.releases) return ready;
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  for (std::int32_t i = instr.allocates; i < instr.releases; ++i) {
    Instance made;
    if constexpr (!B::kOrdered) made = instance(s, tmpl.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])]);
    s.memory = backend_.allocate(c, made, s.memory);
  }
  return backend_.join(ready, s.memory);
}

template <Backend B>
void Interpreter<B>::release(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  for (std::int32_t i = instr.releases; i < instr.end; ++i) {
    const auto slot = static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)]);
    Instance gone;
    if constexpr (!B::kOrdered) gone = instance(s, tmpl.slots[slot]);
    s.memory = backend_.release(c, gone, s.memory, backend_.join(s.slots[slot].write.token, s.slots[slot].readers));
  }
}

template <Backend B>
bool Interpreter<B>::play(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  switch (instr.kind) {
    case plan::InstrKind::kernel: return play_kernel(c, instr);
    case plan::InstrKind::collective:
    case plan::InstrKind::send:
    case plan::InstrKind::receive:
    case plan::InstrKind::stage_reduce: return play_transfer(c, instr);
    case plan::InstrKind::done:
      for (std::int32_t i = instr.releases; i < instr.end; ++i)
        if (!settle(s, s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])])) return false;
      release(c, instr);
      return true;
  }
  return true;
}

template <Backend B>
bool Interpreter<B>::play_kernel(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  if (!settle_operands(s, instr)) return false;
  for (std::int32_t i = instr.releases; i < instr.end; ++i)
    if (!settle(s, s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])])) return false;
  const Token ready = allocate(c, instr, ready_of(c, instr));
  const ResolvedCall& call = owner(s, instr.owner);
  KernelCall k{instr.body, call.site, call.microbatch, s.cursor.step(), &reads_, &writes_};
  if constexpr (!B::kOrdered) {
    reads_.clear();
    writes_.clear();
    for (std::int32_t i = instr.reads; i < instr.writes; ++i) reads_.push_back(instance(s, tmpl.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])]));
    for (std::int32_t i = instr.writes; i < instr.allocates; ++i) writes_.push_back(instance(s, tmpl.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])]));
  }
  const Token done = backend_.kernel(c, k, s.compute.token, ready);
  s.compute.token = done;
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    Entry<Token>& entry = s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])];
    entry.readers = backend_.join(entry.readers, done);
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {
    Entry<Token>& entry = s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])];
    entry.write.token = done;
    entry.readers = backend_.origin();
  }
  release(c, instr);
  return true;
}

template <Backend B>
const std::vector<std::int32_t>& Interpreter<B>::resources_of(const CompiledInstr& instr) {
  const auto body = static_cast<std::size_t>(instr.body);
  if (instr.kind == plan::InstrKind::collective) return program_.collectives[body].resources;
  one_resource_.assign(1, instr.kind == plan::InstrKind::stage_reduce ? program_.stage_reduces[body].resource : program_.permutes[body].resource);
  return one_resource_;
}

template <Backend B>
bool Interpreter<B>::play_transfer(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
  if (!settle_operands(s, instr)) return false;
  const std::vector<std::int32_t>& resources = resources_of(instr);
  for (std::int32_t r : resources)
    if (!settle(s, s.resources[static_cast<std::size_t>(r)])) return false;
  const Token ready = allocate(c, instr, ready_of(c, instr));
  Token stream = backend_.origin();
  for (std::int32_t r : resources) stream = backend_.join(stream, s.resources[static_cast<std::size_t>(r)].token);

  Ref<Token> promise{backend_.origin(), -1};
  std::int32_t id = -1;
  if (instr.kind == plan::InstrKind::collective && folding_ == Folding::per_stage) {
    lone_member_.assign(1, member_of(c, s, instr));  // the class stands for all members, and they arrive together
    const ResolvedCall& call = owner(s, instr.owner);
    promise.token = backend_.collective(CollectiveCall{instr.body, call.site, call.microbatch, s.cursor.step(), &lone_member_}, stream, ready);
  } else {
    id = meet(c, instr, ready, stream);
    promise.meeting = id;
    settle(s, promise);
    s.blocked = -1;
  }
  for (std::int32_t r : resources) s.resources[static_cast<std::size_t>(r)] = promise;
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    Entry<Token>& entry = s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])];
    if (promise.meeting >= 0)
      entry.reader_meetings.push_back(id);
    else
      entry.readers = backend_.join(entry.readers, promise.token);
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {
    Entry<Token>& entry = s.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])];
    entry = Entry<Token>{};
    entry.write = promise;
    entry.readers = backend_.origin();
  }
  TPUSIM_CHECK(instr.releases == instr.end, "a transfer is asynchronous: its releases belong to a `done`");
  return true;
}

// Leaves a class's arrival at the meeting that the instruction is; the last one completes it.
template <Backend B>
std::int32_t Interpreter<B>::meet(std::int32_t c, const CompiledInstr& instr, const Token& ready, const Token& stream) {
  const State& s = state_[static_cast<std::size_t>(c)];
  const std::int32_t id = meetings_.open(meeting_key(c, instr), [&] { return meeting_classes(c, instr); });
  const std::vector<std::int32_t>& expected = meetings_.at(id).classes;
  const auto position = static_cast<std::int32_t>(std::find(expected.begin(), expected.end(), c) - expected.begin());
  TPUSIM_CHECK(position < static_cast<std::int32_t>(expected.size()), "a class at a meeting that is not its own");
  arrive(c, id, position, ready, stream, member_of(c, s, instr));
  return id;
}

template <Backend B>
CollectiveMember Interpreter<B>::member_of(std::int32_t c, const State& s, const CompiledInstr& instr) const {
  CollectiveMember member;
  member.device_class = c;
  if constexpr (!B::kOrdered) {
    const CompiledTemplate& tmpl = templates_[static_cast<std::size_t>(s.tmpl)];
    for (std::int32_t i = instr.reads; i < instr.writes; ++i) member.reads.push_back(instance(s, tmpl.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])]));
    for (std::int32_t i = instr.writes; i < instr.allocates; ++i) member.writes.push_back(instance(s, tmpl.slots[static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)])]));
  }
  return member;
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
  const ir::MeshAxes pipeline = program_.pipeline_axis < 0 ? ir::MeshAxes{} : ir::MeshAxes{static_cast<std::uint8_t>(program_.pipeline_axis)};
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
    key.a = s.cursor.step();
    key.b = owner(s, instr.owner).microbatch;
  }
  return key;
}

template <Backend B>
std::vector<std::int32_t> Interpreter<B>::meeting_classes(std::int32_t c, const CompiledInstr& instr) const {
  const std::int64_t device = classes_[static_cast<std::size_t>(c)].device;
  const auto body = static_cast<std::size_t>(instr.body);
  std::vector<std::int32_t> out;
  if (instr.kind == plan::InstrKind::collective) {
    if (folding_ == Folding::per_stage) return {c};
    for (std::int64_t d : program_.mesh.group_of(device, program_.collectives[body].mesh_axes)) out.push_back(static_cast<std::int32_t>(d));
    return out;
  }
  std::vector<std::int32_t> stages;
  if (instr.kind == plan::InstrKind::stage_reduce)
    stages = program_.stage_reduces[body].stages;
  else
    stages = {program_.permutes[body].from_stage, program_.permutes[body].to_stage};
  const ir::MeshAxes pipeline = {static_cast<std::uint8_t>(program_.pipeline_axis)};
  for (std::int32_t stage : stages)
    out.push_back(folding_ == Folding::per_stage
                      ? stage
                      : static_cast<std::int32_t>(group_base(device, pipeline) + stage * stride_[static_cast<std::size_t>(program_.pipeline_axis)]));
  return out;
}

template <Backend B>
void Interpreter<B>::arrive(std::int32_t c, std::int32_t id, std::int32_t position, const Token& ready, const Token& stream, CollectiveMember member) {
  Meeting<Token>& meeting = meetings_.at(id);
  const auto p = static_cast<std::size_t>(position);
  TPUSIM_CHECK(!meeting.present[p], "a class arrives twice at one meeting");
  meeting.present[p] = true;
  meeting.ready[p] = ready;
  meeting.stream[p] = stream;
  meeting.members[p] = std::move(member);
  State& s = state_[static_cast<std::size_t>(c)];
  if (meeting.key.kind == static_cast<std::int32_t>(plan::InstrKind::stage_reduce)) ++s.stage_reduce_count[static_cast<std::size_t>(meeting.key.body)];
  if (++meeting.arrived == meeting.expected) complete(id);
}

template <Backend B>
void Interpreter<B>::complete(std::int32_t id) {
  const Meeting<Token>& m = meetings_.at(id);
  Token ready = m.ready[0], stream = m.stream[0], done{};
  for (std::size_t i = 1; i < m.ready.size(); ++i) {
    ready = backend_.join(ready, m.ready[i]);
    stream = backend_.join(stream, m.stream[i]);
  }
  const State& s = state_[static_cast<std::size_t>(m.classes[0])];
  const auto kind = static_cast<plan::InstrKind>(m.key.kind);
  if (kind == plan::InstrKind::collective) {
    const ResolvedCall& call = owner(s, static_cast<std::int8_t>(m.key.b));
    done = backend_.collective(CollectiveCall{m.key.body, call.site, call.microbatch, s.cursor.step(), &m.members}, stream, ready);
  } else if (kind == plan::InstrKind::stage_reduce) {
    StageReduceCall call;
    call.stage_reduce = m.key.body;
    call.classes = m.classes;
    if constexpr (!B::kOrdered)
      for (const CollectiveMember& member : m.members) call.instances.push_back(member.writes[0]);
    done = backend_.stage_reduce(call, stream, ready);
  } else {
    PermuteCall call{m.key.body, m.classes[0], m.classes[1], {}, {}, m.key.b};
    if constexpr (!B::kOrdered) {
      call.source = m.members[0].reads[0];
      call.target = m.members[1].writes[0];
    }
    done = backend_.permute(call, stream, m.ready[0], m.ready[1]);
  }
  meetings_.complete(id, done);
}

template <Backend B>
StallReport Interpreter<B>::stall() const {
  StallReport report;
  Meetings<Token>& meetings = const_cast<Meetings<Token>&>(meetings_);
  for (std::size_t c = 0; c < state_.size(); ++c) {
    const State& s = state_[c];
    if (s.blocked < 0) continue;
    const Meeting<Token>& m = meetings.at(s.blocked);
    Wait wait{static_cast<std::int32_t>(c), classes_[c].device, classes_[c].stage, {}, {}};
    const auto kind = static_cast<plan::InstrKind>(m.key.kind);
    wait.what = kind == plan::InstrKind::collective     ? fmt::format("collective {} ({})", m.key.body, program_.collectives[static_cast<std::size_t>(m.key.body)].label)
                : kind == plan::InstrKind::stage_reduce ? fmt::format("sum {} over stages", m.key.body)
                                                        : fmt::format("transfer {} of microbatch {}", m.key.body, m.key.b);
    for (std::size_t i = 0; i < m.classes.size(); ++i)
      if (!m.present[i]) wait.missing.push_back(m.classes[i]);
    report.waits.push_back(std::move(wait));
  }
  report.cycle = shortest_cycle(report.waits);
  return report;
}

}  // namespace tpusim::run
