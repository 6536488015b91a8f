#include "sim/run/cursor.hpp"

#include "sim/base/check.hpp"

namespace tpusim::run {

Cursor::Cursor(const plan::Schedule& schedule) : schedule_(&schedule) {
  TPUSIM_CHECK(!schedule.segments.empty(), "a schedule without segments");
  for (const plan::Segment& segment : schedule.segments)
    TPUSIM_CHECK(!segment.body.empty() && segment.repeat >= 1, "an empty segment in a schedule");
  current_ = resolve(0, 0, 0, 0);
  look_ahead();
}

ResolvedCall Cursor::resolve(std::size_t segment, std::int64_t repeat, std::size_t body, std::int64_t number) const {
  const plan::Call& call = schedule_->segments[segment].body[body];
  return {call.site, call.kind, call.microbatch + repeat, number};
}

bool Cursor::follow(std::size_t& segment, std::int64_t& repeat, std::size_t& body) const {
  const plan::Segment& here = schedule_->segments[segment];
  if (++body < here.body.size()) return true;
  body = 0;
  if (++repeat < here.repeat) return true;
  repeat = 0;
  return ++segment < schedule_->segments.size();
}

void Cursor::look_ahead() {
  std::size_t segment = segment_, body = body_;
  std::int64_t repeat = repeat_;
  next_ = follow(segment, repeat, body) ? resolve(segment, repeat, body, current_.number + 1) : ResolvedCall{};
}

void Cursor::advance() {
  const std::int64_t number = current_.number + 1;
  if (follow(segment_, repeat_, body_)) {
    previous_ = current_;
  } else {
    segment_ = 0;
    repeat_ = 0;
    body_ = 0;
    ++step_;
    previous_ = ResolvedCall{};
  }
  current_ = resolve(segment_, repeat_, body_, number);
  look_ahead();
}

std::int64_t Cursor::alike() const {
  const std::vector<plan::Call>& body = schedule_->segments[segment_].body;
  const std::int32_t distance = current_.site - previous_.site;
  if (body_ == 0 || previous_.kind != current_.kind || previous_.microbatch != current_.microbatch) return 0;
  std::size_t last = body_;  // the last call that follows its like
  while (last + 1 < body.size() && body[last + 1].kind == body[last].kind &&
         body[last + 1].microbatch == body[last].microbatch && body[last + 1].site - body[last].site == distance)
    ++last;
  return last > body_ ? static_cast<std::int64_t>(last - body_) - 1 : 0;
}

void Cursor::pass(std::int64_t calls) {
  TPUSIM_CHECK(calls >= 0 && calls <= alike(), "a call passed over that is not like the others");
  if (calls == 0) return;
  const std::int64_t number = current_.number + calls;
  body_ += static_cast<std::size_t>(calls);
  previous_ = resolve(segment_, repeat_, body_ - 1, number - 1);
  current_ = resolve(segment_, repeat_, body_, number);
  look_ahead();
}

void Cursor::skip(std::int64_t repeats) {
  TPUSIM_CHECK(at_repeat_start() && repeats >= 0 && repeats <= repeats_left(), "a skip beyond the segment");
  const auto calls = static_cast<std::int64_t>(schedule_->segments[segment_].body.size()) * repeats;
  repeat_ += repeats;
  previous_.number += calls;
  previous_.microbatch += repeats;
  current_ = resolve(segment_, repeat_, body_, current_.number + calls);
  look_ahead();
}

}  // namespace tpusim::run
