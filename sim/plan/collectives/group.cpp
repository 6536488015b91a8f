// The grid that a replica group forms on the machine, and where the data of a plan lies on it.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
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
      for (const fabric::Offer& offer : physical.offers) axis.offers.push_back(offer);
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
    const bool free = w.free_axes.contains(static_cast<std::int8_t>(i)) || (chunk == Move::every_chunk && i == w.axis);
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

Piece piece_of(std::int64_t part_elements, std::int32_t piece, std::int64_t pieces) {
  if (piece == 0) return {0, part_elements};
  const auto begin = [&](std::int64_t k) { return ceil_div(checked_mul(k, part_elements, "the elements"), pieces); };
  return {begin(piece - 1), begin(piece) - begin(piece - 1)};
}

LinkCost link_cost(const GroupAxis& axis, const Phase::Work& work) {
  if (work.offer < 0) return {Seconds(), axis.alpha, axis.beta};
  const fabric::Offer& offer = axis.offers[static_cast<std::size_t>(work.offer)];
  return {offer.base, offer.alpha, offer.beta};
}

Seconds base_seconds(const CollectivePlan& plan) {
  Seconds base;
  for (const Phase& phase : plan.phases)
    for (const Phase::Work& work : phase.works)
      base = std::max(base, link_cost(plan.axes[static_cast<std::size_t>(work.axis)], work).base);
  return base;
}

Seconds step_seconds(const GroupAxis& axis, const Phase::Work& work, double bytes) {
  const LinkCost cost = link_cost(axis, work);
  if (axis.link == fabric::Link::switched) return cost.alpha + Bytes(bytes) / cost.beta;
  // `stride` groups interleave on the same links, and a neighbour is `stride` hops away.
  const auto stride = static_cast<double>(axis.stride);
  return cost.alpha * stride + Bytes(bytes) * stride / cost.beta;
}

}  // namespace tpusim::plan
