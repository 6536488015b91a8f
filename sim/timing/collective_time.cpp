#include "sim/timing/collective_time.hpp"

#include <algorithm>
#include <array>

#include "sim/base/checked.hpp"
#include "sim/engine/fluid.hpp"

namespace tpusim::timing {

namespace {

// Bytes on the busiest link of each direction in one step.
struct StepLoad {
  std::int64_t forward = 0, backward = 0;
  auto operator<=>(const StepLoad&) const = default;
};

// The distinct steps of a work and how often each occurs: what plan::line_steps puts on the busiest link in each
// direction (tests compare the two), without writing the n (n-1) moves down.
struct StepKind {
  StepLoad load;
  std::int64_t count = 0;
};
std::array<StepKind, 2> step_kinds(const plan::CollectivePlan& plan, const plan::Phase::Work& work) {
  const std::int64_t n = plan.axes[static_cast<std::size_t>(work.axis)].size;
  const std::int64_t part = plan.part_elements[static_cast<std::size_t>(work.part)];
  const auto bytes = [&](std::uint8_t half) {
    return checked_mul(checked_mul(plan::half_elements(part, half), work.slots, "the bytes of a transfer"),
                       plan.element_bytes, "the bytes of a transfer");
  };
  switch (work.algorithm) {
    case plan::LineAlgorithm::ring:
      return {StepKind{{bytes(0), 0}, n - 1}, {}};
    case plan::LineAlgorithm::bidirectional_ring: {
      // Both ways at once; the opposite chunk of an even ring goes by halves in the last step. With two members both
      // ways lead to the other one, over a link each.
      if (n % 2 != 0) return {StepKind{{bytes(0), bytes(0)}, n / 2}, {}};
      return {StepKind{{bytes(0), bytes(0)}, n / 2 - 1}, StepKind{{bytes(1), bytes(2)}, 1}};
    }
    case plan::LineAlgorithm::line:  // until the last step some member still has a chunk to pass on, each way
      return {StepKind{{bytes(0), bytes(0)}, n - 1}, {}};
  }
  return {};
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
    network.start({{{link, sharing}},
                   Bytes(static_cast<double>(bytes)),
                   latency,
                   BytesPerSecond(std::numeric_limits<double>::infinity()),
                   0},
                  {});
  }
  simulator.run();
  return simulator.now();
}

double speed_of(const plan::GroupAxis& axis, const fabric::Fabric& fabric, const SpeedUp& speed_up) {
  return speed_up.links[static_cast<std::size_t>(fabric.axes[static_cast<std::size_t>(axis.physical)].level)];
}

}  // namespace

SimTime collective_time(const plan::CollectivePlan& plan, Seconds overhead, const fabric::Fabric& fabric,
                        const SpeedUp& speed_up) {
  if (plan.phases.empty()) return {};
  SimTime total = SimTime::from(overhead);
  for (const plan::Phase& phase : plan.phases) {
    SimTime slowest;
    for (const plan::Phase::Work& work : phase.works) {
      const plan::GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
      SimTime time;
      for (const StepKind& step : step_kinds(plan, work))
        if (step.count > 0) time += step_time(axis, step.load, speed_of(axis, fabric, speed_up)) * step.count;
      slowest = max(slowest, time);
    }
    total += slowest;
  }
  return total;
}

SimTime permute_time(const plan::Permute& permute, const SpeedUp& speed_up) {
  return SimTime::from(permute.alpha + Bytes(static_cast<double>(permute.bytes)) /
                                           (permute.beta * speed_up.links[static_cast<std::size_t>(permute.level)]));
}

SimTime stage_reduce_time(const plan::StageReduce& reduce, const SpeedUp& speed_up) {
  const double others = static_cast<double>(reduce.stages.size()) - 1;
  return SimTime::from((reduce.alpha + Bytes(static_cast<double>(reduce.bytes)) /
                                           (reduce.beta * speed_up.links[static_cast<std::size_t>(reduce.level)])) *
                       others);
}

}  // namespace tpusim::timing
