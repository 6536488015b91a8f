// How many configurations a core-second: plan and time through the library, without verification. Asked for: at least
// 300 of llama2-70b on 256 chips and of gpt3-175b with 64 microbatches (the counter configs/s), 10^6 microbatches no
// slower than 10^3, and the projection from 64 to 65,536 chips.
#include <benchmark/benchmark.h>

#include "models/presets.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;

namespace {

topologies::Cluster cluster(const char* chip, topologies::Shape shape, std::int64_t slices, std::int64_t hosts) {
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip(chip);
  request.slice_shape = std::move(shape);
  request.slices = slices;
  request.hosts = hosts;
  DiagnosticSink sink;
  return *topologies::build(request, sink);
}

session::JobSpec llama2_70b(std::int64_t fsdp) {
  session::JobSpec spec;
  spec.model = models::find_preset("llama2-70b")->config;
  spec.sequence_length = 4096;
  spec.mesh = {{"fsdp", fsdp}, {"tensor", 8}};
  spec.strategies.sequence_parallel = true;
  spec.global_batch = fsdp * 2;
  spec.microbatch = 2;
  spec.remat = ir::Remat::selective;
  spec.optimizer.clip_norm = 1;
  return spec;
}

session::JobSpec gpt3(std::int64_t microbatches) {
  session::JobSpec spec;
  spec.model = models::find_preset("gpt3-175b")->config;
  spec.sequence_length = 2048;
  spec.mesh = {{"pipeline", 8}, {"data", 4}, {"tensor", 8}};
  spec.global_batch = 4 * microbatches;
  spec.microbatch = 1;
  spec.remat = ir::Remat::full;
  return spec;
}

session::JobSpec palm_540b(std::int64_t data) {
  session::JobSpec spec;
  spec.model = models::find_preset("palm-540b")->config;
  spec.sequence_length = 2048;
  spec.mesh = {{"data", data}, {"fsdp", 256}, {"tensor", 8}};
  spec.global_batch = data * 256 * 2;
  spec.microbatch = 2;
  spec.remat = ir::Remat::full;
  spec.optimizer.kind = ir::Optimizer::adafactor;
  return spec;
}

// A search leaves the plan's own verifier out; verification by execution is never part of a search.
void run(benchmark::State& state, session::JobSpec spec, const topologies::Cluster& machine) {
  double seconds = 0;
  spec.verify_plan = false;
  for (auto _ : state) {
    const session::Planned planned = session::make_plan(spec, machine.fabric);
    if (!planned.verdict) return state.SkipWithError(planned.verdict.reason.c_str());
    const timing::StepTiming timing = timing::time_step(planned.program, machine.chip, machine.fabric, {});
    benchmark::DoNotOptimize(seconds += timing.period.seconds().value());
  }
  state.counters["configs/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void plan_only(benchmark::State& state, session::JobSpec spec, const topologies::Cluster& machine) {
  spec.verify_plan = false;
  for (auto _ : state) benchmark::DoNotOptimize(session::make_plan(spec, machine.fabric));
}

void llama2_70b_on_256_chips(benchmark::State& state) {
  run(state, llama2_70b(32), cluster("tpu-v5p", {4, 8, 8}, 1, 0));
}
BENCHMARK(llama2_70b_on_256_chips)->Unit(benchmark::kMillisecond);
void llama2_70b_on_256_chips_plan_alone(benchmark::State& state) {
  plan_only(state, llama2_70b(32), cluster("tpu-v5p", {4, 8, 8}, 1, 0));
}
BENCHMARK(llama2_70b_on_256_chips_plan_alone)->Unit(benchmark::kMillisecond);
void gpt3_175b_with_64_microbatches(benchmark::State& state) {
  run(state, gpt3(64), cluster("a100-80gb", {}, 1, 32));
}
BENCHMARK(gpt3_175b_with_64_microbatches)->Unit(benchmark::kMillisecond);
void gpt3_175b_with_64_microbatches_plan_alone(benchmark::State& state) {
  plan_only(state, gpt3(64), cluster("a100-80gb", {}, 1, 32));
}
BENCHMARK(gpt3_175b_with_64_microbatches_plan_alone)->Unit(benchmark::kMillisecond);

// 10^6 microbatches take no longer than 10^3.
void gpt3_175b_microbatches(benchmark::State& state) {
  run(state, gpt3(state.range(0)), cluster("a100-80gb", {}, 1, 32));
}
BENCHMARK(gpt3_175b_microbatches)->Arg(1000)->Arg(1000000)->Unit(benchmark::kMillisecond);

// The projection alone from 2,048 to 65,536 chips: cost follows what differs, not how many chips there are.
void palm_540b_projection_chips(benchmark::State& state) {
  const std::int64_t slices = state.range(0) / 2048;
  run(state, palm_540b(slices), cluster("tpu-v4", {8, 16, 16}, slices, 0));
}
BENCHMARK(palm_540b_projection_chips)->Arg(2048)->Arg(8192)->Arg(65536)->Unit(benchmark::kMillisecond);

// llama2-7b over fsdp (and data between slices) from 64 to 65,536 chips.
void llama2_7b_projection_chips(benchmark::State& state) {
  session::JobSpec spec;
  spec.model = models::find_preset("llama2-7b")->config;
  spec.sequence_length = 4096;
  const std::int64_t slices = std::max<std::int64_t>(1, state.range(0) / 4096), inside = state.range(0) / slices;
  spec.mesh = {{"data", slices}, {"fsdp", inside}};
  spec.global_batch = state.range(0);
  spec.remat = ir::Remat::full;
  const topologies::Shape shape = inside == 64    ? topologies::Shape{4, 4, 4}
                                  : inside == 512 ? topologies::Shape{8, 8, 8}
                                                  : topologies::Shape{16, 16, 16};
  run(state, spec, cluster("tpu-v4", shape, slices, 0));
}
BENCHMARK(llama2_7b_projection_chips)->Arg(64)->Arg(512)->Arg(4096)->Arg(65536)->Unit(benchmark::kMillisecond);

}  // namespace
