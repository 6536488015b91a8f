// The fluid network unfolded, every transfer a flow of its own. Asked for, in CPU seconds of one core: ring_all_reduce
// on 16x16x16 (368,640 flows) under 0.2 s, on 65,536 chips (16,384,000 flows) under 10 s and 2 GB; all_to_all on 8x8x8
// under 10 s. The counter peak_MB is the process's largest resident set so far, so it tells something only when one
// benchmark runs alone (--benchmark_filter).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <vector>

#include "sim/engine/fluid.hpp"

namespace {

using namespace tpusim;
using namespace tpusim::engine;

constexpr double kLinkRate = 90e9;      // bytes/s each way, any value will do
constexpr double kHopLatency_s = 1e-6;  // likewise

struct Torus {
  std::array<std::int64_t, 3> size;
  std::int64_t chips() const { return size[0] * size[1] * size[2]; }
  std::int64_t stride(std::size_t axis) const { return axis == 0 ? 1 : axis == 1 ? size[0] : size[0] * size[1]; }
  std::int64_t at(std::int64_t chip, std::size_t axis) const { return chip / stride(axis) % size[axis]; }
  std::int64_t neighbour(std::int64_t chip, std::size_t axis, std::int64_t step) const {
    const std::int64_t here = at(chip, axis), there = (here + step + size[axis]) % size[axis];
    return chip + (there - here) * stride(axis);
  }
  // The link that leaves a chip along an axis, forward or backward.
  LinkId link(std::int64_t chip, std::size_t axis, bool forward) const {
    return LinkId(static_cast<std::size_t>((static_cast<std::int64_t>(axis) * 2 + (forward ? 0 : 1)) * chips() + chip));
  }
};

void report(benchmark::State& state, std::int64_t flows, std::uint64_t solves) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["flows"] = static_cast<double>(flows);
  state.counters["solves"] = static_cast<double>(solves);
  state.counters["flows/s"] =
      benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kIsIterationInvariantRate);
}

// Reduce-scatter along x, y, z, then all-gather along z, y, x: 2 sum(n - 1) steps of one-way rings. A chip sends step s
// when it has ended step s - 1 and has received what it passes on; chips do not wait for each other otherwise.
struct RingAllReduce {
  Torus torus;
  Simulator sim;
  FluidNetwork net{sim};
  FlowSpec spec;  // kept, for its route's memory
  struct Step {
    std::size_t axis;
    double bytes;
  };
  std::vector<Step> steps;
  struct Chip {
    std::int32_t sent = 0, received = 0, begun = 0;
  };
  std::vector<Chip> chips;
  std::int64_t ended = 0;

  RingAllReduce(Torus t, SimTime latency) : torus(t), chips(static_cast<std::size_t>(t.chips())) {
    double part = 1 << 30;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      part /= static_cast<double>(t.size[axis]);
      steps.insert(steps.end(), static_cast<std::size_t>(t.size[axis] - 1), {axis, part});
    }
    steps.insert(steps.end(), steps.rbegin(), steps.rend());
    for (std::int64_t l = 0; l < 6 * t.chips(); ++l) net.add_link(BytesPerSecond(kLinkRate));
    spec.latency = latency;
    spec.route.resize(1);
  }
  void try_begin(std::int64_t chip) {
    Chip& c = chips[static_cast<std::size_t>(chip)];
    if (static_cast<std::size_t>(c.begun) == steps.size() || c.sent < c.begun || c.received < c.begun) return;
    const Step& step = steps[static_cast<std::size_t>(c.begun++)];
    spec.route[0].link = torus.link(chip, step.axis, true);
    spec.bytes = Bytes(step.bytes);
    const std::int64_t to = torus.neighbour(chip, step.axis, 1);
    net.start(spec, [this, chip, to] { end(chip, to); });
  }
  void end(std::int64_t from, std::int64_t to) {
    ++ended;
    ++chips[static_cast<std::size_t>(from)].sent;
    ++chips[static_cast<std::size_t>(to)].received;
    try_begin(from);
    try_begin(to);
  }
};

void ring_all_reduce(benchmark::State& state) {
  const Torus torus{{state.range(0), state.range(1), state.range(2)}};
  std::int64_t flows = 0;
  std::uint64_t solves = 0;
  for (auto _ : state) {
    RingAllReduce run(torus, SimTime::from(Seconds(state.range(3) != 0 ? kHopLatency_s : 0)));
    for (std::int64_t chip = 0; chip < torus.chips(); ++chip) run.try_begin(chip);
    run.sim.run();
    flows = run.ended;
    solves = run.net.solves();
  }
  if (flows != torus.chips() * 2 * (torus.size[0] + torus.size[1] + torus.size[2] - 3))
    state.SkipWithError("not all flows ended");
  report(state, flows, solves);
}
BENCHMARK(ring_all_reduce)
    ->ArgNames({"x", "y", "z", "latency"})
    ->Args({16, 16, 16, 0})
    ->Args({16, 16, 16, 1})
    ->Args({32, 32, 64, 0})
    ->Args({32, 32, 64, 1})
    ->Unit(benchmark::kMillisecond);

// Opposite places of an even ring are as far one way as the other: forwards for all pairs, or by a hash of the pair,
// which takes the symmetry away and with it the few common instants of ending.
bool tie_goes_forward(std::int64_t from, std::int64_t to, bool hashed) {
  const auto a = static_cast<std::uint64_t>(from), b = static_cast<std::uint64_t>(to);
  return !hashed || (((a * 2654435761u >> 7) ^ (b * 40503u >> 3)) & 1) == 0;
}

// Every ordered pair a flow over its dimension-ordered shortest route, all at once. `sizes`: how many different sizes
// there are; 1: all pairs alike.
void all_to_all(benchmark::State& state) {
  const std::int64_t n = state.range(0), sizes = state.range(1);
  const Torus torus{{n, n, n}};
  std::int64_t ended = 0;
  std::uint64_t solves = 0;
  for (auto _ : state) {
    Simulator sim;
    FluidNetwork net(sim);
    ended = 0;
    for (std::int64_t l = 0; l < 6 * torus.chips(); ++l) net.add_link(BytesPerSecond(kLinkRate));
    FlowSpec spec;
    for (std::int64_t from = 0; from < torus.chips(); ++from)
      for (std::int64_t to = 0; to < torus.chips(); ++to) {
        if (from == to) continue;
        spec.route.clear();
        std::int64_t chip = from;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t ahead = (torus.at(to, axis) - torus.at(from, axis) + n) % n;
          const bool tie = 2 * ahead == n && tie_goes_forward(from, to, state.range(2) != 0);
          const bool forward = 2 * ahead < n || tie;
          for (; torus.at(chip, axis) != torus.at(to, axis); chip = torus.neighbour(chip, axis, forward ? 1 : -1))
            spec.route.push_back({torus.link(chip, axis, forward), 1});
        }
        spec.bytes = Bytes(1e6 * static_cast<double>(1 + (from * 7919 + to * 104729) % sizes));
        net.start(spec, [count = &ended] { ++*count; });
      }
    sim.run();
    solves = net.solves();
  }
  if (ended != torus.chips() * (torus.chips() - 1)) state.SkipWithError("not all flows ended");
  report(state, ended, solves);
}
BENCHMARK(all_to_all)
    ->ArgNames({"n", "sizes", "hashed_ties"})
    ->Args({6, 1, 0})
    ->Args({8, 1, 0})
    ->Args({8, 1, 1})
    ->Args({8, 16, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
