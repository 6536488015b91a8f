// Implementation of repetition.hpp.
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
  std::size_t at = 0;
  pull(outcome.tokens, at, base, s.memory);
  pull(outcome.tokens, at, base, s.compute.token);
  pull(outcome.tokens, at, base, s.barrier);
  for (std::int32_t r : tmpl.resources) {
    Ref<TimeToken>& resource = s.resources[static_cast<std::size_t>(r)];
    pull(outcome.tokens, at, base, resource.token);
    resource.meeting = -1;
  }
  Spent& spent = in.backend_.spent(c);
  spent += outcome.spent;
  for (const auto& [transfer, amount] : outcome.exposed) spent.exposed[static_cast<std::size_t>(transfer)] += amount;
  rec.replayed = &outcome;
  ++in.counts_.replayed;
  --in.counts_.played;  // end_call counts it
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
void Repetition<B>::remember(Interpreter<B>& in, std::int32_t c, Recording& rec) {
  constexpr std::size_t kMostOutcomes = 16384;  // a bound on memory; the rest is played
  rec.active = false;
  if (outcomes_.size() >= kMostOutcomes) return;
  State& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.compiled(s.tmpl);
  const std::int64_t base = in.base(s);
  Outcome outcome;
  push(outcome.tokens, s.memory, rec.base, false);
  push(outcome.tokens, s.compute.token, rec.base, false);
  push(outcome.tokens, s.barrier, rec.base, false);
  for (std::int32_t r : tmpl.resources)
    push(outcome.tokens, s.resources[static_cast<std::size_t>(r)].token, rec.base, false);
  for (std::int16_t i : tmpl.outgoing) {
    Entry<TimeToken>& entry = s.slots[static_cast<std::size_t>(i)];
    if (!kept_after(in, s, tmpl.slots[static_cast<std::size_t>(i)], entry, base)) continue;
    outcome.kept.push_back(i);
    push(outcome.tokens, entry, rec.base, false);
  }
  outcome.spent = in.backend_.spent(c) - rec.spent;
  for (std::size_t t = 0; t < outcome.spent.exposed.size(); ++t)
    if (outcome.spent.exposed[t] != 0)
      outcome.exposed.emplace_back(static_cast<std::int32_t>(t), outcome.spent.exposed[t]);
  outcome.spent.exposed.clear();
  outcomes_.emplace(rec.key, std::move(outcome));
}

template <Backend B>
std::int64_t Repetition<B>::rank_of(Interpreter<B>& in, std::int32_t meeting) {
  const auto& open = in.meetings_.open_ids();
  return std::find(open.begin(), open.end(), meeting) - open.begin();
}

template <Backend B>
void Repetition<B>::describe_entry(Interpreter<B>& in, State& s, const Kept<TimeToken>& kept, std::int64_t base,
                                   Numbers& n) {
  const plan::Scope scope = in.program_.buffers[static_cast<std::size_t>(kept.key.buffer.index)].scope;
  const std::int64_t origin = scope == plan::Scope::microbatch ? s.cursor.current().microbatch
                              : scope == plan::Scope::call     ? s.cursor.current().number
                                                               : 0;
  const bool exact = in.facts_.exactness[static_cast<std::size_t>(kept.key.buffer.index)] != Exactness::settled;
  n.insert(n.end(), {kept.key.buffer.index, kept.key.site, kept.key.index - origin});
  n.push_back(kept.entry.write.meeting < 0 ? -1 : rank_of(in, kept.entry.write.meeting));
  if (kept.entry.write.meeting < 0) push(n, kept.entry, base, !exact);  // what is only promised has no readers yet
  for (std::int32_t p = kept.entry.promised_readers; p >= 0; p = s.promises[static_cast<std::size_t>(p)].next) {
    const std::int32_t meeting = s.promises[static_cast<std::size_t>(p)].meeting;
    if (in.meetings_.done(meeting)) {
      n.push_back(-2);
      push(n, in.meetings_.completion(meeting), base, !exact);
    } else {
      n.push_back(rank_of(in, meeting));
    }
  }
  n.push_back(-3);
}

template <Backend B>
bool Repetition<B>::describe_class(Interpreter<B>& in, State& s, std::int64_t base, Numbers& n) {
  const ResolvedCall& here = s.cursor.current();
  const ResolvedCall& before = s.cursor.previous();
  n.insert(n.end(),
           {s.cursor.segment(), before.kind, before.site, before.kind < 0 ? 0 : before.microbatch - here.microbatch});
  push(n, s.memory, base, true);
  push(n, s.compute.token, base, true);
  push(n, s.barrier, base, true);
  std::int64_t floor = in.facts_.bare_unwritten ? INT64_MIN : base;
  for (Kept<TimeToken>& kept : s.few) {
    in.settle(s, kept.entry);
    s.blocked = -1;
    if (in.facts_.exactness[static_cast<std::size_t>(kept.key.buffer.index)] != Exactness::settled &&
        kept.entry.write.meeting < 0)
      floor = std::min(floor, kept.entry.write.token.ps);
  }
  for (Ref<TimeToken>& r : s.resources) {
    if (!in.settle(s, r)) {
      s.blocked = -1;
      n.insert(n.end(), {-1, rank_of(in, r.meeting)});
    } else if (r.token.ps <= floor) {
      n.push_back(-2);
    } else {
      n.push_back(-3);
      push(n, r.token, base, false);
    }
  }
  for (const Kept<TimeToken>& kept : s.few) describe_entry(in, s, kept, base, n);
  n.push_back(-4);
  return true;
}

// What has been brought to the meetings that are open. Only sends and receives can be described.
template <Backend B>
bool Repetition<B>::describe_meetings(Interpreter<B>& in, const std::vector<std::int64_t>& bases, Numbers& n) {
  const auto& first = in.state_.front().cursor;
  for (std::int32_t id : in.meetings_.open_ids()) {
    const auto& m = in.meetings_.at(id);
    if (m.key.kind != static_cast<std::int32_t>(plan::InstrKind::send)) return false;
    n.insert(n.end(),
             {m.key.body, m.key.group, m.key.stage, m.key.a - first.step(), m.key.b - first.current().microbatch});
    std::int64_t base = INT64_MAX;
    for (std::int32_t c : m.classes) base = std::min(base, bases[static_cast<std::size_t>(c)]);
    n.push_back(base - bases.front());
    for (std::size_t i = 0; i < m.ready.size(); ++i) {
      n.push_back(m.present[i]);
      if (m.present[i] == 0) continue;
      push(n, m.ready[i], base, false);
      push(n, m.stream[i], base, false);
    }
  }
  return true;
}

template <Backend B>
bool Repetition<B>::describe(Interpreter<B>& in, Numbers& n, std::vector<std::int64_t>& bases) {
  for (State& s : in.state_) bases.push_back(in.base(s));
  const auto& first = in.state_.front().cursor;
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    State& s = in.state_[c];
    n.insert(n.end(), {s.cursor.step() - first.step(), s.cursor.current().microbatch - first.current().microbatch,
                       bases[c] - bases[0]});
    if (!describe_class(in, s, bases[c], n)) return false;
  }
  return describe_meetings(in, bases, n);
}

template <Backend B>
std::vector<std::int64_t> Repetition<B>::relative_state(Interpreter<B>& in) {
  Numbers n;
  std::vector<std::int64_t> bases;
  TPUSIM_CHECK(describe(in, n, bases), "a step ended with an open collective");
  return n;
}

template <Backend B>
void Repetition<B>::observe(Interpreter<B>& in) {
  std::int64_t left = INT64_MAX;
  for (const State& s : in.state_) {
    if (s.tmpl >= 0 || !s.cursor.at_repeat_start() || s.cursor.previous().kind < 0)
      left = 0;
    else
      left = std::min(left, s.cursor.repeats_left());
  }
  Past now;
  if (left < 1 || !describe(in, now.state, now.bases)) {
    history_.clear();
    return;
  }
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    push(now.state, in.backend_.batch(static_cast<std::int32_t>(c), in.state_[c].cursor.step()), now.bases[c], true);
    now.spent.push_back(in.backend_.spent(static_cast<std::int32_t>(c)));
    now.calls.push_back(in.calls_[c]);
  }
  for (std::size_t back = 1; back <= history_.size(); ++back) {
    const Past& then = history_[history_.size() - back];
    const auto period = static_cast<std::int64_t>(back);
    if (left < period || then.state != now.state) continue;
    skip(in, then, now, period, left / period);
    history_.clear();
    return;
  }
  history_.push_back(std::move(now));
  if (history_.size() > in.state_.size() + 1) history_.pop_front();
}

template <Backend B>
void Repetition<B>::skip(Interpreter<B>& in, const Past& then, const Past& now, std::int64_t period,
                         std::int64_t times) {
  const SimTime shift = (SimTime::from_ps(now.bases[0]) - SimTime::from_ps(then.bases[0])) * times;
  const auto moved = [shift](TimeToken& t) {
    t.ps = (SimTime::from_ps(t.ps) + shift).ps();
    t.busy_since += shift.ps();
  };
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    State& s = in.state_[c];
    const std::int64_t number = s.cursor.current().number;
    s.cursor.skip(period * times);
    const std::int64_t calls = s.cursor.current().number - number;
    moved(s.memory);
    moved(s.compute.token);
    moved(s.barrier);
    for (auto& r : s.resources) moved(r.token);
    for (Kept<TimeToken>& kept : s.few) {
      const plan::Scope scope = in.program_.buffers[static_cast<std::size_t>(kept.key.buffer.index)].scope;
      kept.key.index += scope == plan::Scope::microbatch ? period * times : scope == plan::Scope::call ? calls : 0;
      moved(kept.entry.write.token);
      moved(kept.entry.readers);
    }
    in.backend_.spent(static_cast<std::int32_t>(c)) += (now.spent[c] - then.spent[c]) * times;
    for (std::size_t t = 0; t < in.calls_[c].size(); ++t)
      in.calls_[c][t] += (now.calls[c][t] - then.calls[c][t]) * times;
    in.counts_.added += calls;
  }
  for (std::int32_t id : in.meetings_.open_ids()) {
    auto& m = in.meetings_.at(id);
    m.key.b += period * times;
    m.microbatch += period * times;
    for (TimeToken& t : m.ready) moved(t);
    for (TimeToken& t : m.stream) moved(t);
  }
}

}  // namespace tpusim::run
