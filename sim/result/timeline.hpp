// What one device of each class did over a step, and how full the fullest one was: the data behind the trace and the
// report's timeline.
//
// A timeline is bounded. TimelineBuilder takes every span and, when there are more than its budget, joins neighbours on
// a stream: first those of one call (same layer, microbatch and phase), then those of one microbatch and phase, then
// those of one kind; never across a gap of more than 1/256 of the window (1/32 for the last), so that a bubble is seen.
// Joined spans keep their number and their busy time, so nothing is hidden; what still does not fit is left out and
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tpusim::result {

enum class SpanKind : std::uint8_t { compute, communication, wait, input, other };
enum class SpanPhase : std::uint8_t { none, forward, backward, update };
std::string_view span_kind_name(SpanKind kind);
std::string_view span_phase_name(SpanPhase phase);  // "" for none

struct Span {
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::int64_t busy_ps = 0;      // end - start for one instruction; less where joined spans had gaps
  std::int32_t label = 0;        // index into Timeline::labels
  std::int32_t layer = -1;       // -1: none, or several
  std::int32_t microbatch = -1;  // -1: none, or several
  std::int32_t joined = 1;       // how many instructions this span stands for
  SpanKind kind = SpanKind::compute;
  SpanPhase phase = SpanPhase::none;
  bool operator==(const Span&) const = default;
};

struct Stream {
  std::string name;         // "compute", "ici x", "nic", ...
  std::vector<Span> spans;  // by start; spans of one stream do not overlap
  bool operator==(const Stream&) const = default;
};

struct DeviceClass {
  std::string name;               // "stage 0", "chips 0..255", ...
  std::int64_t device_count = 0;  // how many chips behave exactly like this one
  std::vector<Stream> streams;
  bool operator==(const DeviceClass&) const = default;
};

struct MemorySample {
  std::int64_t time_ps = 0;
  std::int64_t bytes = 0;  // alive from this time to the next sample's
  bool operator==(const MemorySample&) const = default;
};

struct Timeline {
  std::int64_t start_ps = 0;  // the window shown: normally one steady step
  std::int64_t end_ps = 0;
  std::vector<std::string> labels;
  std::vector<DeviceClass> classes;
  std::int32_t memory_class = -1;  // index of the fullest class, whose memory is sampled below
  std::vector<MemorySample> memory;
  std::int64_t spans_joined = 0;    // instructions that share a span with others
  std::int64_t spans_left_out = 0;  // instructions that are not shown at all
  bool empty() const { return classes.empty(); }
  bool operator==(const Timeline&) const = default;
};

// Collects a timeline within a budget of spans and of memory samples. Amortized constant time for each span; memory
// never holds more than twice the budget. Spans of one stream come in order of start.
class TimelineBuilder {
 public:
  static constexpr std::size_t kDefaultSpans = 20'000;
  static constexpr std::size_t kDefaultSamples = 4'000;

  explicit TimelineBuilder(std::size_t max_spans = kDefaultSpans, std::size_t max_samples = kDefaultSamples);

  // Returns the index of the class, or of the stream in its class.
  std::size_t add_class(std::string name, std::int64_t device_count);
  std::size_t add_stream(std::size_t device_class, std::string name);
  // The id of a label; equal texts have one id.
  std::int32_t label(std::string_view text);
  // busy_ps and joined of `span` are set here. A span of no length is ignored.
  void add_span(std::size_t device_class, std::size_t stream, Span span);
  // Memory of the class `device_class` (one class only: the fullest), in order of time. Over the budget the samples are
  // thinned; of each interval the highest stays, so the peak is never lost, and the last sample stays beside them.
  void add_memory(std::size_t device_class, std::int64_t time_ps, std::int64_t bytes);
  // Before the spans, for the gaps to be known by.
  void set_window(std::int64_t start_ps, std::int64_t end_ps);

  Timeline finish();  // the builder is empty afterwards

 private:
  bool joins(const Span& a, const Span& b) const;
  void join(Span& into, const Span& span);
  void coarsen();
  void thin_memory();

  std::size_t max_spans_;
  std::size_t max_samples_;
  std::size_t spans_ = 0;
  int level_ = 0;                           // 0 each instruction, 1 each call, 2 each microbatch and phase, 3 each kind
  std::size_t together_ = 1, in_last_ = 1;  // changes of memory that share a sample, and those in the last one
  MemorySample last_memory_;
  std::unordered_map<std::string, std::int32_t> ids_;  // looked up, never iterated
  Timeline timeline_;
};

}  // namespace tpusim::result
