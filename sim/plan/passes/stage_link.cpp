// What a transfer between two pipeline stages costs: their places on the parts of the pipeline axis differ; it crosses
// the hops of every part in which they do, as fast as the slowest of them. Groups that stride over the same links share
// them.
#include <algorithm>

#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {

StageLink stage_link(const Lowering& l, std::int32_t from, std::int32_t to) {
  ir::MeshAxes axes;
  axes.push_back(static_cast<std::uint8_t>(l.out.pipeline_axis));
  const std::vector<GroupAxis> parts = group_axes(axes, l.in.placement, l.in.fabric);
  StageLink link;
  std::int64_t a = from, b = to;
  for (std::size_t i = parts.size(); i-- > 0;) {
    const GroupAxis& part = parts[i];
    std::int64_t steps = std::abs(a % part.size - b % part.size);
    a /= part.size;
    b /= part.size;
    if (steps == 0) continue;
    const bool switched = part.link == fabric::Link::switched;
    if (part.link == fabric::Link::ring) steps = std::min(steps, part.size - steps);
    const double hops = switched ? 1.0 : static_cast<double>(steps * part.stride);
    const BytesPerSecond beta = switched ? part.beta : part.beta / static_cast<double>(part.stride);
    link.alpha += hops * part.alpha;
    if (link.beta.value() == 0 || beta < link.beta) {
      link.beta = beta;
      link.level = l.in.fabric.axes[static_cast<std::size_t>(part.physical)].level;
    }
  }
  return link;
}

}  // namespace tpusim::plan::passes
