// The grid that a replica group forms on the machine, and where the data of a plan lies on it.
#include "sim/base/check.hpp"
#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

std::vector<GroupAxis> group_axes(const ir::MeshAxes& axes, const spmd::Placement& placement,
                                  const fabric::Fabric& fabric) {
  std::vector<GroupAxis> out;
  for (std::uint8_t mesh_axis : axes) {
    for (const spmd::AxisPart& part : placement.parts[mesh_axis]) {
      if (part.size == 1) continue;
      const fabric::PhysicalAxis& physical = fabric.axes[static_cast<std::size_t>(part.physical)];
      GroupAxis axis;
      axis.physical = part.physical;
      axis.size = part.size;
      axis.stride = part.stride;
      axis.physical_size = physical.size;
      axis.alpha = physical.alpha;
      axis.beta = physical.beta;
      if (!out.empty() && out.back().physical == axis.physical && out.back().stride == axis.stride * axis.size) {
        out.back().size *= axis.size;
        out.back().stride = axis.stride;
      } else {
        out.push_back(axis);
      }
    }
  }
  for (GroupAxis& axis : out) {
    const fabric::Link link = fabric.axes[static_cast<std::size_t>(axis.physical)].link;
    const bool closes = axis.size * axis.stride == axis.physical_size;
    axis.link = link == fabric::Link::ring && !closes ? fabric::Link::line : link;
  }
  return out;
}

std::vector<std::int32_t> chunk_slots(const CollectivePlan& plan, std::size_t phase, std::size_t work,
                                      std::int32_t member, std::int32_t chunk) {
  const Phase::Work& w = plan.phases[phase].works[work];
  const int k = static_cast<int>(plan.axes.size());
  InlineVector<std::int32_t, 8> coordinate;
  for (int i = 0; i < k; ++i) coordinate.push_back(0);
  std::int32_t rest = member;
  for (int i = k - 1; i >= 0; --i) {
    const auto size = static_cast<std::int32_t>(plan.axes[static_cast<std::size_t>(i)].size);
    coordinate[static_cast<std::size_t>(i)] = rest % size;
    rest /= size;
  }
  coordinate[static_cast<std::size_t>(w.axis)] = chunk;
  std::vector<std::int32_t> slots = {0};
  for (int i = 0; i < k; ++i) {
    const auto size = static_cast<std::int32_t>(plan.axes[static_cast<std::size_t>(i)].size);
    const bool free = w.free_axes.contains(static_cast<std::int8_t>(i));
    std::vector<std::int32_t> next;
    for (std::int32_t slot : slots) {
      if (free)
        for (std::int32_t c = 0; c < size; ++c) next.push_back(slot * size + c);
      else
        next.push_back(slot * size + coordinate[static_cast<std::size_t>(i)]);
    }
    slots = std::move(next);
  }
  return slots;
}

std::int64_t half_elements(std::int64_t part_elements, std::uint8_t half) {
  const std::int64_t first = (part_elements + 1) / 2;
  return half == 0 ? part_elements : half == 1 ? first : part_elements - first;
}

Seconds step_seconds(const GroupAxis& axis, double bytes) {
  if (axis.link == fabric::Link::switched) return axis.alpha + Bytes(bytes) / axis.beta;
  // `stride` groups interleave on the same links, and a neighbour is `stride` hops away.
  const auto stride = static_cast<double>(axis.stride);
  return axis.alpha * stride + Bytes(bytes) * stride / axis.beta;
}

}  // namespace tpusim::plan
