#include "sim/timing/collective_time.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/checked.hpp"
#include "sim/engine/fluid.hpp"

namespace tpusim::timing {

namespace {

SimTime step_time(const plan::GroupAxis& axis, const plan::LinkCost& cost, std::int64_t forward, std::int64_t backward,
                  double speed) {
  engine::Simulator simulator;
  engine::FluidNetwork network(simulator);
  const bool switched = axis.link == fabric::Link::switched;
  const std::int64_t sharing = switched ? 1 : axis.stride;
  const SimTime latency = SimTime::from(cost.alpha * static_cast<double>(sharing));
  for (std::int64_t bytes : {forward, backward}) {
    if (bytes == 0) continue;
    const engine::LinkId link = network.add_link(cost.beta * speed);
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
  SimTime total = SimTime::from(overhead + plan::base_seconds(plan));
  for (const plan::Phase& phase : plan.phases) {
    SimTime slowest;
    for (const plan::Phase::Work& work : phase.works) {
      const plan::GroupAxis& axis = plan.axes[static_cast<std::size_t>(work.axis)];
      SimTime time;
      const plan::LinkCost cost = plan::link_cost(axis, work);
      const auto bytes = [&](std::int64_t elements) {
        return checked_mul(checked_mul(elements, work.slots, "the bytes of a transfer"), plan.element_bytes,
                           "the bytes of a transfer");
      };
      for (const plan::StepLoad& step : plan::step_loads(work.algorithm, axis.size, work.pieces,
                                                         plan.part_elements[static_cast<std::size_t>(work.part)]))
        time += step_time(axis, cost, bytes(step.forward), bytes(step.backward), speed_of(axis, fabric, speed_up)) *
                step.count;
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
