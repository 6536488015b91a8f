// What is asked changes what is answered, and by how much.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "sim/timing/collective_time.hpp"
#include "sim/timing/step_time.hpp"
#include "tests/support/random_job.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

// A ring of 4 by a ring of 4; fsdp on one, tensor on the other.
RandomJob job_16() {
  RandomJob job;
  job.chip = *topologies::find_chip("tpu-v5p");
  const fabric::PhysicalAxis ring{"x", 4, fabric::Level::chip, fabric::Link::ring, Seconds(1e-6), BytesPerSecond(9e10)};
  job.fabric.axes = {ring, ring};
  job.fabric.axes[1].name = "y";
  job.spec.mesh = {{"fsdp", 4}, {"tensor", 4}};
  models::ModelConfig& model = job.spec.model;
  model.layers = 4, model.embed = 1024, model.mlp = 4096, model.heads = model.kv_heads = 8, model.head_dim = 128,
  model.vocab = 8000;
  job.spec.sequence_length = 512;
  job.spec.microbatch = 1;
  job.spec.global_batch = 8;
  return job;
}

struct Timed {
  timing::StepTiming timing;
  std::int64_t peak = 0;
};
Timed play(const RandomJob& job, const timing::TimingOptions& options = {}) {
  const session::Planned plan = session::make_plan(job.spec, job.fabric);
  REQUIRE(plan.verdict.feasible);
  return {timing::time_step(plan.program, job.chip, job.fabric, options), plan.program.memory[0].peak_bytes};
}

}  // namespace

TEST_CASE("twice the layers is 1.98 to 2.02 times the blocks' compute") {
  // compute(L) = outside + L x layer; `outside` (embedding, head) from 1 and 2 layers, the ratio from 24 and 48.
  for (std::uint64_t seed = 4000; seed < 4030; ++seed) {
    RandomJob job = random_job(seed, 16);
    for (strategies::RequestedAxis& axis : job.spec.mesh)  // a stage's share of the layers would be rounded
      if (axis.name == "pipeline")
        axis.name = "data";
      else if (axis.name == "data")
        axis.size = 1;
    job.spec.mesh.erase(std::remove_if(job.spec.mesh.begin(), job.spec.mesh.end(),
                                       [](const auto& axis) { return axis.name == "data" && axis.size == 1; }),
                        job.spec.mesh.end());
    Random random(seed);
    job.fabric = random_fabric(random, job.spec.devices());
    job.spec.global_batch = 24 * job.spec.microbatch * 8;
    job.spec.global_batch *= 3;
    INFO("seed ", seed, ": ", describe(job));
    const auto compute = [&](std::int64_t layers) {
      job.spec.model.layers = layers;
      return play(job).timing.compute.value();
    };
    const double outside = 2 * compute(1) - compute(2);
    const double ratio = (compute(48) - outside) / (compute(24) - outside);
    CHECK(ratio >= 1.98);
    CHECK(ratio <= 2.02);
  }
}

TEST_CASE("another topology, message size, bandwidth, hop latency or chip count is another answer") {
  const RandomJob base = job_16();
  const SimTime period = play(base).timing.period;
  struct Change {
    const char* name;
    std::function<void(RandomJob&)> make;
    bool slower;
  };
  const Change changes[] = {
      {"rings opened to lines",
       [](RandomJob& j) {
         for (auto& a : j.fabric.axes) a.link = fabric::Link::line;
       },
       true},
      {"one ring of 16 instead of 4 x 4",
       [](RandomJob& j) {
         j.fabric.axes = {j.fabric.axes[0]};
         j.fabric.axes[0].size = 16;
       },
       true},
      {"longer messages: f32 activations", [](RandomJob& j) { j.spec.compute_dtype = ir::DType::f32; }, true},
      {"twice the tokens", [](RandomJob& j) { j.spec.sequence_length *= 2; }, true},
      {"half the link bandwidth",
       [](RandomJob& j) {
         for (auto& a : j.fabric.axes) a.beta = a.beta * 0.5;
       },
       true},
      {"half the bandwidth of one axis alone",
       [](RandomJob& j) { j.fabric.axes[1].beta = j.fabric.axes[1].beta * 0.5; }, true},
      {"half the HBM bandwidth", [](RandomJob& j) { j.chip.hbm_bandwidth.value = j.chip.hbm_bandwidth.value * 0.5; },
       true},
      {"ten times the hop latency",
       [](RandomJob& j) {
         for (auto& a : j.fabric.axes) a.alpha = a.alpha * 10;
       },
       true},
      {"1 ns more hop latency",
       [](RandomJob& j) {
         for (auto& a : j.fabric.axes) a.alpha = a.alpha + Seconds(1e-9);
       },
       true},
      {"a slower start of collectives", [](RandomJob& j) { j.fabric.collective_overhead = Seconds(5e-6); }, true},
      {"half the chips",
       [](RandomJob& j) {
         j.spec.mesh[0].size = 2;
         j.fabric.axes[0].size = 2;
       },
       true},
      {"twice the chips",
       [](RandomJob& j) {
         j.spec.mesh[0].size = 8;
         j.fabric.axes[0].size = 8;
       },
       false},
  };
  for (const Change& change : changes) {
    INFO(change.name);
    RandomJob job = base;
    change.make(job);
    const SimTime other = play(job).timing.period;
    if (change.slower)
      CHECK(other > period);
    else
      CHECK(other < period);
  }
}

TEST_CASE(
    "a million microbatches take a thousand's time plus the rest at the same rate, to the picosecond, in memory for "
    "its tokens") {
  RandomJob job = job_16();
  const auto at = [&](std::int64_t microbatches) {
    job.spec.global_batch = 4 * microbatches;  // 4 replicas, 1 example each
    return play(job);
  };
  const Timed thousand = at(1000), two_thousand = at(2000), million = at(1'000'000);
  const std::int64_t a = thousand.timing.period.ps(), per_thousand = two_thousand.timing.period.ps() - a;
  CHECK(million.timing.period.ps() == a + 999 * per_thousand);
  // The whole batch lies on the chips: a microbatch more is 512 tokens and 512 targets of 4 bytes each, and a loss of 4
  // bytes.
  CHECK(million.peak == thousand.peak + std::int64_t{999'000} * (2 * 512 * 4 + 4));
  // FLOPs and bytes are a constant (the update, the reduction once a step) plus a share of each microbatch.
  CHECK(million.timing.tally.executed_flops == 1000 * thousand.timing.tally.executed_flops);
  for (std::size_t k = 0; k < run::kTrafficKinds; ++k) {
    const std::int64_t once = thousand.timing.tally.bytes_sent[k], twice = two_thousand.timing.tally.bytes_sent[k];
    CHECK(million.timing.tally.bytes_sent[k] == once + 999 * (twice - once));
  }
}

TEST_CASE("a million microbatches through a pipeline take a thousand's time plus the rest at the same rate") {
  RandomJob job = job_16();
  job.spec.mesh = {{"pipeline", 4}, {"data", 4}};
  const auto period = [&](std::int64_t microbatches) {
    job.spec.global_batch = 4 * microbatches;
    return play(job).timing.period.ps();
  };
  const std::int64_t thousand = period(1000);
  CHECK(period(1'000'000) == thousand + 999 * (period(2000) - thousand));
}

TEST_CASE("one op of 3,000 s of compute takes 3,000 s") {
  // A chip whose matrix unit does nothing but one product in 3,000 s: peak = the product's FLOPs / 3,000 s; the rest is
  // free.
  RandomJob job = job_16();
  job.chip = *topologies::find_chip("ideal-v5p");
  job.spec.mesh = {{"data", 1}};
  job.fabric.axes.resize(1);
  job.fabric.axes[0].size = 1;
  job.spec.global_batch = 1;
  const session::Planned plan = session::make_plan(job.spec, job.fabric);
  REQUIRE(plan.verdict.feasible);
  double most = 0, all = 0;
  for (const plan::Kernel& kernel : plan.program.kernels) most = std::max(most, kernel.cost.executed_flops);
  const timing::StepTiming base = timing::time_step(plan.program, job.chip, job.fabric, {});
  all = base.executed_flops;
  job.chip.peak_bf16->value = FlopsPerSecond(most / job.chip.matrix_efficiency.value / 3000);
  const timing::StepTiming slow = timing::time_step(plan.program, job.chip, job.fabric, {});
  const double expected = 3000 * all / most;  // the largest product 3,000 s, the others in proportion
  CHECK(expected > 6000);
  CHECK(slow.period.seconds().value() == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("a step longer than 106 days is refused by name, not wrapped around") {
  // 2^63 ps are 9,223,372 s. One kernel beyond that cannot be told; many that are each shorter cannot be added.
  session::JobSpec spec;
  spec.model.family = models::Family::fixed;
  spec.mesh = {{"data", 1}};
  fabric::Fabric fabric;
  fabric.axes.push_back({"x", 1, fabric::Level::chip, fabric::Link::line, Seconds(1e-6), BytesPerSecond(1e9)});
  const topologies::Chip chip = *topologies::find_chip("tpu-v5p");
  spec.model.step_compute = Seconds(3000);
  CHECK(timing::time_step(session::fixed_program(spec), chip, fabric, {}).period ==
        SimTime::from_ps(3'000'000'000'000'000));
  spec.model.step_compute = Seconds(1e7);
  try {
    timing::time_step(session::fixed_program(spec), chip, fabric, {});
    FAIL("10^7 s were accepted");
  } catch (const CapacityError& e) {
    CHECK(std::string(e.what()).find("106 days") != std::string::npos);
  }
  RandomJob job = job_16();
  job.spec.global_batch = 4 * (std::int64_t{1} << 36);  // 2^36 microbatches of a millisecond or so
  try {
    play(job);
    FAIL("years were accepted");
  } catch (const CapacityError& e) {
    CHECK(std::string(e.what()).find("106 days") != std::string::npos);
  }
}

TEST_CASE("a message over 2^33 bytes takes its closed form") {
  // One ring of 4 with one direction of W = 10^9 B/s and a = 1 us, V = 2^35 bytes gathered: bidirectional ring 2 a + 3
  // V / (8 W).
  const plan::GroupAxis axis{0, 4, 1, fabric::Link::ring, 4, Seconds(1e-6), BytesPerSecond(1e9)};
  fabric::Fabric fabric;
  fabric.axes.push_back({"x", 4, fabric::Level::chip, fabric::Link::ring, Seconds(1e-6), BytesPerSecond(1e9)});
  const double volume = std::ldexp(1.0, 35);
  for (const plan::Candidate& c :
       plan::candidates(plan::CollectiveKind::all_gather, ir::Reduction::sum, std::int64_t{1} << 33, 4, {axis})) {
    INFO(c.plan.algorithm);
    const double whole = c.plan.phases[0].works[0].algorithm == plan::LineAlgorithm::bidirectional_ring
                             ? 2e-6 + 3 * volume / 8e9
                             : 3 * (1e-6 + volume / 4e9);
    CHECK(timing::collective_time(c.plan, Seconds(0), fabric).seconds().value() ==
          doctest::Approx(whole).epsilon(1e-9));
    CHECK(c.plan.total_bytes == 3 * (std::int64_t{1} << 35));  // each of 4 members sends 3/4 of V
  }
}

TEST_CASE("a gradient of 2^34 bytes is all-reduced as such") {
  // A table of 2^18 rows x 2^14 entries, f32: 2^34 bytes, over 8 data replicas. Each sends 2 x 7/8 of it; and that of
  // the tied table alone, as all other parameters are counted beside it.
  RandomJob job = job_16();
  job.spec.mesh = {{"data", 8}};
  job.fabric.axes.resize(1);
  job.fabric.axes[0].size = 8;
  job.spec.model.vocab = 1 << 18;
  job.spec.model.embed = 1 << 14;
  job.spec.model.layers = 1;
  job.spec.model.tied_embeddings = true;
  job.spec.gradient_dtype = ir::DType::f32;
  job.spec.optimizer.clip_norm = 0;
  const Timed timed = play(job);
  const std::int64_t parameters = models::parameter_count(job.spec.model);
  REQUIRE(parameters > (std::int64_t{1} << 32));
  // All-reduces are padded to whole shards: at most 8 x 2 elements a parameter more. The loss is not reduced.
  const std::int64_t bytes = timed.timing.tally.bytes_sent[static_cast<std::size_t>(run::Traffic::all_reduce)],
                     exact = 2 * 7 * parameters * 4;
  CHECK(bytes >= exact);
  CHECK(bytes <= exact + 2 * 7 * 4 * 16 * 20);
}
