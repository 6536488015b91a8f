#include "reports/trace.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "reports/summary.hpp"

namespace tpusim::reports {

namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// A picosecond count as microseconds in decimal, exactly: doubles would round beyond 2^53 ps (two and a half hours).
std::string microseconds(std::int64_t ps) {
  const char* sign = ps < 0 ? "-" : "";
  const std::uint64_t size = ps < 0 ? 0 - static_cast<std::uint64_t>(ps) : static_cast<std::uint64_t>(ps);
  const std::uint64_t whole = size / 1'000'000;
  const std::uint64_t fraction = size % 1'000'000;
  if (fraction == 0) return fmt::format("{}{}", sign, whole);
  std::string text = fmt::format("{}{}.{:06}", sign, whole, fraction);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

class TraceWriter {
 public:
  explicit TraceWriter(const result::Result& result) : r_(result), t_(result.timeline) {}

  std::string render() {
    for (std::size_t c = 0; c < t_.classes.size(); ++c) device_class(c);
    memory();
    const Facts f = facts(r_);
    return "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":" + json_string(f.title) +
           ",\"spans_joined\":" + std::to_string(t_.spans_joined) +
           ",\"spans_left_out\":" + std::to_string(t_.spans_left_out) + "},\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  void event(const std::string& body) {
    if (!events_.empty()) events_ += ",\n";
    events_ += "{" + body + "}";
  }

  void metadata(const char* name, std::size_t pid, std::size_t tid, const std::string& args) {
    event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}})", name, pid, tid, args));
  }

  void device_class(std::size_t c) {
    const result::DeviceClass& d = t_.classes[c];
    const std::size_t pid = c + 1;  // Perfetto takes process 0 for the idle task
    const std::string chips = fmt::format(" ({} chip{})", d.device_count, d.device_count == 1 ? "" : "s");
    metadata("process_name", pid, 0, "\"name\":" + json_string(d.name + chips));
    metadata("process_sort_index", pid, 0, fmt::format("\"sort_index\":{}", c));
    for (std::size_t s = 0; s < d.streams.size(); ++s) {
      metadata("thread_name", pid, s + 1, "\"name\":" + json_string(d.streams[s].name));
      metadata("thread_sort_index", pid, s + 1, fmt::format("\"sort_index\":{}", s));
      for (const result::Span& span : d.streams[s].spans) complete(pid, s + 1, span);
    }
  }

  // Its instruction, or what its joined instructions have in common.
  std::string name_of(const result::Span& span) const {
    const auto label = static_cast<std::size_t>(span.label);
    const std::string own = span.label >= 0 && label < t_.labels.size() ? t_.labels[label] : "?";
    if (span.joined == 1) return own;
    std::string common;
    if (span.layer >= 0)
      common = fmt::format("layer {}", span.layer);
    else if (span.microbatch >= 0)
      common = fmt::format("microbatch {}", span.microbatch);
    const std::string_view phase = result::span_phase_name(span.phase);
    if (!common.empty() && !phase.empty()) common += " ";
    common += phase;
    return common.empty() ? own : common;
  }

  void complete(std::size_t pid, std::size_t tid, const result::Span& span) {
    const std::string name = name_of(span);
    std::string args;
    const auto arg = [&](const char* key, const std::string& value) {
      args += fmt::format("{}\"{}\":{}", args.empty() ? "" : ",", key, value);
    };
    if (span.phase != result::SpanPhase::none) arg("phase", json_string(result::span_phase_name(span.phase)));
    if (span.layer >= 0) arg("layer", std::to_string(span.layer));
    if (span.microbatch >= 0) arg("microbatch", std::to_string(span.microbatch));
    if (span.joined > 1) {
      arg("instructions", std::to_string(span.joined));
      arg("busy_us", microseconds(span.busy_ps));
    }
    event(fmt::format(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
                      json_string(name), result::span_kind_name(span.kind), pid, tid,
                      microseconds(span.start_ps - t_.start_ps), microseconds(span.end_ps - span.start_ps), args));
  }

  void memory() {
    if (t_.memory_class < 0) return;
    for (const result::MemorySample& m : t_.memory)
      event(fmt::format(R"("ph":"C","name":"memory in use","pid":{},"ts":{},"args":{{"bytes":{}}})",
                        t_.memory_class + 1, microseconds(m.time_ps - t_.start_ps), m.bytes));
  }

  const result::Result& r_;
  const result::Timeline& t_;
  std::string events_;
};

}  // namespace

std::string trace(const result::Result& result) {
  return TraceWriter(result).render();
}

}  // namespace tpusim::reports
