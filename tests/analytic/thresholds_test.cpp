// The tokens per chip at which the collectives of a block take as long as its compute: Austin et al., "How to Scale
// Your Model" (jax-ml/scaling-book), training chapter, on the ideal chip: peak C = 4.59e14 FLOP/s, one direction of a
// link W = 9e10 B/s, nothing else costs anything. A block is a plain MLP, D x F and F x D, all in bf16; T tokens a
// chip. "a" is C / (2 W) = 2550.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "tests/analytic/phase_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

constexpr double kPeak = 4.59e14, kLink = 9e10;
constexpr double kA = kPeak / (2 * kLink);
static_assert(kA == 2550);
constexpr std::int64_t kLayers = 2;

session::JobSpec mlp(const std::vector<strategies::RequestedAxis>& mesh, std::int64_t tokens_per_chip,
                     std::int64_t width, bool sequence_parallel, std::int64_t embed) {
  session::JobSpec spec;
  spec.model.family = models::Family::mlp;
  spec.model.layers = kLayers;
  spec.model.embed = embed;
  spec.model.mlp = width;
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
  return spec;
}

PhaseSplit split(const topologies::Shape& shape, const std::vector<strategies::RequestedAxis>& mesh,
                 std::int64_t tokens_per_chip, std::int64_t width, bool sequence_parallel = false,
                 std::int64_t embed = 8192) {
  const topologies::Cluster cluster = ideal_slice(shape);
  return split_by_phase(play(mlp(mesh, tokens_per_chip, width, sequence_parallel, embed), cluster), cluster);
}

double ratio(const PhasePart& part) {
  return part.all_busy() / part.compute;
}
double passes(const PhasePart& part) {
  return part.passes.at("tensor") / kLayers;
}

// Whether busy time crosses compute time within 1 % of `tokens`.
void check_crossing(double tokens, const std::function<double(std::int64_t)>& busy_over_compute) {
  CAPTURE(tokens);
  CHECK(busy_over_compute(static_cast<std::int64_t>(std::floor(tokens * 0.99))) > 1);
  CHECK(busy_over_compute(static_cast<std::int64_t>(std::ceil(tokens * 1.01))) < 1);
}

// A pass over the tensor axis of Y moves Y T tokens x D x 2 bytes: 2 Y T D (1 - 1/Y) / (2 W) = (Y-1) T D / W. The
// parameters of a block are 4 D F / Y bytes for each tensor group; over k axes, n = fsdp, one gather (or one
// reduce-scatter) of them takes 4 D F / Y (1 - 1/n) / (2 k W). A product costs 2 T D F / C for each chip, forward two
// of them, backward four. With g gathers and c passes, compute 2 p T D F / C for p products:
//   g 4 D F / Y (1 - 1/n) / (2 k W) + c (Y-1) T D / W = 2 p T D F / C
//   T = (2 g / p) a (1 - 1/n) / (k Y) / (1 - (c / p) (Y-1) a / F)
double threshold(double g, double c, double p, double n, double k, double y, double f) {
  return 2 * g / p * kA * (1 - 1 / n) / (k * y) / (1 - c / p * (y - 1) * kA / f);
}

}  // namespace

TEST_CASE("FSDP over k axes of size X is bound by compute from 2550/k (1 - X^-k) tokens a chip, forward alone too") {
  // Two gathers of the parameters and one reduce-scatter of the gradients, V = 4 D F bytes each: 3 V (1 - 1/n) / (2 k
  // W). Compute 12 T D F / C. Equal at T = C (1 - 1/n) / (2 k W). Forward alone: one gather, a third of the compute.
  for (std::int64_t x : {4, 8, 16})
    for (int k : {1, 2, 3}) {
      topologies::Shape shape = {1, 1, 1};
      std::int64_t n = 1;
      for (int i = 0; i < k; ++i) shape[static_cast<std::size_t>(i)] = x, n *= x;
      const double tokens = kA / k * (1 - std::pow(static_cast<double>(x), -k));
      const auto at = [&](std::int64_t t) { return split(shape, {{"fsdp", n}}, t, 16384); };
      check_crossing(tokens, [&](std::int64_t t) { return ratio(at(t).forward_and_backward()); });
      check_crossing(tokens, [&](std::int64_t t) { return ratio(at(t).forward()); });
    }
}

TEST_CASE("fsdp 256 + tensor 4 on 4x16x16, mlp 32768: forward is bound by compute from 414 tokens a chip") {
  // The book counts forward: one gather of both matrices over fsdp, two passes over tensor (the input gathered, the
  // output reduce-scattered, or one all-reduce), two products. T = 2550 (1 - 1/256) / (2 * 4) / (1 - 3 * 2550 / F).
  const double tokens = threshold(1, 2, 2, 256, 2, 4, 32768);
  CHECK(tokens == doctest::Approx(414).epsilon(0.001));
  for (bool sequence_parallel : {false, true})
    check_crossing(414, [&](std::int64_t t) {
      const PhasePart forward =
          split({4, 16, 16}, {{"fsdp", 256}, {"tensor", 4}}, t, 32768, sequence_parallel).forward();
      CHECK(passes(forward) == doctest::Approx(2));
      return ratio(forward);
    });
}

TEST_CASE("over the whole step that threshold is 376 tokens a chip, 394 with sequence parallelism") {
  // Three gathers and reduce-scatters of a block's parameters, six products. Without sequence parallelism four passes:
  // an all-reduce forward, one backward. With it five: gather and reduce-scatter forward, the same backward, and the
  // input, which was not kept, gathered again. The book doubles forward's two for backward (six in all would be 414
  // again), gathering the output's gradient for each of its two products; here one gather serves both.
  const double plain = threshold(3, 4, 6, 256, 2, 4, 32768), sequence = threshold(3, 5, 6, 256, 2, 4, 32768);
  CHECK(plain == doctest::Approx(376).epsilon(0.001));
  CHECK(sequence == doctest::Approx(394).epsilon(0.001));
  CHECK(threshold(3, 6, 6, 256, 2, 4, 32768) == doctest::Approx(414).epsilon(0.001));
  for (bool sequence_parallel : {false, true})
    check_crossing(sequence_parallel ? sequence : plain, [&](std::int64_t t) {
      const PhasePart step =
          split({4, 16, 16}, {{"fsdp", 256}, {"tensor", 4}}, t, 32768, sequence_parallel).forward_and_backward();
      CHECK(passes(step) == doctest::Approx(sequence_parallel ? 5 : 4));
      return ratio(step);
    });
}

TEST_CASE("the best mix of fsdp and tensor follows the book's 2 a^2 / F where its limits are evaluated for their n") {
  // Book: with fsdp over two axes and tensor over one the smallest threshold is 4 a^2 / (2 F), at Y = F / (2 a):
  // F = 32768: 397 at Y = 6.4; F = 13824 (LLaMA 2 13B, its question 3): 940.7 at Y = 2.7. The book has Y where each
  // ring has Y - 1, and no 1 - 1/n; Y is a whole number here. Forward, as above.
  CHECK(2 * kA * kA / 32768 == doctest::Approx(397).epsilon(0.001));
  CHECK(2 * kA * kA / 13824 == doctest::Approx(940.7).epsilon(0.001));
  struct Row {
    std::int64_t embed, mlp, tensor;
    double tokens;
  };
  for (const Row& row : {Row{8192, 32768, 8, 348.7}, Row{5120, 13824, 2, 778.6}, Row{5120, 13824, 4, 711.0}}) {
    CHECK(threshold(1, 2, 2, 256, 2, static_cast<double>(row.tensor), static_cast<double>(row.mlp)) ==
          doctest::Approx(row.tokens).epsilon(0.001));
    check_crossing(row.tokens, [&](std::int64_t t) {
      return ratio(
          split({row.tensor, 16, 16}, {{"fsdp", 256}, {"tensor", row.tensor}}, t, row.mlp, true, row.embed).forward());
    });
  }
}

TEST_CASE("tensor parallelism alone is bound by compute while Y - 1 < F / 2550, 11.24 for an MLP of 28,672") {
  // Book: Y < F / 2550 for one axis. Forward: 2 (Y-1) T D / W against 4 T D F / C, whatever T: their ratio is (Y-1) a /
  // F.
  CHECK(28672 / kA == doctest::Approx(11.24).epsilon(0.001));
  for (std::int64_t y : {2, 8, 14, 16})
    for (std::int64_t tokens : {64, 512})
      CHECK(ratio(split({y, 1, 1}, {{"tensor", y}}, tokens, 28672, true).forward()) ==
            doctest::Approx(static_cast<double>(y - 1) * kA / 28672).epsilon(1e-4));
}

TEST_CASE("732 and 468 tokens a chip over three axes are bound by communication, 468 with tensor 4 by compute") {
  // Book, training, question 3: 3e6 tokens on 16x16x16 are 732 a chip, below 850. Applied training: 4,194,304 on 8,960
  // chips are 468: fsdp alone takes 850 / 468 times as long as it computes; with fsdp 2048 x tensor 4, F = 28672, its
  // limit is 453.6 and it is bound by compute (here on 8,192 chips, fsdp over the two long axes, whose form evaluated
  // for its n is 434.5). Axes of 32 and 64 run in lockstep: shards x (63 + 32 x 63) instead of 2047, half of them each.
  // The embedding's width cancels out.
  CHECK(ratio(split({16, 16, 16}, {{"fsdp", 4096}}, 732, 13824, false, 4096).forward_and_backward()) ==
        doctest::Approx(850 * (1 - 1.0 / 4096) / 732).epsilon(0.001));
  CHECK(ratio(split({16, 16, 16}, {{"fsdp", 4096}}, 468, 28672).forward_and_backward()) ==
        doctest::Approx(850 * (1 - 1.0 / 4096) / 468).epsilon(0.001));
  CHECK(threshold(1, 2, 2, 2048, 2, 4, 28672) == doctest::Approx(434.5).epsilon(0.001));
  const double mixed = ratio(split({4, 32, 64}, {{"fsdp", 2048}, {"tensor", 4}}, 468, 28672, true).forward());
  CHECK(mixed < 1);
  CHECK(mixed == doctest::Approx(kA / (8.0 * 468) * (63 + 32 * 63) / 2048 + 3 * kA / 28672).epsilon(0.001));
}

TEST_CASE("data parallelism between pods is hidden from C / W_dcn (1 - 1/n) tokens a pod") {
  // Book, training: 8,192 chips of 4.5e14 FLOP/s, 2,000 hosts of 2.5e10 B/s: 3.69e18 / 5e13 = 73,728 (printed as
  // 76,000 with 3.8e18). The gradient of a block, 4 D F bytes in all, is all-reduced over n pods by the chips of a pod
  // together: 2 x 4 D F (1 - 1/n) / W_dcn. Backward computes 8 B D F / C for B tokens a pod. Equal at B = C / W_dcn (1
  // - 1/n), whatever the size of the pod: here 64 chips, each with its share of 5e13 / 8192.
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip("ideal-v5p");
  request.chip.peak_bf16->value = FlopsPerSecond(4.5e14);
  request.chip.host_nic_rate->value = BytesPerSecond(4 * 5e13 / 8192);  // 4 chips a host
  request.slice_shape = {4, 4, 4};
  const double limit = 8192 * 4.5e14 / 5e13;
  CHECK(limit == doctest::Approx(76000).epsilon(0.08));
  for (std::int64_t n : {2, 4}) {
    request.slices = n;
    DiagnosticSink sink;
    const topologies::Cluster cluster = *topologies::build(request, sink);
    check_crossing(limit * (1 - 1 / static_cast<double>(n)) / 64, [&](std::int64_t tokens) {
      session::JobSpec spec = mlp({{"data", n}, {"fsdp", 64}}, tokens, 16384, false, 8192);
      const PhaseSplit step = split_by_phase(play(spec, cluster), cluster);
      const PhasePart all =
          step.over({ir::Phase::forward, ir::Phase::recompute, ir::Phase::backward, ir::Phase::update});
      return all.busy_over("data") / step.over({ir::Phase::recompute, ir::Phase::backward}).compute;
    });
  }
}
