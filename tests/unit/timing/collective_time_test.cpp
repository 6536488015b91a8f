// The duration of a collective against the closed forms of its algorithm, and against all its flows on all links of the
// physical ring.
//
// a hop latency, W one direction of one link, V the gathered bytes, n members. Tolerance: 1e-9 relative or 1 ps for
// every step played.
#include "sim/timing/collective_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/engine/fluid.hpp"

using namespace tpusim;
using namespace tpusim::timing;
using plan::CollectiveKind;
using plan::GroupAxis;
using plan::LineAlgorithm;

namespace {

constexpr double kAlpha = 1e-6, kBeta = 45e9;

GroupAxis axis(std::int64_t size, fabric::Link link, int physical = 0, std::int64_t stride = 1) {
  GroupAxis a;
  a.physical = physical;
  a.size = size;
  a.stride = stride;
  a.link = link;
  a.physical_size = size * stride;
  a.alpha = Seconds(kAlpha);
  a.beta = BytesPerSecond(kBeta);
  return a;
}

fabric::Fabric fabric_with(std::size_t axes) {
  fabric::Fabric f;
  f.axes.resize(axes);
  return f;
}

// The candidate whose every work uses `algorithm` where the axis is a ring, in one part or in as many as there are
// axes.
plan::CollectivePlan plan_of(CollectiveKind kind, std::int64_t elements, const std::vector<GroupAxis>& axes,
                             LineAlgorithm algorithm, bool parts = false) {
  for (plan::Candidate& c : plan::candidates(kind, ir::Reduction::sum, elements, 4, axes)) {
    if ((c.plan.part_elements.size() > 1) != parts) continue;
    bool fits = true;
    for (const plan::Phase& phase : c.plan.phases)
      for (const plan::Phase::Work& work : phase.works) fits = fits && work.algorithm == algorithm;
    if (fits) return std::move(c.plan);
  }
  FAIL("no such candidate");
  return {};
}

std::int64_t steps_of(const plan::CollectivePlan& plan) {
  std::int64_t n = 0;
  for (const plan::Phase& phase : plan.phases)
    for (const plan::Phase::Work& work : phase.works) n += plan.axes[static_cast<std::size_t>(work.axis)].size;
  return n;
}

void check_close(SimTime got, double expected, std::int64_t events) {
  CAPTURE(got.ps());
  CAPTURE(expected * 1e12);
  CHECK(std::abs(got.seconds().value() - expected) <= std::max(1e-9 * expected, static_cast<double>(events) * 1e-12));
}

// One work played out: every line of the physical axis, every member, every link a fluid link of its own.
SimTime unfolded(const GroupAxis& a, LineAlgorithm algorithm, std::int64_t part_bytes, std::int64_t half_bytes_up,
                 std::int64_t half_bytes_down) {
  const auto n = static_cast<std::int32_t>(a.size);
  const std::int64_t ring = a.physical_size;
  SimTime total;
  for (const plan::LineStep& step : plan::line_steps(algorithm, a.size)) {
    engine::Simulator simulator;
    engine::FluidNetwork network(simulator);
    std::vector<engine::LinkId> up, down;
    for (std::int64_t i = 0; i < ring; ++i)
      up.push_back(network.add_link(a.beta)), down.push_back(network.add_link(a.beta));
    // Two members reach each other both ways round: the second half takes the other way.
    std::map<std::pair<std::int64_t, bool>, std::int64_t>
        bytes;  // by sender's place and direction, for every group on the ring
    for (std::int64_t offset = 0; offset < a.stride; ++offset)
      for (const plan::Move& move : step) {
        const bool forward =
            n == 2 && algorithm == LineAlgorithm::bidirectional_ring ? move.piece != 2 : move.to == (move.from + 1) % n;
        bytes[{move.from * a.stride + offset, forward}] += move.piece == 0   ? part_bytes
                                                           : move.piece == 1 ? half_bytes_up
                                                                             : half_bytes_down;
      }
    for (const auto& [from, amount] : bytes) {
      std::vector<engine::Hop> route;
      for (std::int64_t hop = 0; hop < a.stride; ++hop) {
        const std::int64_t at = from.second ? (from.first + hop) % ring : (from.first - 1 - hop + 2 * ring) % ring;
        route.push_back({(from.second ? up : down)[static_cast<std::size_t>(at)], 1});
      }
      if (amount > 0)
        network.start({route, Bytes(static_cast<double>(amount)),
                       SimTime::from(a.alpha * static_cast<double>(a.stride)), BytesPerSecond(1e300), 0},
                      {});
    }
    simulator.run();
    total += simulator.now();
  }
  return total;
}

}  // namespace

TEST_CASE("a one-way ring takes (n-1)(a + V/(nW))") {
  for (std::int64_t n : {2, 3, 4, 7, 8, 16}) {
    const std::int64_t elements = 1200 * n * 4;
    const double v = static_cast<double>(elements) * 4, m = static_cast<double>(n);
    for (CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const plan::CollectivePlan p = plan_of(kind, elements, {axis(n, fabric::Link::ring)}, LineAlgorithm::ring);
      const double once = (m - 1) * (kAlpha + v / (m * kBeta));
      check_close(collective_time(p, Seconds(0), fabric_with(1)), kind == CollectiveKind::all_reduce ? 2 * once : once,
                  steps_of(p));
    }
  }
}

TEST_CASE("both ways round a ring take floor(n/2) a + V(n-1)/(2nW), even and odd") {
  for (std::int64_t n : {2, 3, 4, 5, 8, 9, 16}) {
    const std::int64_t elements = 1200 * n * 4;
    const double v = static_cast<double>(elements) * 4, m = static_cast<double>(n);
    for (CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const plan::CollectivePlan p =
          plan_of(kind, elements, {axis(n, fabric::Link::ring)}, LineAlgorithm::bidirectional_ring);
      const double once = static_cast<double>(n / 2) * kAlpha + v * (m - 1) / (2 * m * kBeta);
      check_close(collective_time(p, Seconds(0), fabric_with(1)), kind == CollectiveKind::all_reduce ? 2 * once : once,
                  steps_of(p));
    }
  }
}

TEST_CASE("a line takes (n-1)(a + V/(nW))") {
  for (std::int64_t n : {2, 3, 4, 7, 16}) {
    const std::int64_t elements = 1200 * n * 4;
    const double v = static_cast<double>(elements) * 4, m = static_cast<double>(n);
    const plan::CollectivePlan p =
        plan_of(CollectiveKind::all_gather, elements, {axis(n, fabric::Link::line)}, LineAlgorithm::line);
    check_close(collective_time(p, Seconds(0), fabric_with(1)), (m - 1) * (kAlpha + v / (m * kBeta)), steps_of(p));
  }
}

TEST_CASE("k wrapped axes of size X, in k parts in rotated order, take k floor(X/2) a + V(1-1/n)/(2kW)") {
  for (std::int64_t x : {2, 3, 4, 8})
    for (int k : {2, 3}) {
      std::vector<GroupAxis> axes;
      std::int64_t n = 1;
      for (int i = 0; i < k; ++i) axes.push_back(axis(x, fabric::Link::ring, i)), n *= x;
      const std::int64_t elements = 240 * n * 2;
      const double v = static_cast<double>(elements) * 4, m = static_cast<double>(n);
      const double once = k * static_cast<double>(x / 2) * kAlpha + v * (1 - 1 / m) / (2 * k * kBeta);
      for (CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::all_reduce}) {
        const plan::CollectivePlan p = plan_of(kind, elements, axes, LineAlgorithm::bidirectional_ring, true);
        check_close(collective_time(p, Seconds(0), fabric_with(3)),
                    kind == CollectiveKind::all_reduce ? 2 * once : once, steps_of(p));
      }
    }
}

TEST_CASE("wrapped axes of unequal sizes run in lockstep, each phase as long as its slowest part") {
  // Axes of 4 and 8, n = 32, V in two parts of V/2. Part 0 gathers along axis 1 and then axis 0, part 1 the other way
  // round, both at once. Phase 1 (shards of V/2/32): along 8: 4 a + (V/64) 7/(2W); along 4: 2 a + (V/64) 3/(2W). Phase
  // 2: part 0 along 4 with chunks of 8 shards: 2 a + (V/8) 3/(2W)... written with s = V/64: along 8 with chunks of 4
  // shards: 4 a + 4 s 7/(2W); along 4: 2 a + 8 s 3/(2W).
  const std::int64_t elements = 64 * 4000;
  const double s = static_cast<double>(elements) * 4 / 64;
  const plan::CollectivePlan p =
      plan_of(CollectiveKind::all_gather, elements, {axis(4, fabric::Link::ring, 0), axis(8, fabric::Link::ring, 1)},
              LineAlgorithm::bidirectional_ring, true);
  const double first = std::max(4 * kAlpha + s * 7 / (2 * kBeta), 2 * kAlpha + s * 3 / (2 * kBeta));
  const double second = std::max(4 * kAlpha + 4 * s * 7 / (2 * kBeta), 2 * kAlpha + 8 * s * 3 / (2 * kBeta));
  check_close(collective_time(p, Seconds(0), fabric_with(2)), first + second, steps_of(p));
}

TEST_CASE("over two levels the slow one carries what the fast one has left: an all-reduce of 8 chips a host, 4 hosts") {
  // Reduce-scatter in the host (7 steps of V/8), then between hosts (3 steps of V/32), and back: twice the sum of
  // 7 (a + V/(8 W)) + 3 (b + V/(32 U)).
  const std::int64_t elements = 32 * 100000;
  const double v = static_cast<double>(elements) * 4, b = 5e-6, u = 12.5e9;
  GroupAxis host = axis(4, fabric::Link::switched, 0), chip = axis(8, fabric::Link::switched, 1);
  host.alpha = Seconds(b);
  host.beta = BytesPerSecond(u);
  const plan::CollectivePlan p =
      plan::choose(CollectiveKind::all_reduce, ir::Reduction::sum, elements, 4, {host, chip});
  check_close(collective_time(p, Seconds(0), fabric_with(2)),
              2 * (7 * (kAlpha + v / (8 * kBeta)) + 3 * (b + v / (32 * u))), steps_of(p));
}

TEST_CASE("a collective has its fixed cost once, and none where there is nothing to do") {
  const fabric::Fabric f = fabric_with(1);
  const plan::CollectivePlan p =
      plan_of(CollectiveKind::all_gather, 4096, {axis(4, fabric::Link::ring)}, LineAlgorithm::ring);
  CHECK(collective_time(p, Seconds(3e-6), f) == collective_time(p, Seconds(0), f) + SimTime::from(Seconds(3e-6)));
  CHECK(collective_time(
            plan::choose(CollectiveKind::all_gather, ir::Reduction::sum, 4096, 4, {axis(1, fabric::Link::ring)}),
            Seconds(3e-6), f) == SimTime{});
}

TEST_CASE(
    "all flows of all groups on all links of the physical ring end when the folded computation says, bit for bit") {
  // Groups of n members that stride over the ring share its links with stride - 1 others. A part of 1001 elements has
  // unequal halves.
  for (std::int64_t n : {2, 3, 4, 5, 8})
    for (std::int64_t stride : {1, 2, 3, 4})
      for (LineAlgorithm algorithm : {LineAlgorithm::ring, LineAlgorithm::bidirectional_ring, LineAlgorithm::line}) {
        if (algorithm == LineAlgorithm::line && stride > 1)
          continue;  // the minor part of a split axis is a line of neighbours
        CAPTURE(n);
        CAPTURE(stride);
        GroupAxis a = axis(n, algorithm == LineAlgorithm::line ? fabric::Link::line : fabric::Link::ring, 0, stride);
        const plan::CollectivePlan p = plan_of(CollectiveKind::all_gather, 1001 * n, {a}, algorithm);
        CHECK(collective_time(p, Seconds(0), fabric_with(1)) == unfolded(a, algorithm, 1001 * 4, 501 * 4, 500 * 4));
      }
}

TEST_CASE("a faster link level shortens what uses it and nothing else") {
  const plan::CollectivePlan p =
      plan_of(CollectiveKind::all_gather, 400000, {axis(4, fabric::Link::ring)}, LineAlgorithm::ring);
  const fabric::Fabric f = fabric_with(1);
  SpeedUp chips, hosts;
  chips.links[static_cast<std::size_t>(fabric::Level::chip)] = 2;
  hosts.links[static_cast<std::size_t>(fabric::Level::host)] = 2;
  check_close(collective_time(p, Seconds(0), f, chips), 3 * (kAlpha + 400000.0 / (2 * kBeta)), 3);
  CHECK(collective_time(p, Seconds(0), f, hosts) == collective_time(p, Seconds(0), f));
}

TEST_CASE("a gather over 2^33 bytes and one over a thousand members are timed without counting moves") {
  // 2^33 B x 2 members over one link each way: (a + 2^33/(2 * 2 * W)) by halves.
  const plan::CollectivePlan big = plan_of(CollectiveKind::all_gather, std::int64_t{1} << 31,
                                           {axis(2, fabric::Link::ring)}, LineAlgorithm::bidirectional_ring);
  check_close(collective_time(big, Seconds(0), fabric_with(1)), kAlpha + std::pow(2.0, 33) / 4 / kBeta, 2);
  const plan::CollectivePlan wide =
      plan_of(CollectiveKind::all_reduce, 1024 * 4096, {axis(1024, fabric::Link::switched)}, LineAlgorithm::ring);
  check_close(collective_time(wide, Seconds(0), fabric_with(1)), 2 * 1023 * (kAlpha + 4096.0 * 4 / kBeta), 2 * 1023);
}

TEST_CASE("a boundary value takes alpha + bytes / beta, a sum over s stages s - 1 of them") {
  plan::Permute permute;
  permute.bytes = 9000;
  permute.alpha = Seconds(2e-6);
  permute.beta = BytesPerSecond(9e9);
  permute.level = fabric::Level::slice;
  check_close(permute_time(permute), 3e-6, 1);
  SpeedUp s;
  s.links[static_cast<std::size_t>(fabric::Level::slice)] = 2;
  check_close(permute_time(permute, s), 2.5e-6, 1);
  plan::StageReduce reduce;
  reduce.stages = {0, 1, 3};
  reduce.bytes = 9000;
  reduce.alpha = Seconds(2e-6);
  reduce.beta = BytesPerSecond(9e9);
  check_close(stage_reduce_time(reduce), 6e-6, 1);
}
