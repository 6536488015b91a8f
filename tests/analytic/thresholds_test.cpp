// The tokens per chip at which the collectives of a block take as long as its compute: Austin et al., "How to Scale
// Your Model" (jax-ml/scaling-book), training chapter, on the ideal chip: peak C = 4.59e14 FLOP/s, one direction of a
// link W = 9e10 B/s, nothing else costs anything. A block is a plain MLP, D x F and F x D, all in bf16; T tokens a
// chip.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "tests/analytic/plan_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

constexpr double kPeak = 4.59e14, kLink = 9e10;

struct Share {
  double fsdp = 0, tensor = 0, compute = 0;  // seconds a step: busy on each axis, computing
  double tensor_passes = 0;                  // collectives over the tensor axis for each block, an all-reduce being two
};

Share share(const topologies::Shape& shape, const std::vector<strategies::RequestedAxis>& mesh,
            std::int64_t tokens_per_chip, std::int64_t mlp, bool sequence_parallel = false) {
  session::JobSpec spec;
  spec.model.family = models::Family::mlp;
  spec.model.layers = 2;
  spec.model.embed = 8192;
  spec.model.mlp = mlp;
  spec.model.gated_mlp = false;
  spec.model.activation = models::Activation::relu;
  std::int64_t replicas = 1, tensor = 1;
  for (const strategies::RequestedAxis& axis : mesh) (axis.name == "tensor" ? tensor : replicas) *= axis.size;
  spec.sequence_length = tokens_per_chip * tensor;  // one sequence for each replica
  spec.global_batch = replicas;
  spec.microbatch = 1;
  spec.mesh = mesh;
  spec.strategies.sequence_parallel = sequence_parallel;
  spec.gradient_dtype = ir::DType::bf16;
  spec.optimizer.kind = ir::Optimizer::sgd;
  const Played p = play(spec, ideal_slice(shape));
  Share out;
  out.compute = p.timing.compute.value();
  const auto tensor_axes = p.plan.program.mesh.find("tensor");
  for (std::size_t i = 0; i < p.plan.program.collectives.size(); ++i) {
    const plan::Collective& c = p.plan.program.collectives[i];
    const timing::TransferTotals& t = p.timing.transfers[i];
    const bool over_tensor = !tensor_axes.empty() && c.mesh_axes == tensor_axes;
    (over_tensor ? out.tensor : out.fsdp) += t.busy.value();
    const bool twice = p.plan.program.plans[static_cast<std::size_t>(c.plan)].kind == plan::CollectiveKind::all_reduce;
    if (over_tensor) out.tensor_passes += t.count * (twice ? 2 : 1) / static_cast<double>(spec.model.layers);
  }
  return out;
}

// Whether busy time crosses compute time within 1 % of `tokens`.
void check_crossing(double tokens, const std::function<double(std::int64_t)>& busy_over_compute) {
  CAPTURE(tokens);
  CHECK(busy_over_compute(static_cast<std::int64_t>(std::floor(tokens * 0.99))) > 1);
  CHECK(busy_over_compute(static_cast<std::int64_t>(std::ceil(tokens * 1.01))) < 1);
}

}  // namespace

TEST_CASE("FSDP over k axes of size X is bound by compute from 2550/k (1 - X^-k) tokens a chip") {
  // Two gathers of the parameters and one reduce-scatter of the gradients, V = 4 D F bytes each: 3 V (1 - 1/n) / (2 k
  // W). Compute 12 T D F / C. Equal at T = C (1 - 1/n) / (2 k W), and C / (2 W) = 2550.
  static_assert(kPeak / (2 * kLink) == 2550);
  for (std::int64_t x : {4, 8, 16})
    for (int k : {1, 2, 3}) {
      topologies::Shape shape = {1, 1, 1};
      std::int64_t n = 1;
      for (int i = 0; i < k; ++i) shape[static_cast<std::size_t>(i)] = x, n *= x;
      check_crossing(2550.0 / k * (1 - std::pow(static_cast<double>(x), -k)), [&](std::int64_t tokens) {
        const Share s = share(shape, {{"fsdp", n}}, tokens, 16384);
        return s.fsdp / s.compute;
      });
    }
}

TEST_CASE(
    "fsdp 256 + tensor 4 on 4x16x16, mlp 32768: the threshold for the collectives that the plan has, and the book's "
    "414 for the book's") {
  // Parameters of a block are 4 D F / 4 = D F bytes a tensor group: 3 D F (1 - 1/256) / (2 * 2 W). A pass over the
  // tensor axis moves 4 T tokens x D x 2 bytes: 8 T D (1 - 1/4) / (2 W) = 3 T D / W. Compute 12 T D F / C. With c
  // passes a block the two sums are equal at
  //   T = [3 F (1 - 1/256) / (4 W)] / (12 F / C - 3 c / W):   c = 4: 376.0   c = 5: 394.0   c = 6: 414.2
  // c = 4 without sequence parallelism (an all-reduce forward, one backward). c = 5 with it: gather and reduce-scatter
  // forward, the same backward, and the input, which was not kept, gathered again. The book doubles forward's two for
  // backward (4 in all there), gathering the output's gradient for each of the two products; here one gather serves
  // both.
  const double f = 32768;
  const auto threshold = [&](double c) {
    return 3 * f * (1 - 1.0 / 256) / (4 * kLink) / (12 * f / kPeak - 3 * c / kLink);
  };
  const std::vector<strategies::RequestedAxis> mesh = {{"fsdp", 256}, {"tensor", 4}};
  const auto measured = [&](bool sequence_parallel, double passes, double counted) {
    check_crossing(threshold(counted), [&](std::int64_t tokens) {
      const Share s = share({4, 16, 16}, mesh, tokens, 32768, sequence_parallel);
      CHECK(s.tensor_passes == doctest::Approx(passes));
      return (s.fsdp + s.tensor * counted / passes) / s.compute;
    });
  };
  measured(false, 4, 4);
  measured(true, 5, 5);
  CHECK(threshold(6) == doctest::Approx(414).epsilon(0.001));
  measured(true, 5, 6);  // the sixth pass as long as each of the five that were played
}
