// Implementation of repetition.hpp: whole repeats.
#pragma once

namespace tpusim::run {

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
    forget_history();
    return;
  }
  for (std::size_t c = 0; c < in.state_.size(); ++c) {
    push(now.state, in.backend_.batch(static_cast<std::int32_t>(c), in.state_[c].cursor.step()), now.bases[c], true);
    now.spent.push_back(in.backend_.spent(static_cast<std::int32_t>(c)));
    now.calls.push_back(in.calls_[c]);
  }
  now.hash = NumbersHash{}(now.state);
  for (std::size_t back = 1; back <= history_.size(); ++back) {
    const Past& then = history_[history_.size() - back];
    const auto period = static_cast<std::int64_t>(back);
    if (left < period || then.hash != now.hash || then.state != now.state) continue;
    skip(in, then, now, period, left / period);
    forget_history();
    return;
  }
  history_numbers_ += now.state.size();
  history_.push_back(std::move(now));
  while (history_.size() > in.state_.size() + 1 || history_numbers_ > kMostHistory) {
    history_numbers_ -= history_.front().state.size();
    history_.pop_front();
  }
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
