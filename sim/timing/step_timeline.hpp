// Turns what the timing backend saw in one steady step into the result's timeline.
#pragma once

#include <string>
#include <vector>

#include "sim/result/timeline.hpp"
#include "sim/timing/timing_backend.hpp"

namespace tpusim::timing {

class TimelineRecorder {
 public:
  TimelineRecorder(const plan::StepProgram& program, const std::vector<run::DeviceClass>& classes);
  // Whether one step can be played in full for a picture: at most two million instructions.
  bool affordable() const { return affordable_; }
  void add(const Event& event) { events_.push_back(event); }
  std::vector<MemoryEvent>& memory() { return memory_; }
  // `begin`, `end`: the step's bounds on each class's compute stream.
  result::Timeline finish(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end);

 private:
  std::string label(const Event& event) const;
  result::SpanPhase phase(const Event& event) const;
  void add_memory(std::int64_t window, result::TimelineBuilder& builder) const;
  const plan::StepProgram& program_;
  std::vector<run::DeviceClass> classes_;
  std::vector<Event> events_;
  std::vector<MemoryEvent> memory_;
  bool affordable_ = true;
};

}  // namespace tpusim::timing
