// What an answer costs as the machine grows from 64 to 1,048,576 chips: cost follows what differs, not how many chips
// there are. Asked for: time and memory grow no faster than log n, and the whole process of one step at 1,048,576 chips
// takes less than 1 s and 500 MB. Compare within one run: the ratio to 64 chips is what counts.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "models/presets.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/collective_time.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;

namespace {

// n chips as v5p slices of at most 16x16x16, joined by the data-centre network.
struct Machine {
  std::int64_t side = 4, slices = 1;
};
Machine machine_of(std::int64_t chips) {
  Machine out;
  while (out.side < 16 && out.side * out.side * out.side < chips) out.side *= 2;
  out.slices = chips / (out.side * out.side * out.side);
  return out;
}

topologies::Cluster cluster(const Machine& machine) {
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip("tpu-v5p");
  request.slice_shape = {machine.side, machine.side, machine.side};
  request.slices = machine.slices;
  DiagnosticSink sink;
  return *topologies::build(request, sink);
}

session::JobSpec llama2_7b(const Machine& machine) {
  session::JobSpec spec;
  spec.model = models::find_preset("llama2-7b")->config;
  spec.sequence_length = 4096;
  spec.mesh = {{"data", machine.slices}, {"fsdp", machine.side * machine.side * machine.side}};
  spec.global_batch = spec.devices();
  spec.remat = ir::Remat::full;
  spec.verify_plan = false;
  return spec;
}

// Choice among the candidates and play of an all-reduce of 1 GiB over all chips.
void all_reduce_over_all_chips(benchmark::State& state) {
  const Machine machine = machine_of(state.range(0));
  const topologies::Cluster built = cluster(machine);
  const session::Placed placed = session::place_mesh(llama2_7b(machine), built.fabric);
  if (!placed.verdict) return state.SkipWithError(placed.verdict.reason.c_str());
  ir::MeshAxes axes;
  for (std::size_t a = 0; a < placed.mesh.axes.size(); ++a) axes.push_back(static_cast<std::uint8_t>(a));
  double seconds = 0;
  for (auto _ : state) {
    const plan::CollectivePlan plan =
        plan::choose(plan::CollectiveKind::all_reduce, ir::Reduction::sum, std::int64_t{1} << 29, 2,
                     plan::group_axes(axes, placed.placement, built.fabric));
    benchmark::DoNotOptimize(
        seconds += timing::collective_time(plan, built.fabric.collective_overhead, built.fabric).seconds().value());
  }
}

// Llama 2 7B, planned and timed through the library.
void step_on_all_chips(benchmark::State& state) {
  const Machine machine = machine_of(state.range(0));
  const topologies::Cluster built = cluster(machine);
  const session::JobSpec spec = llama2_7b(machine);
  double seconds = 0;
  for (auto _ : state) {
    const session::Planned planned = session::make_plan(spec, built.fabric);
    if (!planned.verdict) return state.SkipWithError(planned.verdict.reason.c_str());
    benchmark::DoNotOptimize(seconds +=
                             timing::time_step(planned.program, built.chip, built.fabric, {}).period.seconds().value());
  }
}

// The command, from the scenario to its result, as a process of its own; CPU seconds and largest memory are the
// kernel's account of it. The scenario goes in through a pipe, whose buffer holds it whole.
void process_of_one_step(benchmark::State& state) {
  const Machine machine = machine_of(state.range(0));
  const std::int64_t inside = machine.side * machine.side * machine.side;
  const std::string scenario = fmt::format(
      R"({{"model": "llama2-7b", "cluster": {{"chip": "tpu-v5p", "topology": "{0}x{0}x{0}", "slices": {1}}},
          "mesh": {{"data": {1}, "fsdp": {2}}}, "training": {{"global_batch": {3}, "sequence_length": 4096,
          "remat": "full"}}}})",
      machine.side, machine.slices, inside, inside * machine.slices);
  double megabytes = 0, cpu = 0;
  for (auto _ : state) {
    int in[2];
    if (pipe(in) != 0) return state.SkipWithError("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      const int nothing = open("/dev/null", O_WRONLY);
      dup2(in[0], STDIN_FILENO);
      dup2(nothing, STDOUT_FILENO);
      dup2(nothing, STDERR_FILENO);
      close(in[0]);
      close(in[1]);
      execl(TPUSIM_BINARY, "tpusim", "run", "-", "--no-verify", "--json", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(in[0]);
    const bool written = write(in[1], scenario.data(), scenario.size()) == static_cast<ssize_t>(scenario.size());
    close(in[1]);
    int status = 0;
    rusage used{};
    if (child < 0 || wait4(child, &status, 0, &used) != child || !written || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
      return state.SkipWithError("the command failed");
    megabytes = std::max(megabytes, static_cast<double>(used.ru_maxrss) * 1024 / 1e6);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
      cpu += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  }
  state.counters["MB"] = megabytes;
  state.counters["cpu_ms"] = benchmark::Counter(cpu * 1e3, benchmark::Counter::kAvgIterations);
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (std::int64_t chips : {64, 512, 4096, 32768, 262144, 1048576}) bench->Arg(chips);
}
BENCHMARK(all_reduce_over_all_chips)->Apply(sizes)->Unit(benchmark::kMicrosecond);
BENCHMARK(step_on_all_chips)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(process_of_one_step)->Apply(sizes)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
