// Every collective algorithm of the full plan, alone and small, against the definition of its collective.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/random.hpp"
#include "sim/numeric/transport.hpp"
#include "sim/session/verify/parts.hpp"

namespace tpusim::session {

namespace {

using Shape = std::vector<std::tuple<std::size_t, std::int32_t, std::int32_t, int, bool>>;

// What makes two plans the same algorithm, whatever their sizes.
Shape shape_of(const plan::CollectivePlan& plan) {
  Shape out;
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (const plan::Phase::Work& w : plan.phases[p].works)
      out.emplace_back(p, w.part, w.axis, static_cast<int>(w.algorithm), w.reduce);
  return out;
}

std::int64_t longest_pipeline(const plan::CollectivePlan& plan) {
  std::int64_t pieces = 1;
  for (const plan::Phase& phase : plan.phases)
    for (const plan::Phase::Work& work : phase.works) pieces = std::max(pieces, work.pieces);
  return pieces;
}

// The plan on at most 4 members of each axis, in a pipeline short enough to check and long enough to have a first, a
// middle and a last piece; on 2 of some axes where there are many. 7 elements a part: halves are unequal.
plan::CollectivePlan small_copy(plan::CollectivePlan plan) {
  std::vector<std::int64_t> sizes;
  // An even ring halves its opposite chunk and an odd one does not: keep the parity.
  for (const plan::GroupAxis& axis : plan.axes)
    sizes.push_back(axis.size <= 4 ? axis.size : axis.size % 2 == 0 ? 4 : 3);
  std::int64_t members = 1;
  for (const std::int64_t size : sizes) members *= size;
  for (std::int64_t& size : sizes)
    if (members > 256 && size == 4) size = 2, members /= 2;
  const std::int64_t pieces = std::min<std::int64_t>(3, longest_pipeline(plan));
  plan.element_bytes = 8;  // f64
  return plan::resized(plan::with_pieces(plan, pieces), sizes, 7);
}

ir::TensorType flat(std::int64_t size) {
  ir::TensorType type;
  type.dtype = ir::DType::f64;
  type.shape.push_back({{ir::Axis::batch, 0}, size, size});
  return type;
}

// "" or what is wrong. Small integers, so that sums are exact in any order.
std::string run_small(const plan::CollectivePlan& plan, std::uint64_t seed, plan::LineSteps steps_of) {
  const std::int64_t n = plan.members, shard = plan.shard_elements;
  const bool gather = plan.kind == plan::CollectiveKind::all_gather,
             scatter = plan.kind == plan::CollectiveKind::reduce_scatter;
  Random random(seed);
  std::vector<numeric::Tensor> operands;
  for (std::int64_t m = 0; m < n; ++m) {
    operands.emplace_back(flat(gather ? shard : n * shard));
    for (std::int64_t i = 0; i < operands.back().size(); ++i)
      operands.back().set(i, static_cast<double>(random.below(9)) - 4);
  }
  std::vector<std::vector<const numeric::Tensor*>> in;
  for (const numeric::Tensor& t : operands) in.push_back({&t});
  ir::OpKind op;
  const ir::DimName dim{ir::Axis::batch, 0};
  if (gather)
    op = ir::AllGather{dim, {}};
  else if (scatter)
    op = ir::ReduceScatter{dim, {}};
  else
    op = ir::AllReduce{plan.reduction, {}};
  std::vector<std::vector<numeric::Tensor>> results;
  const std::int64_t bytes =
      numeric::Transport(plan, steps_of).run({op}, in, {flat(scatter ? shard : n * shard)}, seed, results);
  if (bytes != plan.total_bytes) return fmt::format("{} bytes were moved, {} are charged", bytes, plan.total_bytes);
  for (std::int64_t m = 0; m < n; ++m)
    for (std::int64_t i = 0; i < (scatter ? shard : n * shard); ++i) {
      double expected = 0;
      const std::int64_t at = scatter ? m * shard + i : i;
      if (gather) {
        expected = operands[static_cast<std::size_t>(i / shard)].at(i % shard);
      } else {
        for (std::int64_t k = 0; k < n; ++k) {
          const double x = operands[static_cast<std::size_t>(k)].at(at);
          expected = k == 0 ? x : plan.reduction == ir::Reduction::sum ? expected + x : std::max(expected, x);
        }
      }
      if (results[static_cast<std::size_t>(m)][0].at(i) != expected)
        return fmt::format("member {} ends with a wrong entry {}", m, i);
    }
  return "";
}

}  // namespace

Finding check_collectives(const plan::StepProgram& full, std::uint64_t seed, plan::LineSteps steps_of) {
  Finding out;
  std::set<std::tuple<int, int, std::vector<std::int64_t>, Shape>> seen;
  for (const plan::CollectivePlan& plan : full.plans) {
    if (plan.members == 1) continue;
    const plan::CollectivePlan small = small_copy(plan);
    std::vector<std::int64_t> sizes;
    for (const plan::GroupAxis& axis : small.axes) sizes.push_back(axis.size);
    if (!seen.emplace(static_cast<int>(plan.kind), static_cast<int>(plan.reduction), sizes, shape_of(plan)).second)
      continue;
    std::string wrong = run_small(small, seed, steps_of);
    if (wrong.empty() && small.members <= 64) wrong = plan::verify(small, steps_of);
    ++out.compared;
    if (!wrong.empty() && out.culprit.empty()) {
      out.error = 1;
      out.culprit = fmt::format("collective {} ({}): {}", plan::name_of(plan.kind), plan.algorithm, wrong);
    }
  }
  return out;
}

}  // namespace tpusim::session
