// Worked examples of the literature. Source of each: "book" is Austin et al., "How to Scale Your Model"
// (github.com/jax-ml/scaling-book, commit 0819a7d), with its chapter. Where the book rounds a sum to its limit (1 - 1/n
// becomes 1, latency vanishes), the limit's formula is evaluated for the example's own n.
#include <doctest/doctest.h>

#include <cmath>

#include "models/presets.hpp"
#include "sim/timing/collective_time.hpp"
#include "tests/analytic/plan_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;
using plan::CollectiveKind;

namespace {

topologies::Chip chip_with(double peak, double bandwidth) {
  topologies::Chip c = *topologies::find_chip("ideal-v5p");
  c.peak_bf16->value = FlopsPerSecond(peak);
  c.hbm_bandwidth.value = BytesPerSecond(bandwidth);
  return c;
}

// [m,k] x [k,n] with bf16 operands and result, weights of `weight_bytes` each.
plan::Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t weight_bytes = 2) {
  plan::Kernel out;
  out.ops.push_back(ir::OpId(0));
  out.cost.products.push_back({1, m, n, k, 1});
  out.bytes_read = 2 * m * k + weight_bytes * n * k;
  out.bytes_written = 2 * m * n;
  return out;
}

double collective(CollectiveKind kind, double bytes, std::int64_t n, fabric::Link link, double one_way, double hop) {
  plan::GroupAxis axis;
  axis.size = axis.physical_size = n;
  axis.link = link;
  axis.alpha = Seconds(hop);
  axis.beta = BytesPerSecond(one_way);
  fabric::Fabric fabric;
  fabric.axes.resize(1);
  const plan::CollectivePlan p =
      plan::choose(kind, ir::Reduction::sum, static_cast<std::int64_t>(bytes / 2), 2, {axis});
  return timing::collective_time(p, Seconds(0), fabric).seconds().value();
}

// Rows of the weights that a batch must have before a product is bound by compute.
double critical_batch(double peak, double bandwidth, std::int64_t weight_bytes) {
  const topologies::Chip chip = chip_with(peak, bandwidth);
  std::int64_t low = 1, high = 4096;  // matrix >= memory from the answer on
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    const timing::KernelTime t = timing::kernel_time(product(middle, 1 << 20, 1 << 20, weight_bytes), chip);
    if (t.matrix.value() >= t.hbm.value())
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<double>(low);
}

}  // namespace

TEST_CASE("10^12 FLOP take 1.01 ms on an H100 and 1.1 ms on a v6e") {
  // Book, roofline: 1e12 / 9.89e14, 1e12 / 9.1e14. 10^12 = 2 x 500 x 10^9.
  plan::Kernel k = product(500, 1'000'000, 1000);
  CHECK(timing::kernel_time(k, chip_with(9.89e14, 1e30)).total().value() == doctest::Approx(0.00101).epsilon(0.005));
  CHECK(timing::kernel_time(k, chip_with(9.1e14, 1e30)).total().value() == doctest::Approx(0.0011).epsilon(0.005));
}

TEST_CASE("reading 200e9 bf16 parameters over 32 v4 chips takes 10.2 ms, a product on 8 TPU v2 cores 95.6 ms") {
  // Book, tpus, question 1: 4e11 / 32 / 1.23e12. Profiling chapter: 2 x 32 x 1024 x 8192 x 32768 FLOP over 8 cores of
  // 23e12.
  plan::Kernel load;
  load.ops.push_back(ir::OpId(0));
  load.bytes_read = 400'000'000'000 / 32;
  CHECK(timing::kernel_time(load, chip_with(1e30, 1.23e12)).total().value() == doctest::Approx(0.01016).epsilon(0.001));
  CHECK(timing::kernel_time(product(32 * 1024, 32768, 8192 / 8), chip_with(2.3e13, 1e30)).total().value() ==
        doctest::Approx(0.0956).epsilon(0.001));
}

TEST_CASE("a batched product of int8 vectors and matrices does 2 FLOPs a byte, whatever the batch") {
  // Book, roofline, question 4: [B,D] x [B,D,F] -> [B,F]: 2 B D F over B D + B D F + B F bytes.
  for (std::int64_t b : {1, 64, 1024}) {
    plan::Kernel k;
    k.ops.push_back(ir::OpId(0));
    k.cost.products.push_back({b, 1, 4096, 8192, 1});
    k.bytes_read = b * 8192 + b * 8192 * 4096;
    k.bytes_written = b * 4096;
    const timing::KernelTime t = timing::kernel_time(k, chip_with(1e14, 1e12));
    CHECK(t.matrix.value() * 1e14 / (t.hbm.value() * 1e12) == doctest::Approx(2).epsilon(0.001));
  }
}

TEST_CASE("a v5e pod is 256 chips on 32 hosts with 5.04e16 FLOP/s and 4,096 GiB, a v5p pod 8,960 on 2,240 hosts") {
  // Book, tpus, question 2: 16 x 16 x 1.97e14; 16 x 20 x 28 x 4.59e14 = 4.1e18, 96 GiB each = 860 TiB / 1.024.
  const auto pod = [](const char* chip, const topologies::Shape& shape) {
    topologies::ClusterRequest request;
    request.chip = *topologies::find_chip(chip);
    request.chip.slices.max_chips = 1 << 20;  // the pod, not what one job may have of it
    request.slice_shape = shape;
    DiagnosticSink sink;
    return *topologies::build(request, sink);
  };
  const topologies::Cluster v5e = pod("tpu-v5e", {16, 16}), v5p = pod("tpu-v5p", {16, 20, 28});
  const auto peak = [](const topologies::Cluster& c) {
    return static_cast<double>(c.chips()) * c.chip.peak_bf16->value.value();
  };
  const auto gib = [](const topologies::Cluster& c) {
    return static_cast<double>(c.chips()) * c.chip.hbm_capacity.value.value() / 1073741824;
  };
  CHECK(v5e.chips() == 256);
  CHECK(v5e.hosts == 32);
  CHECK(peak(v5e) == doctest::Approx(5.04e16).epsilon(0.001));
  CHECK(gib(v5e) == 4096);
  CHECK(v5p.chips() == 8960);
  CHECK(v5p.hosts == 2240);
  CHECK(peak(v5p) == doctest::Approx(4.1e18).epsilon(0.005));
  CHECK(gib(v5p) == 860160);
}

TEST_CASE("a product is bound by compute from 240 tokens on a v5e, 298 on an H100, 120 with int8 weights") {
  // Book, roofline and its questions 2 and 5: peak / bandwidth; 1.97e14 / 8.2e11 = 240, 1e15 / 3.35e12 = 298, half of
  // 240 for half the bytes.
  CHECK(critical_batch(1.97e14, 8.2e11, 2) == doctest::Approx(240).epsilon(0.005));
  CHECK(critical_batch(1e15, 3.35e12, 2) == doctest::Approx(298).epsilon(0.005));
  CHECK(critical_batch(1.97e14, 8.2e11, 1) == doctest::Approx(120).epsilon(0.02));
}

TEST_CASE("a product whose contraction is split over two chips is bound by compute from 8755 columns on") {
  // Book, roofline: B D F / 1.97e14 against copying the partial sums, 2 B F / 4.5e10.
  const std::int64_t b = 512, f = 4096;
  plan::Permute copy;
  copy.bytes = 2 * b * f;
  copy.beta = BytesPerSecond(4.5e10);
  const auto ratio = [&](std::int64_t d) {
    return timing::kernel_time(product(b, f, d / 2), chip_with(1.97e14, 1e30)).total().value() /
           timing::permute_time(copy).seconds().value();
  };
  CHECK(ratio(8738) < 1);  // 8755 (1 - 0.002)
  CHECK(ratio(8774) > 1);
}

TEST_CASE(
    "gathering bf16[2048,8192] over an axis of 4 of a v5e takes 3/4 of the limit's 373 us on a ring, 559 us on a "
    "line") {
  // Book, sharding, quiz 2: V = 33,554,432 B, W = 4.5e10 one way. Ring: limit V / 2W = 372.8 us, for n = 4 times 3/4.
  // Line: 3 V/4 / W = 559 us.
  CHECK(collective(CollectiveKind::all_gather, 33554432, 4, fabric::Link::ring, 4.5e10, 0) ==
        doctest::Approx(33554432 / 9e10 * 0.75).epsilon(1e-6));
  CHECK(collective(CollectiveKind::all_gather, 33554432, 4, fabric::Link::line, 4.5e10, 0) ==
        doctest::Approx(0.000559).epsilon(0.01));
}

TEST_CASE("a small gather is the latency of its hops: 3 us over a line of 4, 2 us over a ring of 4") {
  // Book, sharding, quiz 2 and question 3: 1 us a hop. bf16[256,256] is 131,072 B, whose 3 x 32,768 / 4.5e10 = 2.2 us
  // the book leaves out.
  const double line = collective(CollectiveKind::all_gather, 131072, 4, fabric::Link::line, 4.5e10, 1e-6);
  CHECK(line - 3 * 32768 / 4.5e10 == doctest::Approx(3e-6).epsilon(1e-5));
  CHECK(collective(CollectiveKind::all_gather, 256, 4, fabric::Link::ring, 4.5e10, 1e-6) ==
        doctest::Approx(2e-6).epsilon(0.1));
}

TEST_CASE("gathers and sums of bf16[1024,4096] on a v4 4x4x4 take 3/4 of the limits 23.3 us and 11.65 us") {
  // Book, sharding, question 2. Gather over X of [B_X, D_Y]: V = 2 B D / 4, limit V / 9e10. All-reduce over Z of a
  // [B/4, D/4] shard: 2 V / 9e10.
  const double v = 2.0 * 1024 * 4096 / 4;
  CHECK(collective(CollectiveKind::all_gather, v, 4, fabric::Link::ring, 4.5e10, 0) ==
        doctest::Approx(2.33e-5 * 0.75).epsilon(0.02));
  CHECK(collective(CollectiveKind::all_reduce, v / 4, 4, fabric::Link::ring, 4.5e10, 0) ==
        doctest::Approx(1.165e-5 * 0.75).epsilon(0.03));
}

TEST_CASE("a one-way gather puts N^2 (1 - 1/D) scalars on each link") {
  // Book, sharding, question 10. Each of D members sends on its one link.
  plan::GroupAxis axis;
  axis.size = axis.physical_size = 8;
  axis.beta = BytesPerSecond(1);
  for (plan::Candidate& c : plan::candidates(CollectiveKind::all_gather, ir::Reduction::sum, 512 * 512, 1, {axis}))
    if (c.plan.phases[0].works[0].algorithm == plan::LineAlgorithm::ring)
      CHECK(c.plan.bytes_per_member() == 512.0 * 512 * (1 - 1.0 / 8));
}

TEST_CASE("parameters are counted as the book and the papers count them, plus the norms") {
  // Book, transformers, question 1: D 4096, F 16384, V 32000, 64 layers, full heads: 17,442,275,328 with one norm a
  // layer; here two, and a last.
  models::ModelConfig m;
  m.layers = 64;
  m.embed = 4096;
  m.mlp = 16384;
  m.heads = m.kv_heads = 32;
  m.head_dim = 128;
  m.vocab = 32000;
  CHECK(models::parameter_count(m) - 65 * 4096 == 17442275328);
  // Book, training, question 1: LLaMA-2 13B without norms 13,015,449,600; 81 norms of 5120 here.
  CHECK(models::parameter_count(models::find_preset("llama2-13b")->config) - 81 * 5120 == 13015449600);
  // Book, applied training: LLaMA-3 70B without norms 70,552,387,584; 161 norms of 8192 here.
  CHECK(models::parameter_count(models::find_preset("llama3.1-70b")->config) - 161 * 8192 == 70552387584);
}

namespace {

session::JobSpec gpt(const std::vector<strategies::RequestedAxis>& mesh) {
  session::JobSpec s = small_transformer(3, mesh);
  s.model.gated_mlp = false;
  s.sequence_length = 128;
  s.global_batch = 16;
  s.microbatch = 2;
  return s;
}

// Bytes of a category that one device holds throughout a step, from the plan's own buffers.
std::int64_t resident(const plan::StepProgram& program, plan::Category category) {
  std::int64_t sum = 0;
  for (const plan::Buffer& b : program.buffers) {
    if (b.category != category || !b.persistent || b.block < 0) continue;
    for (const plan::Site& site : program.sites) sum += site.block == b.block ? b.bytes : 0;
  }
  return sum;
}

}  // namespace

TEST_CASE("a step's model FLOPs are 72 B s l h^2 (1 + s/6h + V/12lh)") {
  // D. Narayanan et al., SC 2021, appendix, without recomputation (three quarters of their equation 3's products in the
  // layers).
  for (ir::AttentionKind attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused})
    for (const std::vector<strategies::RequestedAxis>& mesh : {std::vector<strategies::RequestedAxis>{{"data", 4}},
                                                               {{"fsdp", 2}, {"tensor", 2}},
                                                               {{"pipeline", 1}, {"tensor", 4}}}) {
      session::JobSpec s = gpt(mesh);
      s.attention = attention;
      const double b = 16, len = 128, l = 3, h = 256, v = 512;
      CHECK(play(s, ideal_slice({2, 2, 1})).timing.model_flops ==
            doctest::Approx(72 * b * len * l * h * h * (1 + len / (6 * h) + v / (12 * l * h))).epsilon(1e-12));
    }
}

TEST_CASE("f32 parameters and Adam's moments take 12 bytes a parameter, divided by the devices that share them") {
  // AI-Hypercomputer/maxtext, docs, understand_logs_and_metrics.md: 12 bytes a parameter over fsdp. NVIDIA/Megatron-LM
  // README, distributed optimizer, fp32: parameters 4, moments 8, the latter over d with ZeRO-1.
  for (std::int64_t d : {2, 4}) {
    const double parameters = static_cast<double>(models::parameter_count(gpt({}).model));
    const auto held = [&](const std::string& axis, int stage) {
      session::JobSpec s = gpt({{axis, d}});
      s.strategies.zero_stage = stage;
      const plan::StepProgram p = play(s, ideal_slice({d, 1, 1})).plan.program;
      return std::make_pair(static_cast<double>(resident(p, plan::Category::parameters)) / parameters,
                            static_cast<double>(resident(p, plan::Category::optimizer)) / parameters);
    };
    const double share = 1 / static_cast<double>(d);
    CHECK(held("data", 1) == std::make_pair(4.0, 8.0));
    CHECK(held("fsdp", 1) == std::make_pair(4.0, 8 * share));
    CHECK(held("fsdp", 2) == std::make_pair(4.0, 8 * share));
    CHECK(held("fsdp", 3) == std::make_pair(4 * share, 8 * share));
  }
}
