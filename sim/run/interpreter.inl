// Implementation of interpreter.hpp: the walk over calls and instructions. Meetings are in meet.inl.
#pragma once

#include <fmt/format.h>

namespace tpusim::run {

template <Backend B>
Interpreter<B>::Interpreter(const plan::StepProgram& program, Folding folding, B& backend)
    : program_(program),
      folding_(folding),
      backend_(backend),
      facts_(facts_of(program)),
      variants_(program.call_kinds.size()),
      meetings_(program.collectives.size() + program.permutes.size() + program.stage_reduces.size()) {
  const std::int64_t devices = program.mesh.devices();
  std::int64_t stride = devices;
  for (const spmd::MeshAxis& axis : program.mesh.axes) stride_.push_back(stride /= axis.size);
  if (folding == Folding::per_device) {
    for (std::int64_t d = 0; d < devices; ++d)
      classes_.push_back({d, 1,
                          program.pipeline_axis < 0
                              ? 0
                              : static_cast<std::int32_t>(program.mesh.coordinate(d, program.pipeline_axis))});
  } else {
    for (std::int32_t s = 0; s < program.stages; ++s)
      classes_.push_back({program.pipeline_axis < 0 ? 0 : s * stride_[static_cast<std::size_t>(program.pipeline_axis)],
                          devices / program.stages, s});
  }
  state_.resize(classes_.size());
  calls_.assign(classes_.size(), std::vector<std::int64_t>(program.templates.size(), 0));
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    State& s = state_[c];
    s.cursor = Cursor(program.schedules[static_cast<std::size_t>(classes_[c].stage)]);
    s.compute.token = s.barrier = s.memory = backend.origin();
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
      if (s.round_over || (s.blocked >= 0 && !meetings_.done(s.blocked))) continue;
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
    if (s.tmpl < 0) begin_call(c);
    const CompiledTemplate& tmpl = compiled(s.tmpl);
    for (;;) {
      if constexpr (B::kOrdered)
        if (repeat_ && tmpl.crosses && repetition_.replay_inner(*this, c)) continue;
      if (s.instr == tmpl.instrs.size()) break;
      if (!play(c, tmpl.instrs[s.instr])) return;
      ++s.instr;
    }
    end_call(c);
    if (counts_.played + counts_.replayed > call_limit_)
      throw CapacityError(fmt::format(
          "the step does not repeat and needs more than {} calls to be played; fewer microbatches, layers or stages",
          call_limit_));
    if (s.cursor.at_repeat_start()) {
      s.round_over = true;
      return;
    }
  }
}

// The compiled template of the current call between its neighbours.
template <Backend B>
std::int32_t Interpreter<B>::select_template(State& s) {
  const std::int32_t kind = s.cursor.current().kind, previous = s.cursor.previous().kind, next = s.cursor.next().kind;
  const Relation relation = relation_of(s.cursor);
  std::vector<Variant>& known = variants_[static_cast<std::size_t>(kind)];
  for (const Variant& v : known)
    if (v.previous == previous && v.next == next && v.relation == relation) return v.compiled;
  std::int32_t index = program_.find_template(kind, previous, next);
  const plan::CallKind& wanted = program_.call_kinds[static_cast<std::size_t>(kind)];
  for (std::size_t t = 0; index < 0 && t < program_.templates.size(); ++t) {  // one written by hand need not be sorted
    const plan::Template& tmpl = program_.templates[t];
    if (tmpl.kind == wanted && tmpl.previous == previous && tmpl.next == next) index = static_cast<std::int32_t>(t);
  }
  TPUSIM_CHECK(index >= 0, fmt::format("no template for call kind {} between {} and {}", kind, previous, next));
  templates_.push_back(compile(program_, facts_, index, relation));
  known.push_back({previous, next, relation, static_cast<std::int32_t>(templates_.size()) - 1});
  return known.back().compiled;
}

template <Backend B>
void Interpreter<B>::begin_call(std::int32_t c) {
  State& s = state_[static_cast<std::size_t>(c)];
  s.tmpl = select_template(s);
  s.instr = 0;
  if constexpr (B::kOrdered)
    if (repeat_ && repetition_.replay(*this, c)) {
      s.instr = compiled(s.tmpl).instrs.size();
      return;
    }
  load_slots(s);
}

template <Backend B>
void Interpreter<B>::load_slots(State& s) {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  Entry<Token> fresh;
  fresh.write.token = fresh.readers = backend_.origin();
  s.slots.assign(tmpl.slots.size(), fresh);
  if constexpr (B::kOrdered) {
    for (Kept<Token>& kept : s.few) {
      const std::int16_t i = slot_of(s, kept.key);
      if (i < 0) continue;
      s.slots[static_cast<std::size_t>(i)] = kept.entry;
      kept.taken = true;
    }
  } else {
    for (std::int16_t i : tmpl.incoming) {
      const auto found = s.many.find(instance(s, tmpl.slots[static_cast<std::size_t>(i)]));
      if (found != s.many.end()) s.slots[static_cast<std::size_t>(i)] = found->second;
    }
  }
}

template <Backend B>
void Interpreter<B>::store_slots(State& s) {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int16_t i : tmpl.incoming)
    if (!tmpl.slots[static_cast<std::size_t>(i)].outgoing)
      s.many.erase(instance(s, tmpl.slots[static_cast<std::size_t>(i)]));
  for (std::int16_t i : tmpl.outgoing)
    s.many[instance(s, tmpl.slots[static_cast<std::size_t>(i)])] = s.slots[static_cast<std::size_t>(i)];
}

template <Backend B>
void Interpreter<B>::end_call(std::int32_t c) {
  State& s = state_[static_cast<std::size_t>(c)];
  if constexpr (B::kOrdered)
    repetition_.store(*this, c);
  else
    store_slots(s);
  ++counts_.played;
  ++calls_[static_cast<std::size_t>(c)][static_cast<std::size_t>(compiled(s.tmpl).index)];
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
    case plan::Scope::step:
      break;
    case plan::Scope::site:
      out.site = call.site + slot.ref.site_delta;
      break;
    case plan::Scope::microbatch:
      out.site = call.site + slot.ref.site_delta;
      out.index = call.microbatch;
      break;
    case plan::Scope::call:
      out.index = call.number;
      break;
  }
  return out;
}

// The slot of an instance in the call being played, -1 if it does not name it.
template <Backend B>
std::int16_t Interpreter<B>::slot_of(const State& s, const Instance& key) const {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  std::int16_t i = tmpl.first_of_buffer[static_cast<std::size_t>(key.buffer.index)];
  while (i >= 0 && !(instance(s, tmpl.slots[static_cast<std::size_t>(i)]) == key))
    i = tmpl.slots[static_cast<std::size_t>(i)].same_buffer;
  return i;
}

template <Backend B>
void Interpreter<B>::instances(const State& s, std::int32_t from, std::int32_t to, std::vector<Instance>& out) const {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  out.clear();
  for (std::int32_t i = from; i < to; ++i) out.push_back(instance(s, tmpl.slots[slot_at(tmpl, i)]));
}

template <Backend B>
bool Interpreter<B>::settle(State& s, Ref<Token>& ref) {
  if (ref.meeting < 0) return true;
  if (!meetings_.done(ref.meeting)) {
    s.blocked = ref.meeting;
    return false;
  }
  ref = {meetings_.completion(ref.meeting), -1};
  return true;
}

template <Backend B>
bool Interpreter<B>::settle(State& s, Entry<Token>& entry) {
  if (!settle(s, entry.write)) return false;
  while (entry.promised_readers >= 0) {
    const std::int32_t meeting = s.promises[static_cast<std::size_t>(entry.promised_readers)].meeting;
    if (!meetings_.done(meeting)) {
      s.blocked = meeting;
      return false;
    }
    entry.readers = backend_.join(entry.readers, meetings_.completion(meeting));
    s.drop_promise(entry.promised_readers);
  }
  return true;
}

// Whether nothing that the instruction needs to know is still a promise. No side effect but the settling.
template <Backend B>
bool Interpreter<B>::settle_operands(State& s, const CompiledInstr& instr) {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int32_t i = instr.reads; i < instr.writes; ++i)
    if (!settle(s, s.slots[slot_at(tmpl, i)].write)) return false;
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i)
    if (!settle(s, s.slots[slot_at(tmpl, i)])) return false;
  return true;
}

template <Backend B>
bool Interpreter<B>::settle_releases(State& s, const CompiledInstr& instr) {
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int32_t i = instr.releases; i < instr.end; ++i)
    if (!settle(s, s.slots[slot_at(tmpl, i)])) return false;
  return true;
}

template <Backend B>
typename B::Token Interpreter<B>::ready_of(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  Token ready = backend_.origin();
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    const std::size_t slot = slot_at(tmpl, i);
    ready = backend_.join(ready, s.slots[slot].write.token);
    if (tmpl.slots[slot].data) ready = backend_.join(ready, backend_.batch(c, s.cursor.step()));
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {  // of an instance made just now these are the origin
    const Entry<Token>& entry = s.slots[slot_at(tmpl, i)];
    ready = backend_.join(backend_.join(ready, entry.write.token), entry.readers);
  }
  return ready;
}

template <Backend B>
typename B::Token Interpreter<B>::allocate(std::int32_t c, const CompiledInstr& instr, Token ready) {
  if (instr.allocates == instr.releases) return ready;
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int32_t i = instr.allocates; i < instr.releases; ++i) {
    Instance made;
    if constexpr (B::kOrdered)
      made.buffer = tmpl.slots[slot_at(tmpl, i)].ref.buffer;
    else
      made = instance(s, tmpl.slots[slot_at(tmpl, i)]);
    s.memory = backend_.allocate(c, made, s.memory);
  }
  return backend_.join(ready, s.memory);
}

template <Backend B>
void Interpreter<B>::release(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int32_t i = instr.releases; i < instr.end; ++i) {
    const std::size_t slot = slot_at(tmpl, i);
    Instance gone;
    if constexpr (B::kOrdered)
      gone.buffer = tmpl.slots[slot].ref.buffer;
    else
      gone = instance(s, tmpl.slots[slot]);
    s.memory = backend_.release(c, gone, s.memory, backend_.join(s.slots[slot].write.token, s.slots[slot].readers));
  }
}

template <Backend B>
bool Interpreter<B>::play(std::int32_t c, const CompiledInstr& instr) {
  switch (instr.kind) {
    case plan::InstrKind::kernel:
      return play_kernel(c, instr);
    case plan::InstrKind::collective:
    case plan::InstrKind::send:
    case plan::InstrKind::receive:
    case plan::InstrKind::stage_reduce:
      return play_transfer(c, instr);
    case plan::InstrKind::done:
      return play_done(c, instr);
  }
  return true;
}

// Without work of its own: what it waits for holds back the next kernel.
template <Backend B>
bool Interpreter<B>::play_done(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  if (!settle_operands(s, instr) || !settle_releases(s, instr)) return false;
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  for (std::int32_t i = instr.reads; i < instr.writes; ++i)
    s.barrier = backend_.join(s.barrier, s.slots[slot_at(tmpl, i)].write.token);
  release(c, instr);
  return true;
}

template <Backend B>
bool Interpreter<B>::play_kernel(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  if (!settle_operands(s, instr) || !settle_releases(s, instr)) return false;
  const Token ready = allocate(c, instr, backend_.join(ready_of(c, instr), s.barrier));
  const ResolvedCall& call = owner(s, instr.owner);
  if constexpr (!B::kOrdered) {
    instances(s, instr.reads, instr.writes, reads_);
    instances(s, instr.writes, instr.allocates, writes_);
  }
  const KernelCall k{instr.body, call.site, call.microbatch, s.cursor.step(), &reads_, &writes_};
  const Token done = backend_.kernel(c, k, s.compute.token, ready);
  s.compute.token = done;
  s.barrier = backend_.origin();
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    Entry<Token>& entry = s.slots[slot_at(tmpl, i)];
    entry.readers = backend_.join(entry.readers, done);
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {
    Entry<Token>& entry = s.slots[slot_at(tmpl, i)];
    entry.write.token = done;
    entry.readers = backend_.origin();
  }
  release(c, instr);
  return true;
}

template <Backend B>
const std::vector<std::int32_t>& Interpreter<B>::resources_of(std::int32_t c, const CompiledInstr& instr) {
  const auto body = static_cast<std::size_t>(instr.body);
  if (instr.kind == plan::InstrKind::collective) return program_.collectives[body].resources;
  if (instr.kind == plan::InstrKind::stage_reduce)
    one_resource_.assign(1, program_.stage_reduces[body].resource);
  else
    one_resource_.assign(1, program_.permutes[body].resource_at(classes_[static_cast<std::size_t>(c)].stage,
                                                                instr.kind == plan::InstrKind::send));
  return one_resource_;
}

template <Backend B>
bool Interpreter<B>::play_transfer(std::int32_t c, const CompiledInstr& instr) {
  State& s = state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = compiled(s.tmpl);
  if (!settle_operands(s, instr)) return false;
  const std::vector<std::int32_t>& resources = resources_of(c, instr);
  for (std::int32_t r : resources)
    if (!settle(s, s.resources[static_cast<std::size_t>(r)])) return false;
  const Token ready = allocate(c, instr, ready_of(c, instr));
  Token stream = backend_.origin();
  for (std::int32_t r : resources) stream = backend_.join(stream, s.resources[static_cast<std::size_t>(r)].token);

  Ref<Token> promise{backend_.origin(), -1};
  if (instr.kind == plan::InstrKind::collective && folding_ == Folding::per_stage) {
    fill_member(c, s, instr, lone_member_[0]);  // the class stands for all members, and they arrive together
    const ResolvedCall& call = owner(s, instr.owner);
    promise.token = backend_.collective(
        CollectiveCall{instr.body, call.site, call.microbatch, s.cursor.step(), &lone_member_}, stream, ready);
  } else {
    promise.meeting = meet(c, instr, ready, stream);
    settle(s, promise);
    s.blocked = -1;
  }
  for (std::int32_t r : resources) s.resources[static_cast<std::size_t>(r)] = promise;
  for (std::int32_t i = instr.reads; i < instr.writes; ++i) {
    Entry<Token>& entry = s.slots[slot_at(tmpl, i)];
    if (promise.meeting >= 0)
      s.add_promise(entry.promised_readers, promise.meeting);
    else
      entry.readers = backend_.join(entry.readers, promise.token);
  }
  for (std::int32_t i = instr.writes; i < instr.allocates; ++i) {
    Entry<Token>& entry = s.slots[slot_at(tmpl, i)];
    while (entry.promised_readers >= 0) s.drop_promise(entry.promised_readers);  // in place: its own reading
    entry.write = promise;
    entry.readers = backend_.origin();
  }
  return true;
}

}  // namespace tpusim::run
