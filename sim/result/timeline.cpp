#include "sim/result/timeline.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace tpusim::result {

std::string_view span_kind_name(SpanKind kind) {
  switch (kind) {
    case SpanKind::compute:
      return "compute";
    case SpanKind::communication:
      return "communication";
    case SpanKind::wait:
      return "wait";
    case SpanKind::input:
      return "input";
    case SpanKind::other:
      return "other";
  }
  return "other";
}

std::string_view span_phase_name(SpanPhase phase) {
  switch (phase) {
    case SpanPhase::none:
      return "";
    case SpanPhase::forward:
      return "forward";
    case SpanPhase::backward:
      return "backward";
    case SpanPhase::update:
      return "update";
  }
  return "";
}

TimelineBuilder::TimelineBuilder(std::size_t max_spans, std::size_t max_samples)
    : max_spans_(std::max<std::size_t>(max_spans, 1)), max_samples_(std::max<std::size_t>(max_samples, 2)) {}

std::size_t TimelineBuilder::add_class(std::string name, std::int64_t device_count) {
  DeviceClass device_class;
  device_class.name = std::move(name);
  device_class.device_count = device_count;
  timeline_.classes.push_back(std::move(device_class));
  return timeline_.classes.size() - 1;
}

std::size_t TimelineBuilder::add_stream(std::size_t device_class, std::string name) {
  TPUSIM_CHECK(device_class < timeline_.classes.size(), "a stream of no class");
  std::vector<Stream>& streams = timeline_.classes[device_class].streams;
  streams.push_back({std::move(name), {}});
  return streams.size() - 1;
}

std::int32_t TimelineBuilder::label(std::string_view text) {
  const auto [it, fresh] = ids_.try_emplace(std::string(text), static_cast<std::int32_t>(timeline_.labels.size()));
  if (fresh) timeline_.labels.emplace_back(text);
  return it->second;
}

bool TimelineBuilder::joins(const Span& a, const Span& b) const {
  if (level_ == 0 || a.kind != b.kind) return false;
  // Not across a wait that can be seen: a bubble is a gap and not part of a bar.
  const std::int64_t window = timeline_.end_ps - timeline_.start_ps;
  if (window > 0 && b.start_ps - a.end_ps > window / (level_ >= 3 ? 32 : 256)) return false;
  if (level_ >= 3) return true;
  if (a.phase != b.phase || a.microbatch != b.microbatch) return false;
  return level_ >= 2 || a.layer == b.layer;
}

void TimelineBuilder::join(Span& into, const Span& span) {
  into.end_ps = std::max(into.end_ps, span.end_ps);
  into.busy_ps += span.busy_ps;
  into.joined += span.joined;
  if (into.layer != span.layer) into.layer = -1;
  if (into.microbatch != span.microbatch) into.microbatch = -1;
  if (into.phase != span.phase) into.phase = SpanPhase::none;
  if (into.label != span.label) into.label = label(span_kind_name(into.kind));
}

void TimelineBuilder::add_span(std::size_t device_class, std::size_t stream, Span span) {
  if (span.end_ps <= span.start_ps) return;
  TPUSIM_CHECK(device_class < timeline_.classes.size() && stream < timeline_.classes[device_class].streams.size(),
               "a span of no stream");
  span.busy_ps = span.end_ps - span.start_ps;
  span.joined = 1;
  if (timeline_.spans_left_out > 0) {  // or a later span would be joined across what is not shown
    ++timeline_.spans_left_out;
    return;
  }
  std::vector<Span>& spans = timeline_.classes[device_class].streams[stream].spans;
  if (!spans.empty() && joins(spans.back(), span)) {
    join(spans.back(), span);
    return;
  }
  if (spans_ >= max_spans_) {
    if (level_ >= 3) {
      ++timeline_.spans_left_out;
      return;
    }
    coarsen();
    add_span(device_class, stream, span);
    return;
  }
  spans.push_back(span);
  ++spans_;
}

// One level coarser. Every level is tried at most once, so the whole costs a small multiple of the budget.
void TimelineBuilder::coarsen() {
  ++level_;
  spans_ = 0;
  for (DeviceClass& device_class : timeline_.classes)
    for (Stream& stream : device_class.streams) {
      std::vector<Span> kept;
      for (const Span& span : stream.spans) {
        if (!kept.empty() && joins(kept.back(), span))
          join(kept.back(), span);
        else
          kept.push_back(span);
      }
      stream.spans = std::move(kept);
      spans_ += stream.spans.size();
    }
}

void TimelineBuilder::add_memory(std::size_t device_class, std::int64_t time_ps, std::int64_t bytes) {
  if (timeline_.memory_class < 0) timeline_.memory_class = static_cast<std::int32_t>(device_class);
  TPUSIM_CHECK(timeline_.memory_class == static_cast<std::int32_t>(device_class), "memory of a second class");
  std::vector<MemorySample>& memory = timeline_.memory;
  last_memory_ = {time_ps, bytes};
  const std::size_t n = memory.size();
  if (together_ == 1 && n >= 2 && memory[n - 1].time_ps == time_ps && memory[n - 2].time_ps == time_ps) {
    // Many changes at one instant are two samples: the highest, so that a peak is seen, and the last.
    memory[n - 2].bytes = std::max(memory[n - 2].bytes, memory[n - 1].bytes);
    memory[n - 1].bytes = bytes;
    return;
  }
  if (n > 0 && in_last_ < together_) {
    memory.back().bytes = std::max(memory.back().bytes, bytes);
    ++in_last_;
    return;
  }
  memory.push_back({time_ps, bytes});
  in_last_ = 1;
  if (memory.size() >= 2 * max_samples_) thin_memory();
}

// Halves the samples: of each two neighbours the higher stays, at the time of the first. So do those to come, that all
// parts of the step are shown as finely.
void TimelineBuilder::thin_memory() {
  std::vector<MemorySample>& memory = timeline_.memory;
  std::vector<MemorySample> kept;
  for (std::size_t i = 0; i + 1 < memory.size(); i += 2)
    kept.push_back({memory[i].time_ps, std::max(memory[i].bytes, memory[i + 1].bytes)});
  if (memory.size() % 2 == 1)
    kept.push_back(memory.back());
  else
    in_last_ += together_;
  together_ *= 2;
  memory = std::move(kept);
}

void TimelineBuilder::set_window(std::int64_t start_ps, std::int64_t end_ps) {
  timeline_.start_ps = start_ps;
  timeline_.end_ps = end_ps;
}

Timeline TimelineBuilder::finish() {
  while (timeline_.memory.size() > max_samples_) thin_memory();
  if (together_ > 1 && !(timeline_.memory.back() == last_memory_)) timeline_.memory.push_back(last_memory_);
  together_ = in_last_ = 1;
  for (const DeviceClass& device_class : timeline_.classes)
    for (const Stream& stream : device_class.streams)
      for (const Span& span : stream.spans)
        if (span.joined > 1) timeline_.spans_joined += span.joined;
  ids_.clear();
  spans_ = 0;
  level_ = 0;
  return std::exchange(timeline_, Timeline());
}

}  // namespace tpusim::result
