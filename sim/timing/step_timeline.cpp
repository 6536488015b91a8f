#include "sim/timing/step_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tpusim::timing {

namespace {

constexpr double kAffordableInstructions = 2e6;

}  // namespace

TimelineRecorder::TimelineRecorder(const plan::StepProgram& program, const std::vector<run::DeviceClass>& classes)
    : program_(program), classes_(classes) {
  double instructions = 0, longest = 0;
  for (const plan::Template& t : program.templates) longest = std::max(longest, static_cast<double>(t.instrs.size()));
  for (const run::DeviceClass& c : classes)
    instructions += longest * static_cast<double>(program.schedules[static_cast<std::size_t>(c.stage)].calls());
  affordable_ = instructions <= kAffordableInstructions;
}

// Of the fullest class. What it holds all the time is what the plan's peak has above the highest point of what comes
// and goes in plan order.
void TimelineRecorder::add_memory(std::int64_t window, result::TimelineBuilder& builder) const {
  const auto peak = [&](std::size_t c) {
    return program_.memory[static_cast<std::size_t>(classes_[c].stage)].peak_bytes;
  };
  std::size_t fullest = 0;
  for (std::size_t c = 1; c < classes_.size(); ++c)
    if (peak(c) > peak(fullest)) fullest = c;
  const auto change = [&](const MemoryEvent& e) {
    const std::int64_t bytes = program_.buffers[static_cast<std::size_t>(e.buffer.index)].bytes;
    return e.allocated ? bytes : -bytes;
  };
  std::vector<MemoryEvent> events;
  std::int64_t now = 0, highest = 0;
  for (const MemoryEvent& e : memory_) {
    if (e.device_class != static_cast<std::int32_t>(fullest)) continue;
    highest = std::max(highest, now += change(e));
    events.push_back(e);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; });
  now = peak(fullest) - highest;
  builder.add_memory(fullest, 0, now);
  for (const MemoryEvent& e : events)
    builder.add_memory(fullest, std::max<std::int64_t>(e.time - window, 0), now += change(e));
}

std::string TimelineRecorder::label(const Event& event) const {
  const auto body = static_cast<std::size_t>(event.body);
  const std::int32_t stage = classes_[static_cast<std::size_t>(event.device_class)].stage;
  switch (event.kind) {
    case plan::InstrKind::kernel:
      return std::string(program_.kernels[body].label);
    case plan::InstrKind::collective: {
      const plan::Collective& c = program_.collectives[body];
      return fmt::format("{} {} over {}", plan::name_of(program_.plans[static_cast<std::size_t>(c.plan)].kind), c.label,
                         program_.mesh.to_string(c.mesh_axes));
    }
    case plan::InstrKind::send:
      return fmt::format("send to stage {}", program_.permutes[body].to(stage, true));
    case plan::InstrKind::receive:
      return fmt::format("receive from stage {}", program_.permutes[body].from(stage, false));
    case plan::InstrKind::stage_reduce:
      return "sum over stages";
    case plan::InstrKind::done:
      return "";
  }
  return "";
}

result::SpanPhase TimelineRecorder::phase(const Event& event) const {
  if (event.kind != plan::InstrKind::kernel) return result::SpanPhase::none;
  const plan::Kernel& kernel = program_.kernels[static_cast<std::size_t>(event.body)];
  if (kernel.ops.empty()) return result::SpanPhase::none;
  const ir::Program& local = program_.programs[static_cast<std::size_t>(kernel.program)].local;
  switch (local.op(kernel.ops.front()).phase) {
    case ir::Phase::forward:
      return result::SpanPhase::forward;
    case ir::Phase::recompute:
    case ir::Phase::backward:
      return result::SpanPhase::backward;
    case ir::Phase::update:
      return result::SpanPhase::update;
  }
  return result::SpanPhase::none;
}

result::Timeline TimelineRecorder::finish(const std::vector<std::int64_t>& begin,
                                          const std::vector<std::int64_t>& end) {
  result::TimelineBuilder builder;
  std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.start < b.start; });
  const std::int64_t window = *std::min_element(begin.begin(), begin.end());
  builder.set_window(0, *std::max_element(end.begin(), end.end()) - window);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::size_t id = builder.add_class(
        program_.stages > 1 ? fmt::format("stage {}", classes_[c].stage) : "every chip", classes_[c].count);
    std::vector<std::size_t> streams = {builder.add_stream(id, "compute")};
    std::vector<std::int32_t> used;
    const auto resources_of = [&](const Event& e) -> std::vector<std::int32_t> {
      const auto body = static_cast<std::size_t>(e.body);
      if (e.kind == plan::InstrKind::collective) return program_.collectives[body].resources;
      if (e.kind == plan::InstrKind::stage_reduce) return {program_.stage_reduces[body].resource};
      return {program_.permutes[body].resource_at(classes_[c].stage, e.kind == plan::InstrKind::send)};
    };
    for (const Event& e : events_)
      if (e.device_class == static_cast<std::int32_t>(c) && e.kind != plan::InstrKind::kernel)
        for (std::int32_t r : resources_of(e))
          if (std::find(used.begin(), used.end(), r) == used.end()) used.push_back(r);
    std::sort(used.begin(), used.end());
    for (std::int32_t r : used)
      streams.push_back(builder.add_stream(id, program_.resource_names[static_cast<std::size_t>(r)]));
    for (const Event& e : events_) {
      if (e.device_class != static_cast<std::int32_t>(c)) continue;
      result::Span span;
      span.start_ps = e.start - window;
      span.end_ps = e.end - window;
      span.label = builder.label(label(e));
      span.layer = e.site;
      span.microbatch = static_cast<std::int32_t>(std::min<std::int64_t>(e.microbatch, INT32_MAX));
      span.phase = phase(e);
      span.kind = e.kind == plan::InstrKind::kernel ? result::SpanKind::compute : result::SpanKind::communication;
      if (e.kind == plan::InstrKind::kernel) {
        builder.add_span(id, streams[0], span);
      } else {
        for (std::int32_t r : resources_of(e))
          builder.add_span(
              id, streams[1 + static_cast<std::size_t>(std::find(used.begin(), used.end(), r) - used.begin())], span);
      }
    }
  }
  if (!program_.memory.empty()) add_memory(window, builder);
  return builder.finish();
}

}  // namespace tpusim::timing
