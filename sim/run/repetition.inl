// Implementation of repetition.hpp: calls and runs of calls. Whole repeats are in repeats.inl.
#pragma once

namespace tpusim::run {

template <Backend B>
void Repetition<B>::push(Numbers& out, const TimeToken& t, std::int64_t base, bool clamped) {
  if (t.ps <= base) {
    const std::int64_t ps = clamped ? 0 : t.ps - base;
    out.insert(out.end(), {ps, ps, 0});
    return;
  }
  const std::int64_t busy = std::max<std::int64_t>(t.busy_since - base, 0);
  // What was waited for before `busy_since` matters only if that is later than base.
  const std::int64_t before = busy > 0 ? static_cast<std::int64_t>(t.before) : 0;
  out.insert(out.end(), {t.ps - base, busy, before + 4 * (static_cast<std::int64_t>(t.transfer) + 1)});
}

// Readers come after the writer: without one since, their token is an old one that the writer's hides.
template <Backend B>
void Repetition<B>::push(Numbers& out, const Entry<TimeToken>& entry, std::int64_t base, bool clamped) {
  push(out, entry.write.token, base, clamped);
  push(out, entry.readers.ps > entry.write.token.ps ? entry.readers : entry.write.token, base, clamped);
}

// Written in place: a copy made right after its parts would wait for them.
template <Backend B>
void Repetition<B>::pull(const Numbers& in, std::size_t& at, std::int64_t base, TimeToken& out) {
  const std::int64_t* n = in.data() + at;
  out.ps = n[0] + base;
  out.busy_since = n[1] + base;
  out.before = static_cast<Cause>(n[2] & 3);
  out.transfer = static_cast<std::int32_t>(n[2] >> 2) - 1;
  at += 3;
}

// All that the outcome of a call can depend on. False while some of it is only promised.
template <Backend B>
bool Repetition<B>::call_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  matched_.clear();
  std::int64_t floor = base;
  std::size_t bare = 0;
  for (std::size_t k = 0; k < s.few.size(); ++k) {
    const std::int16_t i = in.slot_of(s, s.few[k].key);
    if (i < 0) continue;
    if (!in.settle(s, s.few[k].entry)) return false;
    if (tmpl.slots[static_cast<std::size_t>(i)].bare) {
      floor = std::min(floor, s.few[k].entry.write.token.ps);
      ++bare;
    }
    matched_.emplace_back(i, k);
  }
  if (bare < tmpl.bare_incoming) floor = INT64_MIN;
  for (std::size_t a = 1; a < matched_.size(); ++a)  // few: insertion sort
    for (std::size_t b = a; b > 0 && matched_[b].first < matched_[b - 1].first; --b)
      std::swap(matched_[b], matched_[b - 1]);
  key.clear();
  key.push_back(s.tmpl);
  push(key, s.memory, base, true);
  push(key, s.compute.token, base, true);
  push(key, s.barrier, base, true);
  for (std::int32_t r : tmpl.resources) {
    Ref<TimeToken>& resource = s.resources[static_cast<std::size_t>(r)];
    if (!in.settle(s, resource)) return false;
    if (resource.token.ps <= floor)
      key.push_back(INT64_MIN);
    else
      push(key, resource.token, base, false);
  }
  if (tmpl.reads_data) push(key, in.backend_.batch(c, s.cursor.step()), base, true);
  for (const auto& [i, k] : matched_) {
    const Entry<TimeToken>& entry = s.few[k].entry;
    const bool exact = tmpl.slots[static_cast<std::size_t>(i)].bare;
    if (!exact && entry.write.token.ps <= base && entry.readers.ps <= base) continue;
    key.push_back(i);
    push(key, entry, base, !exact);
  }
  return true;
}

template <Backend B>
bool Repetition<B>::replay(Interpreter<B>& in, std::int32_t c) {
  if (recordings_.empty()) recordings_.resize(in.state_.size());
  State& s = in.state_[static_cast<std::size_t>(c)];
  Recording& rec = recordings_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  rec.active = false;
  rec.replayed = nullptr;
  if (tmpl.crosses || tmpl.always_exact || (tmpl.collectives && in.folding_ == Folding::per_device)) return false;
  const std::int64_t base = in.base(s);
  const bool known_state = call_key(in, c, base, rec.key);
  s.blocked = -1;
  if (!known_state) return false;
  rec.base = base;
  const auto found = outcomes_.find(rec.key);
  if (found == outcomes_.end()) {
    rec.active = true;
    rec.spent = in.backend_.spent(c);
    return false;
  }
  const Outcome& outcome = found->second;
  for (const auto& match : matched_) s.few[match.second].taken = true;
  apply(in, c, outcome, base);
  rec.replayed = &outcome;
  ++in.counts_.replayed;
  --in.counts_.played;  // end_call counts it
  return true;
}

// What an outcome says of the class: its clocks and what its time went on.
template <Backend B>
void Repetition<B>::apply(Interpreter<B>& in, std::int32_t c, const Outcome& outcome, std::int64_t base) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  std::size_t at = 0;
  pull(outcome.tokens, at, base, s.memory);
  pull(outcome.tokens, at, base, s.compute.token);
  pull(outcome.tokens, at, base, s.barrier);
  for (std::int32_t r : in.compiled(s.tmpl).resources) {
    Ref<TimeToken>& resource = s.resources[static_cast<std::size_t>(r)];
    pull(outcome.tokens, at, base, resource.token);
    resource.meeting = -1;
  }
  Spent& spent = in.backend_.spent(c);
  spent += outcome.spent;
  for (const auto& [transfer, amount] : outcome.exposed) spent.exposed[static_cast<std::size_t>(transfer)] += amount;
}

// As call_key, of slots that are loaded.
template <Backend B>
bool Repetition<B>::inner_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  std::int64_t floor = base;
  key.clear();
  key.push_back(-1 - s.tmpl);
  for (const auto* slots : {&tmpl.inner_written, &tmpl.inner_read, &tmpl.inner_released})
    for (std::int16_t i : *slots) {
      Entry<TimeToken>& entry = s.slots[static_cast<std::size_t>(i)];
      if (!in.settle(s, entry)) return false;
      const bool exact = tmpl.slots[static_cast<std::size_t>(i)].bare;
      if (exact) floor = std::min(floor, entry.write.token.ps);
      if (!exact && entry.write.token.ps <= base && entry.readers.ps <= base) continue;
      key.push_back(i);
      push(key, entry, base, !exact);
    }
  key.push_back(-1);
  push(key, s.memory, base, true);
  push(key, s.compute.token, base, true);
  push(key, s.barrier, base, true);
  for (std::int32_t r : tmpl.resources) {
    Ref<TimeToken>& resource = s.resources[static_cast<std::size_t>(r)];
    if (!in.settle(s, resource)) return false;
    if (resource.token.ps <= floor)
      key.push_back(INT64_MIN);
    else
      push(key, resource.token, base, false);
  }
  if (tmpl.reads_data) push(key, in.backend_.batch(c, s.cursor.step()), base, true);
  return true;
}

template <Backend B>
bool Repetition<B>::replay_inner(Interpreter<B>& in, std::int32_t c) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  Recording& rec = recordings_[static_cast<std::size_t>(c)];
  const auto each = [&](auto use) {
    for (std::int16_t i : tmpl.inner_written) {
      use(s.slots[static_cast<std::size_t>(i)].write.token);
      use(s.slots[static_cast<std::size_t>(i)].readers);
    }
    for (std::int16_t i : tmpl.inner_read) use(s.slots[static_cast<std::size_t>(i)].readers);
  };
  if (s.instr == tmpl.inner_end && rec.inner) {
    rec.inner = false;
    if (outcomes_.size() >= kMostOutcomes) return false;
    Outcome outcome;
    push_clocks(in, s, outcome.tokens, rec.base);
    each([&](const TimeToken& t) { push(outcome.tokens, t, rec.base, false); });
    note_spent(in, c, rec, outcome);
    outcomes_.emplace(rec.key, std::move(outcome));
    return false;
  }
  constexpr std::size_t kShort = 4;  // then playing is as fast
  if (s.instr != tmpl.inner_begin || tmpl.inner_end - tmpl.inner_begin < kShort || rec.inner || tmpl.always_exact ||
      (tmpl.collectives && in.folding_ == Folding::per_device))
    return false;
  const std::int64_t base = in.base(s);
  const bool known_state = inner_key(in, c, base, rec.key);
  s.blocked = -1;
  if (!known_state) return false;
  rec.base = base;
  const auto found = outcomes_.find(rec.key);
  if (found == outcomes_.end()) {
    rec.inner = true;
    rec.spent = in.backend_.spent(c);
    return false;
  }
  apply(in, c, found->second, base);
  std::size_t at = 3 * (3 + tmpl.resources.size());
  each([&](TimeToken& t) { pull(found->second.tokens, at, base, t); });
  s.instr = tmpl.inner_end;
  return true;
}

// Whether nothing about the entry can matter to a kernel or to a transfer that allocates.
template <Backend B>
bool Repetition<B>::settled(Interpreter<B>& in, State& s, Entry<TimeToken>& entry, std::int64_t base) {
  const std::int32_t blocked = s.blocked;
  const bool known = in.settle(s, entry);
  s.blocked = blocked;
  return known && entry.write.token.ps <= base && entry.readers.ps <= base;
}

template <Backend B>
bool Repetition<B>::kept_after(Interpreter<B>& in, State& s, const Slot& slot, Entry<TimeToken>& entry,
                               std::int64_t base) {
  if (slot.exactness == Exactness::always &&
      (entry.write.meeting >= 0 || entry.promised_readers >= 0 || entry.write.token.ps > 0 || entry.readers.ps > 0))
    return true;
  if (slot.exactness == Exactness::recent && slot.written) return true;
  return !settled(in, s, entry, base);
}

// A call of outcome `outcome` was played from `base`, and so was the one before it; neither left anything else behind.
// So the next call of their like begins in the same state relative to its own base. Adds them all; returns the base of
// the last.
template <Backend B>
std::int64_t Repetition<B>::run_on(Interpreter<B>& in, std::int32_t c, const Outcome& outcome, std::int64_t base) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  const std::int64_t more = s.cursor.alike();
  if (more == 0) return base;
  const std::int64_t shift = ((SimTime::from_ps(in.base(s)) - SimTime::from_ps(base)) * more).ps();
  const auto moved = [shift](TimeToken& t) {
    t.ps = (SimTime::from_ps(t.ps) + SimTime::from_ps(shift)).ps();
    t.busy_since += shift;
  };
  moved(s.memory);
  moved(s.compute.token);
  moved(s.barrier);
  for (std::int32_t r : tmpl.resources) moved(s.resources[static_cast<std::size_t>(r)].token);
  Spent& spent = in.backend_.spent(c);
  spent += outcome.spent * more;
  for (const auto& [transfer, amount] : outcome.exposed)
    spent.exposed[static_cast<std::size_t>(transfer)] += amount * more;
  s.cursor.pass(more);
  in.counts_.replayed += more;
  in.calls_[static_cast<std::size_t>(c)][static_cast<std::size_t>(tmpl.index)] += more;
  return base + shift;
}

template <Backend B>
void Repetition<B>::store(Interpreter<B>& in, std::int32_t c) {
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  Recording* rec = in.repeat_ && !recordings_.empty() ? &recordings_[static_cast<std::size_t>(c)] : nullptr;
  if (rec != nullptr && rec->active) remember(in, c, *rec);
  const std::int64_t base = in.base(s);
  std::erase_if(s.few, [&](Kept<TimeToken>& kept) {
    if (kept.taken) return true;
    if (in.facts_.exactness[static_cast<std::size_t>(kept.key.buffer.index)] == Exactness::always) return false;
    return settled(in, s, kept.entry, base);
  });
  if (rec != nullptr && rec->replayed != nullptr) {
    const Outcome& outcome = *rec->replayed;
    const bool alone = s.few.empty() && !tmpl.reads_data;
    const std::int64_t from = alone && rec->last == &outcome ? run_on(in, c, outcome, rec->base) : rec->base;
    std::size_t at = 3 * (3 + tmpl.resources.size());
    for (std::int16_t i : outcome.kept) {
      Kept<TimeToken>& kept = s.few.emplace_back();
      kept.key = in.instance(s, tmpl.slots[static_cast<std::size_t>(i)]);
      pull(outcome.tokens, at, from, kept.entry.write.token);
      pull(outcome.tokens, at, from, kept.entry.readers);
    }
    rec->last = alone ? &outcome : nullptr;
    rec->replayed = nullptr;
    return;
  }
  if (rec != nullptr) rec->last = nullptr;
  for (std::int16_t i : tmpl.outgoing) {
    const Slot& slot = tmpl.slots[static_cast<std::size_t>(i)];
    Entry<TimeToken>& entry = s.slots[static_cast<std::size_t>(i)];
    if (kept_after(in, s, slot, entry, base)) s.few.push_back({in.instance(s, slot), entry, false});
  }
}

template <Backend B>
void Repetition<B>::push_clocks(Interpreter<B>& in, State& s, Numbers& out, std::int64_t base) {
  push(out, s.memory, base, false);
  push(out, s.compute.token, base, false);
  push(out, s.barrier, base, false);
  for (std::int32_t r : in.compiled(s.tmpl).resources)
    push(out, s.resources[static_cast<std::size_t>(r)].token, base, false);
}

template <Backend B>
void Repetition<B>::note_spent(Interpreter<B>& in, std::int32_t c, const Recording& rec, Outcome& outcome) {
  outcome.spent = in.backend_.spent(c) - rec.spent;
  for (std::size_t t = 0; t < outcome.spent.exposed.size(); ++t)
    if (outcome.spent.exposed[t] != 0)
      outcome.exposed.emplace_back(static_cast<std::int32_t>(t), outcome.spent.exposed[t]);
  outcome.spent.exposed.clear();
}

template <Backend B>
void Repetition<B>::remember(Interpreter<B>& in, std::int32_t c, Recording& rec) {
  rec.active = false;
  if (outcomes_.size() >= kMostOutcomes) return;
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  const std::int64_t base = in.base(s);
  Outcome outcome;
  push_clocks(in, s, outcome.tokens, rec.base);
  for (std::int16_t i : tmpl.outgoing) {
    Entry<TimeToken>& entry = s.slots[static_cast<std::size_t>(i)];
    if (!kept_after(in, s, tmpl.slots[static_cast<std::size_t>(i)], entry, base)) continue;
    outcome.kept.push_back(i);
    push(outcome.tokens, entry, rec.base, false);
  }
  note_spent(in, c, rec, outcome);
  outcomes_.emplace(rec.key, std::move(outcome));
}

}  // namespace tpusim::run
