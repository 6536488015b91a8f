#include "sim/timing/collective_time.hpp"

#include <algorithm>
#include <map>

#include "sim/engine/fluid.hpp"

namespace tpusim::timing {

namespace {

// Bytes on the busiest link of each direction in one step.
struct StepLoad {
  std::int64_t forward = 0, backward = 0;
  auto operator<=>(const StepLoad&) const = default;
};

// The distinct steps of a work and how often each occurs.
std::map<StepLoad, std::int64_t> step_loads(const plan::CollectivePlan& plan, const plan::Phase::Work& work) {
  const auto n = static_cast<std::int32_t>(plan.axes[static_cast<std::size_t>(work.axis)].size);
  const std::int64_t part = plan.part_elements[static_cast<std::size_t>(work.part)];
  std::map<StepLoad, std::int64_t> loads;
  for (const plan::LineStep& step : plan::line_steps(work.algorithm, n)) {
    std::vector<StepLoad> by_member(static_cast<std::size_t>(n));
    for (const plan::Move& move : step) {
      const std::int64_t bytes = plan::half_elements(part, move.half) * work.slots * plan.element_bytes;
      // With two members both ways lead to the other one; the second half takes the backward link.
      const bool forward = n == 2 && work.algorithm == plan::LineAlgorithm::bidirectional_ring ? move.half != 2 : move.to == (move.from + 1) % n;
      StepLoad& load = by_member[static_cast<std::size_t>(move.from)];
      (forward ? load.forward : load.backward) += bytes;
    }
    StepLoad busiest;
    for (const StepLoad& load : by_member) {
      busiest.forward = std::max(busiest.forward, load.forward);
      busiest.backward = std::max(busiest.backward, load.backward);
    }
    ++loads[busiest];
  }
  return loads;
}

SimTime step_time(const plan::GroupAxis& axis, const StepLoad& load, double speed) {
  engine::Simulator simulator;
  engine::FluidNetwork network(simulator);
  const bool switched = axis.link == fabric::Link::switched;
  const std::int64_t sharing = switched ? 1 : axis.stride;
  const SimTime latency = SimTime::from(axis.alpha * static_cast<double>(sharing));
  for (std::int64_t bytes : {load.forward, load.backward}) {
    if (bytes == 0) continue;
    const engine::LinkId link = network.add_link(axis.beta * speed);
    network.start({{{link, sharing}}, Bytes(static_cast<double>(bytes)), latency, BytesPerSecond(std::numeric_limits<double>::infinity()), 0}, {});
  }
  simulator.run();
  return simulator.now();
}

double speed_of(const plan::GroupAxis& axis, const fabric::Fabric& fabric, const SpeedUp& speed_up) {
  return speed_up.links[static_cast<std::size_t>(fabric.axes[static_cast<std::size_t>(axis.physical)].level)];
}

}  // namespace

SimTime collective_time(const plan::CollectivePlan& plan, Seconds overhead, const fabric::Fabric& fabric, const SpeedUp& speed_up) {
  if (plan.phases.empty()) return {};
  SimTime total = SimTime::from(overhead);
  for (const plan::Phase& phase : plan.phases) {
    SimTime slowest;
    for (const plan::Phase::Work& work : phase.works) {
      const plan::GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
      SimTime time;
      for (const auto& [load, count] : step_loads(plan, work)) time += step_time(axis, load, speed_of(axis, fabric, speed_up)) * count;
      slowest = max(slowest, time);
    }
    total += slowest;
  }
  return total;
}

SimTime permute_time(const plan::Permute& permute, const SpeedUp& speed_up) {
  return SimTime::from(permute.alpha + Bytes(static_cast<double>(permute.bytes)) / (permute.beta * speed_up.links[static_cast<std::size_t>(permute.level)]));
}

SimTime stage_reduce_time(const plan::StageReduce& reduce, const SpeedUp& speed_up) {
  const double others = static_cast<double>(reduce.stages.size()) - 1;
  return SimTime::from((reduce.alpha + Bytes(static_cast<double>(reduce.bytes)) / (reduce.beta * speed_up.links[static_cast<std::size_t>(reduce.level)])) * others);
}

}  // namespace tpusim::timing
