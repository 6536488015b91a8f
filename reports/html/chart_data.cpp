#include "reports/html/chart_data.hpp"

#include <algorithm>
#include <cmath>

#include "reports/summary.hpp"
#include "sim/result/json_text.hpp"

namespace tpusim::reports {

namespace {

using result::Json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json parts_tree(const std::vector<Part>& parts) {
  Json out = Json::array();
  for (const Part& part : parts)
    out.push_back(
        {{"key", part.key}, {"name", part.name}, {"value", number(part.value)}, {"share", number(part.share)}});
  return out;
}

Json communication_tree(const std::vector<result::Communication>& rows) {
  Json out = Json::array();
  const auto name = [](const result::Communication& c) { return c.collective + " " + joined(c.axes, "+"); };
  for (const result::Communication& c : rows) {
    // The algorithm only where it tells two bars apart.
    const auto alike =
        std::count_if(rows.begin(), rows.end(), [&](const auto& other) { return name(other) == name(c); });
    out.push_back({{"name", alike > 1 ? name(c) + ", " + c.algorithm : name(c)},
                   {"busy", number(c.busy.value())},
                   {"exposed", number(c.exposed.value())}});
  }
  return out;
}

// The coarsest power of ten picoseconds that cuts the window into at least 10^8 parts: far finer than any screen, and
// half the page's size.
std::int64_t quantum_of(std::int64_t window_ps) {
  std::int64_t quantum = 1;
  while (window_ps / quantum >= 1'000'000'000) quantum *= 10;
  return quantum;
}

Json stream_tree(const result::Stream& stream, std::int64_t start_ps, std::int64_t quantum) {
  Json gap = Json::array(), length = Json::array(), label = Json::array(), code = Json::array(), layer = Json::array(),
       microbatch = Json::array(), busy = Json::array(), instructions = Json::array();
  bool any_joined = false;
  std::int64_t before = 0;
  for (const result::Span& span : stream.spans) {
    // Both ends are rounded, not the length, so that neighbours neither overlap nor drift apart.
    const std::int64_t start = (span.start_ps - start_ps) / quantum;
    const std::int64_t end = std::max((span.end_ps - start_ps) / quantum, start);
    gap.push_back(start - before);
    length.push_back(end - start);
    before = end;
    label.push_back(span.label);
    code.push_back(static_cast<int>(span.kind) * 4 + static_cast<int>(span.phase));
    layer.push_back(span.layer);
    microbatch.push_back(span.microbatch);
    busy.push_back(span.busy_ps / quantum);
    instructions.push_back(span.joined);
    any_joined = any_joined || span.joined > 1;
  }
  Json out = {{"name", stream.name}, {"gap", gap},     {"length", length},        {"label", label},
              {"code", code},        {"layer", layer}, {"microbatch", microbatch}};
  if (any_joined) {
    out["busy"] = busy;
    out["joined"] = instructions;
  }
  return out;
}

Json page_timeline(const result::Timeline& t) {
  if (t.empty() || t.end_ps <= t.start_ps) return nullptr;
  const std::int64_t quantum = quantum_of(t.end_ps - t.start_ps);
  Json classes = Json::array();
  for (const result::DeviceClass& c : t.classes) {
    Json streams = Json::array();
    for (const result::Stream& s : c.streams) streams.push_back(stream_tree(s, t.start_ps, quantum));
    classes.push_back({{"name", c.name}, {"devices", c.device_count}, {"streams", streams}});
  }
  Json memory = nullptr;
  if (!t.memory.empty() && t.memory_class >= 0) {
    Json time = Json::array(), bytes = Json::array();
    for (const result::MemorySample& m : t.memory) {
      time.push_back((m.time_ps - t.start_ps) / quantum);
      bytes.push_back(m.bytes);
    }
    memory = {{"class", t.memory_class}, {"time", time}, {"bytes", bytes}};
  }
  return {{"quantum_s", static_cast<double>(quantum) * 1e-12},
          {"window", (t.end_ps - t.start_ps) / quantum},
          {"labels", t.labels},
          {"spans_joined", t.spans_joined},
          {"spans_left_out", t.spans_left_out},
          {"classes", classes},
          {"memory", memory}};
}

}  // namespace

std::string chart_data(const result::Result& r) {
  const Json data = {{"step", {{"time", number(r.step.time.value())}, {"parts", parts_tree(step_parts(r.step))}}},
                     {"memory",
                      {{"capacity", has_capacity(r.memory) ? r.memory.capacity_bytes : 0},
                       {"peak", r.memory.peak_bytes},
                       {"parts", parts_tree(memory_parts(r.memory))}}},
                     {"communication", communication_tree(r.communication)},
                     {"timeline", page_timeline(r.timeline)}};
  return result::compact(data);
}

}  // namespace tpusim::reports
