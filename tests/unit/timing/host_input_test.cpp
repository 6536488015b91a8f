#include "sim/timing/host_input.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "sim/base/random.hpp"
#include "sim/engine/bounded_buffer.hpp"
#include "sim/engine/station.hpp"
#include "sim/timing/step_time.hpp"
#include "tests/support/step_builder.hpp"

using namespace tpusim;
using namespace tpusim::timing;
using namespace tpusim::testing;

namespace {

// A step that reads its batch and computes for a known time, on one chip.
plan::StepProgram fixed_step(Seconds compute) {
  StepBuilder b({{"data", 1}});
  const std::int32_t k = b.kernel("step", compute, {ref(b.buffer("batch", plan::Scope::microbatch, true))}, {});
  const std::int32_t kind = b.kind({});
  b.tmpl(kind, -1, -1, {Ins(InstrKind::kernel, k)});
  b.p.schedules[0].segments = {plan::Segment{{{0, kind, 0}}, 1}};
  return b.done();
}

StepTiming time_with(const HostInput& input, Seconds compute) {
  TimingOptions options;
  options.input = input;
  return time_step(fixed_step(compute), {}, {}, options);
}

HostInput storage_only(double examples, double bytes, double bandwidth) {
  HostInput in;
  in.examples_per_host = examples;
  in.example_bytes = Bytes(bytes);
  in.storage_bandwidth = BytesPerSecond(bandwidth);
  return in;
}

// The same line of servers as processes on the engine: a server is a place for one batch and a station; a batch that is
// done keeps its place until the next server, or the buffer, has one for it. `steps` are the lengths of the steps that
// consume the batches.
class EngineTwin {
 public:
  EngineTwin(std::vector<SimTime> service, std::int64_t prefetch, std::vector<SimTime> steps)
      : service_(std::move(service)), steps_(std::move(steps)) {
    for (std::size_t i = 0; i < service_.size(); ++i) {
      stations_.push_back(std::make_unique<engine::Stream>(simulator_));
      places_.push_back(std::make_unique<engine::BoundedBuffer>(1));
    }
    if (prefetch > 0) buffer_ = std::make_unique<engine::BoundedBuffer>(prefetch);
    ready_.resize(steps_.size());
  }
  std::vector<SimTime> run() {
    source(0);
    copy(0);
    simulator_.run();
    return ready_;
  }

 private:
  std::size_t last() const { return service_.size() - 2; }  // the last server before the copy
  void source(std::size_t batch) {
    if (batch == steps_.size()) return;
    places_[0]->put([this, batch] { serve(0, batch); });
  }
  void serve(std::size_t server, std::size_t batch) {
    if (server == 0) source(batch + 1);  // waits until this one has left
    stations_[server]->submit(service_[server], [this, server, batch] {
      if (server < last()) {
        places_[server + 1]->put([this, server, batch] {
          leave(server);
          serve(server + 1, batch);
        });
      } else if (buffer_) {
        buffer_->put([this, server] { leave(server); });
      } else {
        finished_ = true;
        hand_over();
      }
    });
  }
  void leave(std::size_t server) {
    places_[server]->get([] {});
  }
  // Without a buffer the last server keeps its batch until the copy takes it.
  void hand_over() {
    if (!finished_ || !wanted_) return;
    finished_ = wanted_ = false;
    const std::size_t batch = copying_;
    leave(last());
    start_copy(batch);
  }
  // Takes batch k when the copy is free and step k-1 has begun.
  void copy(std::size_t batch) {
    if (batch == steps_.size()) return;
    copying_ = batch;
    if (buffer_) {
      buffer_->get([this, batch] { start_copy(batch); });
    } else {
      wanted_ = true;
      hand_over();
    }
  }
  void start_copy(std::size_t batch) {
    stations_.back()->submit(service_.back(), [this, batch] {
      ready_[batch] = simulator_.now();
      // The step begins when its batch is there and the step before has ended; then the next copy may start.
      const SimTime begins = max(simulator_.now(), step_end_);
      step_end_ = begins + steps_[batch];
      simulator_.at(begins, engine::Priority::completion, [this, batch] { copy(batch + 1); });
    });
  }

  engine::Simulator simulator_;
  std::vector<SimTime> service_, steps_, ready_;
  std::vector<std::unique_ptr<engine::Stream>> stations_;
  std::vector<std::unique_ptr<engine::BoundedBuffer>> places_;
  std::unique_ptr<engine::BoundedBuffer> buffer_;
  bool finished_ = false, wanted_ = false;
  std::size_t copying_ = 0;
  SimTime step_end_;
};

}  // namespace

TEST_CASE("UNet3D: at 2 GB/s of storage the accelerator is busy 63 % of the period, and 3.18 GB/s is what it needs") {
  // MLPerf Storage v1 (github.com/mlcommons/storage, UNet3D): batch 7, 146,600,628 bytes a sample, 0.323 s of compute a
  // step. Share 1,026,204,396 B: 0.513102198 s at 2 GB/s; 0.323 / 0.513102198 = 0.62950; 1,026,204,396 / 0.323 = 3.1771
  // GB/s.
  const StepTiming t = time_with(storage_only(7, 146600628, 2e9), Seconds(0.323));
  REQUIRE(t.steady);
  CHECK(t.period == SimTime::from(Seconds(7 * 146600628.0 / 2e9)));
  CHECK(t.compute.value() / t.period.seconds().value() == doctest::Approx(0.6295).epsilon(1e-4));
  CHECK(t.input.value() == doctest::Approx(0.513102198 - 0.323).epsilon(1e-9));
  CHECK(time_with(storage_only(7, 146600628, 3.1772e9), Seconds(0.323)).input.value() == 0);
  CHECK(time_with(storage_only(7, 146600628, 3.1770e9), Seconds(0.323)).input.value() > 0);
}

TEST_CASE("throughput is that of the slowest stage, wherever it stands") {
  for (std::size_t slow = 0; slow < 4; ++slow) {
    HostInput in = storage_only(8, 1e6, 8e6 / 0.010);  // 10 ms
    in.stages = {{"decode", 4, Seconds(5e-3)},
                 {"augment", 2, Seconds(2.5e-3)}};  // 8 x 5 / 4 = 10 ms, 8 x 2.5 / 2 = 10 ms
    in.host_to_chip = BytesPerSecond(8e6 / 0.010);  // 10 ms
    if (slow == 0) in.storage_bandwidth = BytesPerSecond(8e6 / 0.030);
    if (slow == 1) in.stages[0].threads = 1, in.stages[0].time_per_example = Seconds(30e-3 / 8);
    if (slow == 2) in.stages[1].time_per_example = Seconds(7.5e-3);
    if (slow == 3) in.host_to_chip = BytesPerSecond(8e6 / 0.030);
    CHECK(HostPipeline(in).slowest() == SimTime::from(Seconds(30e-3)));
    const StepTiming t = time_with(in, Seconds(20e-3));
    REQUIRE(t.steady);
    CHECK(t.period == SimTime::from(Seconds(30e-3)));
    CHECK(t.compute.value() == doctest::Approx(20e-3));
    CHECK(t.input.value() == doctest::Approx(10e-3));
  }
}

TEST_CASE("infinitely fast storage never stalls a step") {
  HostInput in;
  in.examples_per_host = 1e6;
  in.example_bytes = Bytes(1e9);
  const StepTiming t = time_with(in, Seconds(1e-3));
  CHECK(t.input.value() == 0);
  CHECK(t.period == SimTime::from(Seconds(1e-3)));
  CHECK(t.first_step == SimTime::from(Seconds(1e-3)));
}

TEST_CASE("twice the hosts turn a stall of h - c into max(0, h/2 - c)") {
  for (double h : {0.5, 1.0, 1.5, 2.5}) {
    const double c = 0.4;
    const StepTiming one = time_with(storage_only(8, 1e9, 8e9 / h), Seconds(c));  // a share of 8 examples takes h
    const StepTiming two = time_with(storage_only(4, 1e9, 8e9 / h), Seconds(c));
    REQUIRE(one.steady);
    REQUIRE(two.steady);
    CHECK(one.input.value() == doctest::Approx(h - c).epsilon(1e-9));
    CHECK(std::abs(two.input.value() - std::max(0.0, h / 2 - c)) < 1e-9);
  }
}

TEST_CASE("a replay of hosts twice as fast halves what they take") {
  TimingOptions options;
  options.input = storage_only(8, 1e9, 8e9);
  options.speed_up.hosts = 2;
  CHECK(time_step(fixed_step(Seconds(0.4)), {}, {}, options).period == SimTime::from(Seconds(0.5)));
}

TEST_CASE("the first batch passes every server before the first step begins") {
  HostInput in = storage_only(1, 1e6, 1e9);  // 1 ms
  in.storage_latency = Seconds(2e-3);
  in.stages = {{"decode", 1, Seconds(3e-3)}};
  in.host_to_chip = BytesPerSecond(2.5e8);  // 4 ms
  const StepTiming t = time_with(in, Seconds(1e-3));
  CHECK(t.first_step == SimTime::from(Seconds(11e-3)));
  CHECK(t.period == SimTime::from(Seconds(4e-3)));
}

TEST_CASE("batches are asked for in order") {
  HostPipeline hosts(storage_only(1, 1, 1));
  hosts.ready(0, {});
  CHECK_THROWS_AS(hosts.ready(2, {}), InternalError);
}

TEST_CASE("300 random host lines deliver every batch at the picosecond of their twin of stations and buffers") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    HostInput in;
    in.examples_per_host = 1;
    in.prefetch = static_cast<std::int64_t>(random.below(4));
    in.example_bytes = Bytes(1);
    const auto duration = [&random] { return Seconds(static_cast<double>(1 + random.below(9)) * 1e-9); };
    std::vector<SimTime> service;
    const Seconds storage = duration(), copy = duration();
    in.storage_bandwidth = Bytes(1) / storage;
    service.push_back(SimTime::from(storage));
    for (std::uint64_t s = random.below(4); s > 0; --s) {
      in.stages.push_back({"stage", 1, duration()});
      service.push_back(SimTime::from(in.stages.back().time_per_example));
    }
    in.host_to_chip = Bytes(1) / copy;
    service.push_back(SimTime::from(copy));
    std::vector<SimTime> steps;
    for (int k = 0; k < 40; ++k) steps.push_back(SimTime::from(duration()));
    const std::vector<SimTime> expected = EngineTwin(service, in.prefetch, steps).run();
    HostPipeline hosts(in);
    SimTime begun, end;
    std::vector<SimTime> got;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      got.push_back(hosts.ready(static_cast<std::int64_t>(k), begun));
      begun = max(got.back(), end);
      end = begun + steps[k];
    }
    REQUIRE(got == expected);
  }
}
