// Implementation of repetition.hpp.
#pragma once

namespace tpusim::run {

template <Backend B>
void Repetition<B>::push(Numbers& out, const TimeToken& t, std::int64_t base) {
  const bool past = t.ps <= base;
  out.push_back(past ? 0 : t.ps - base);
  out.push_back(past ? 0 : std::max<std::int64_t>(t.busy_since - base, 0));
  out.push_back(past ? 0 : static_cast<std::int64_t>(t.before) + 4 * (static_cast<std::int64_t>(t.transfer) + 1));
}

template <Backend B>
TimeToken Repetition<B>::pull(const Numbers& in, std::size_t& at, std::int64_t base) {
  TimeToken t{in[at] + base, in[at + 1] + base, static_cast<Cause>(in[at + 2] % 4), static_cast<std::int32_t>(in[at + 2] / 4) - 1};
  at += 3;
  return t;
}

template <Backend B>
bool Repetition<B>::call_key(Interpreter<B>& in, std::int32_t c, std::int64_t base, Numbers& key) {
  auto& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.templates_[static_cast<std::size_t>(s.tmpl)];
  key.clear();
  key.push_back(s.tmpl);
  push(key, s.memory, base);
  push(key, s.compute.token, base);
  for (auto& r : s.resources) {
    if (!in.settle(s, r)) return false;
    push(key, r.token, base);
  }
  if (tmpl.reads_data) push(key, in.backend_.batch(c, s.cursor.step()), base);
  for (std::int16_t slot : tmpl.incoming) {
    auto& entry = s.slots[static_cast<std::size_t>(slot)];
    if (!in.settle(s, entry)) return false;
    if (entry.write.token.ps <= base && entry.readers.ps <= base) continue;
    key.push_back(slot);
    push(key, entry.write.token, base);
    push(key, entry.readers, base);
  }
  return true;
}

template <Backend B>
bool Repetition<B>::replay(Interpreter<B>& in, std::int32_t c) {
  recordings_.resize(in.state_.size());
  auto& s = in.state_[static_cast<std::size_t>(c)];
  Recording& rec = recordings_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.templates_[static_cast<std::size_t>(s.tmpl)];
  rec.active = false;
  if (tmpl.crosses) return false;
  const std::int64_t base = std::min(s.memory.ps, s.compute.token.ps);
  const bool known_state = call_key(in, c, base, rec.key);
  s.blocked = -1;
  if (!known_state) return false;
  const auto found = outcomes_.find(rec.key);
  if (found == outcomes_.end()) {
    rec.active = true;
    rec.base = base;
    rec.spent = in.backend_.spent(c);
    return false;
  }
  const Outcome& outcome = found->second;
  std::size_t at = 0;
  s.memory = pull(outcome.tokens, at, base);
  s.compute.token = pull(outcome.tokens, at, base);
  for (auto& r : s.resources) r = {pull(outcome.tokens, at, base), -1};
  for (std::int16_t slot : tmpl.outgoing) {
    auto& entry = s.slots[static_cast<std::size_t>(slot)];
    entry.write = {pull(outcome.tokens, at, base), -1};
    entry.readers = pull(outcome.tokens, at, base);
  }
  in.backend_.spent(c) += outcome.spent;
  return true;
}

template <Backend B>
void Repetition<B>::remember(Interpreter<B>& in, std::int32_t c) {
  if (static_cast<std::size_t>(c) >= recordings_.size() || !recordings_[static_cast<std::size_t>(c)].active) return;
  Recording& rec = recordings_[static_cast<std::size_t>(c)];
  rec.active = false;
  auto& s = in.state_[static_cast<std::size_t>(c)];
  const CompiledTemplate& tmpl = in.templates_[static_cast<std::size_t>(s.tmpl)];
  if (outcomes_.size() >= 65536) return;  // a bound on memory; the rest is played
  Outcome outcome;
  push(outcome.tokens, s.memory, rec.base);
  push(outcome.tokens, s.compute.token, rec.base);
  for (auto& r : s.resources) push(outcome.tokens, r.token, rec.base);
  for (std::int16_t slot : tmpl.outgoing) {
    const auto& entry = s.slots[static_cast<std::size_t>(slot)];
    push(outcome.tokens, entry.write.token, rec.base);
    push(outcome.tokens, entry.readers, rec.base);
  }
  outcome.spent = in.backend_.spent(c) - rec.spent;
  outcomes_.emplace(rec.key, std::move(outcome));
}

template <Backend B>
bool Repetition<B>::signature(Interpreter<B>& in, Past& out, std::int64_t& left) {
  left = INT64_MAX;
  for (auto& s : in.state_) {
    if (s.tmpl >= 0 || !s.cursor.at_repeat_start() || s.cursor.previous().kind < 0) return false;
    left = std::min(left, s.cursor.repeats_left());
  }
  if (left < 2) return false;
  const auto& first = in.state_.front();
  const std::int64_t base0 = std::min(first.memory.ps, first.compute.token.ps);
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    auto& s = in.state_[c];
    const std::int64_t base = std::min(s.memory.ps, s.compute.token.ps);
    out.bases.push_back(base);
    out.spent.push_back(in.backend_.spent(static_cast<std::int32_t>(c)));
    out.calls.push_back(in.calls_[c]);
    Numbers& n = out.signature;
    n.push_back(s.cursor.segment());
    n.push_back(s.cursor.step() - first.cursor.step());
    n.push_back(s.cursor.current().microbatch - first.cursor.current().microbatch);
    n.push_back(base - base0);
    push(n, s.memory, base);
    push(n, s.compute.token, base);
    push(n, in.backend_.batch(static_cast<std::int32_t>(c), s.cursor.step()), base);
    for (auto& r : s.resources) {
      if (r.meeting >= 0 && !in.settle(s, r)) {
        n.push_back(-1);  // promised by an open meeting, which is listed below
        s.blocked = -1;
      } else {
        push(n, r.token, base);
      }
    }
    for (auto& [key, entry] : s.few) {
      if (settled(in.backend_, s, in.meetings_, entry)) continue;
      const plan::Scope scope = in.program_.buffers[static_cast<std::size_t>(key.buffer.index)].scope;
      const std::int64_t origin = scope == plan::Scope::microbatch ? s.cursor.current().microbatch : scope == plan::Scope::call ? s.cursor.current().number : 0;
      n.push_back(key.buffer.index);
      n.push_back(key.site);
      n.push_back(key.index - origin);
      n.push_back(entry.write.meeting >= 0 ? -2 : 0);
      n.push_back(static_cast<std::int64_t>(entry.reader_meetings.size()));
      push(n, entry.write.token, base);
      push(n, entry.readers, base);
    }
  }
  for (std::int32_t id : in.meetings_.open_ids()) {
    const auto& m = in.meetings_.at(id);
    if (m.key.kind != static_cast<std::int32_t>(plan::InstrKind::send)) return false;
    out.signature.push_back(m.key.body);
    out.signature.push_back(m.key.b - first.cursor.current().microbatch);
    for (std::size_t i = 0; i < m.ready.size(); ++i) {
      out.signature.push_back(m.present[i] ? m.ready[i].ps - base0 : INT64_MIN);
      out.signature.push_back(m.present[i] ? m.stream[i].ps - base0 : INT64_MIN);
    }
  }
  return true;
}

template <Backend B>
void Repetition<B>::observe(Interpreter<B>& in) {
  Past now;
  std::int64_t left = 0;
  if (!signature(in, now, left)) {
    history_.clear();
    return;
  }
  for (std::size_t back = 1; back <= history_.size(); ++back) {
    const Past& then = history_[history_.size() - back];
    const auto period = static_cast<std::int64_t>(back);
    if (then.signature != now.signature || left < period) continue;
    skip(in, then, now, period, left / period);
    history_.clear();
    return;
  }
  history_.push_back(std::move(now));
  if (history_.size() > in.state_.size() + 1) history_.pop_front();
}

template <Backend B>
void Repetition<B>::skip(Interpreter<B>& in, const Past& then, const Past& now, std::int64_t period, std::int64_t times) {
  const std::int64_t shift = ((SimTime::from_ps(now.bases[0] - then.bases[0])) * times).ps();
  const auto moved = [shift](TimeToken& t) {
    t.ps = (SimTime::from_ps(t.ps) + SimTime::from_ps(shift)).ps();
    t.busy_since += shift;
  };
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    auto& s = in.state_[c];
    const std::int64_t number = s.cursor.current().number;
    s.cursor.skip(period * times);
    const std::int64_t calls = s.cursor.current().number - number;
    moved(s.memory);
    moved(s.compute.token);
    for (auto& r : s.resources) moved(r.token);
    for (auto& [key, entry] : s.few) {
      const plan::Scope scope = in.program_.buffers[static_cast<std::size_t>(key.buffer.index)].scope;
      key.index += scope == plan::Scope::microbatch ? period * times : scope == plan::Scope::call ? calls : 0;
      moved(entry.write.token);
      moved(entry.readers);
    }
    in.backend_.spent(static_cast<std::int32_t>(c)) += (now.spent[c] - then.spent[c]) * times;
    for (std::size_t t = 0; t < in.calls_[c].size(); ++t) in.calls_[c][t] += (now.calls[c][t] - then.calls[c][t]) * times;
  }
  in.meetings_.shift_open([&](auto& m) {
    m.key.b += period * times;
    for (TimeToken& t : m.ready) moved(t);
    for (TimeToken& t : m.stream) moved(t);
  });
}

}  // namespace tpusim::run
