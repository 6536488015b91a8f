// The hold model (Jones 1986): n events pending; one hold takes the next event and schedules another a random time
// later. Items per second are holds per second. std::priority_queue with the same payload and the same total order
// stands beside it.
#include <benchmark/benchmark.h>

#include <queue>

#include "sim/base/random.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fluid.hpp"

namespace {

using namespace tpusim;
using namespace tpusim::engine;

// Increments drawn before the clock starts, so that both queues are measured and not the random numbers.
std::vector<std::int64_t> increments() {
  Random random(1);
  std::vector<std::int64_t> out(1 << 16);
  for (std::int64_t& x : out) x = static_cast<std::int64_t>(random.below(2000000));
  return out;
}

struct Payload {
  std::uint64_t what = 0, who = 0;
};

void hold_event_queue(benchmark::State& state) {
  const std::vector<std::int64_t> gap = increments();
  std::size_t g = 0;
  EventQueue<Payload> queue;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    queue.schedule(SimTime::from_ps(gap[g++ & 0xffff]), Priority::start, {});
  for (auto _ : state) {
    const auto event = queue.pop();
    queue.schedule(event->time + SimTime::from_ps(gap[g++ & 0xffff]), Priority::start, event->payload);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold_event_queue)->Arg(100)->Arg(10000)->Arg(1000000);

struct Naive {
  std::int64_t time;
  std::uint64_t key;
  Payload payload;
  bool operator<(const Naive& o) const { return time != o.time ? time > o.time : key > o.key; }
};

void hold_std_priority_queue(benchmark::State& state) {
  const std::vector<std::int64_t> gap = increments();
  std::size_t g = 0;
  std::uint64_t sequence = 0;
  std::priority_queue<Naive> queue;
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.push({gap[g++ & 0xffff], sequence++, {}});
  for (auto _ : state) {
    Naive event = queue.top();
    queue.pop();
    event.time += gap[g++ & 0xffff];
    event.key = sequence++;
    queue.push(event);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold_std_priority_queue)->Arg(100)->Arg(10000)->Arg(1000000);

// A ring of n links with n flows of three hops each, restarted as they end: solves per second of a network in which all
// is connected.
void fluid_ring(benchmark::State& state) {
  struct World {
    Simulator sim;
    FluidNetwork net{sim};
    std::int64_t n = 0, ended = 0;
    void begin(std::int64_t i) {
      FlowSpec spec;
      for (std::int64_t k = 0; k < 3; ++k) spec.route.push_back({LinkId(static_cast<std::int32_t>((i + k) % n)), 1});
      spec.bytes = Bytes(1e6 * static_cast<double>(1 + i % 7));
      net.start(spec, [this, i] {
        ++ended;
        begin(i);
      });
    }
  } world;
  world.n = state.range(0);
  for (std::int64_t i = 0; i < world.n; ++i) world.net.add_link(BytesPerSecond(90e9));
  for (std::int64_t i = 0; i < world.n; ++i) world.begin(i);
  for (auto _ : state) world.sim.step();
  state.counters["flows"] = benchmark::Counter(static_cast<double>(world.ended), benchmark::Counter::kIsRate);
}
BENCHMARK(fluid_ring)->Arg(16)->Arg(256);

}  // namespace
