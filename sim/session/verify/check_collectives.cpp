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

const plan::CollectivePlan* same_shape(const std::vector<plan::Candidate>& all, const plan::CollectivePlan& plan) {
  for (const plan::Candidate& c : all)
    if (shape_of(c.plan) == shape_of(plan)) return &c.plan;
  return nullptr;
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
    std::vector<plan::GroupAxis> axes = plan.axes;
    std::vector<std::int64_t> sizes;
    for (plan::GroupAxis& axis : axes) {
      // An even ring halves its opposite chunk and an odd one does not: keep the parity.
      axis.size = axis.size <= 4 ? axis.size : axis.size % 2 == 0 ? 4 : 3;
      axis.physical_size = axis.size * axis.stride;
      sizes.push_back(axis.size);
    }
    if (!seen.emplace(static_cast<int>(plan.kind), static_cast<int>(plan.reduction), sizes, shape_of(plan)).second)
      continue;
    std::int64_t members = 1;
    for (std::int64_t s : sizes) members *= s;
    const std::vector<plan::Candidate> all = plan::candidates(plan.kind, plan.reduction, members * 12, 8, axes);
    // A part without elements in the full plan (a scalar) leaves works out that the small one has; then the plan itself
    // is small enough.
    const plan::CollectivePlan* small = same_shape(all, plan);
    std::vector<plan::Candidate> scalar;
    if (small == nullptr) {
      scalar = plan::candidates(plan.kind, plan.reduction, plan.shard_elements * members, 8, axes);
      small = same_shape(scalar, plan);
    }
    // A pipeline short enough to check, long enough to have a first, a middle and a last piece.
    plan::CollectivePlan piped;
    if (small != nullptr && longest_pipeline(plan) > 1) {
      piped = plan::with_pieces(*small, std::min<std::int64_t>(3, longest_pipeline(plan)));
      small = &piped;
    }
    std::string wrong = small == nullptr ? "no small plan has its shape" : run_small(*small, seed, steps_of);
    if (wrong.empty() && members <= 64) wrong = plan::verify(*small, steps_of);
    ++out.compared;
    if (!wrong.empty() && out.culprit.empty()) {
      out.error = 1;
      out.culprit = fmt::format("collective {} ({}): {}", plan::name_of(plan.kind), plan.algorithm, wrong);
    }
  }
  return out;
}

}  // namespace tpusim::session
