// Finish times published by another solver of the same model: SimGrid 3.32, network model CM02 as plain max-min
// (cross-traffic 0, bandwidth and latency factors 1, weight-S 0, TCP-gamma 0, full optimisation, precision 1e-12).
// Facts, not code.
#include <doctest/doctest.h>

#include <algorithm>

#include "fluid_support.hpp"
#include "sim/base/random.hpp"

using namespace tpusim;
using namespace tpusim::engine;
using namespace tpusim::engine::testing;

namespace {

// {rate B/s, latency s} per link; {start s, bytes, route, starts after, finish s} per flow.
std::vector<NetworkCase> simgrid_cases() {
  return {
      {"two_unequal_sizes", {{1e10, 1e-06}}, {{0, 5e7, {0}, {}, 0.010001}, {0, 15e7, {0}, {}, 0.020001}}},
      {"staggered_start", {{1e10, 0}}, {{0, 1e8, {0}, {}, 0.015}, {0.005, 1e8, {0}, {}, 0.02}}},
      {"parking_lot_unequal",
       {{1e10, 0}, {4e9, 0}},
       {{0, 8e7, {0, 1}, {}, 0.03}, {0, 8e7, {0}, {}, 0.01}, {0, 4e7, {1}, {}, 0.02}}},
      {"incast4",
       {{1e10, 1e-06}, {1e10, 1e-06}, {1e10, 1e-06}, {1e10, 1e-06}, {1e10, 1e-06}},
       {{0, 25e6, {0, 4}, {}, 0.010002},
        {0, 25e6, {1, 4}, {}, 0.010002},
        {0, 25e6, {2, 4}, {}, 0.010002},
        {0, 25e6, {3, 4}, {}, 0.010002}}},
      {"incast4_slow_sender",
       {{1e9, 0}, {1e10, 0}, {1e10, 0}, {1e10, 0}, {1e10, 0}},
       {{0, 3e7, {0, 4}, {}, 0.03},
        {0, 3e7, {1, 4}, {}, 0.01},
        {0, 3e7, {2, 4}, {}, 0.01},
        {0, 3e7, {3, 4}, {}, 0.01}}},
      {"waterfill_3links_5flows",
       {{6e9, 0}, {1e10, 0}, {2e10, 0}},
       {{0, 6e7, {0, 1}, {}, 0.03},
        {0, 6e7, {0}, {}, 0.03},
        {0, 6e7, {1, 2}, {}, 0.01},
        {0, 6e7, {2}, {}, 0.005},
        {0, 6e7, {0, 1, 2}, {}, 0.03}}},
      {"ring_alltoall_k4",
       {{5e10, 0}, {5e10, 0}, {5e10, 0}, {5e10, 0}, {5e10, 0}, {5e10, 0}, {5e10, 0}, {5e10, 0}},
       {{0, 1e6, {0}, {}, 6e-05},
        {0, 1e6, {0, 1}, {}, 6e-05},
        {0, 1e6, {7}, {}, 2e-05},
        {0, 1e6, {4}, {}, 2e-05},
        {0, 1e6, {1}, {}, 6e-05},
        {0, 1e6, {1, 2}, {}, 6e-05},
        {0, 1e6, {2, 3}, {}, 6e-05},
        {0, 1e6, {5}, {}, 2e-05},
        {0, 1e6, {2}, {}, 6e-05},
        {0, 1e6, {3}, {}, 6e-05},
        {0, 1e6, {3, 0}, {}, 6e-05},
        {0, 1e6, {6}, {}, 2e-05}}},
      {"rtt_unfair",
       {{1e10, 0}, {1e11, 1e-06}, {1e11, 9.999999999999999e-06}},
       {{0, 1e8, {0, 1}, {}, 0.019992}, {0, 1e8, {0, 2}, {}, 0.020001}}},
      {"fattree_2to1",
       {{1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {1e10, 0},
        {2e10, 0}},
       {{0, 5e7, {0, 16, 12}, {}, 0.01},
        {0, 5e7, {1, 16, 13}, {}, 0.01},
        {0, 5e7, {2, 16, 14}, {}, 0.01},
        {0, 5e7, {3, 16, 15}, {}, 0.01},
        {0, 5e7, {6, 12}, {}, 0.01},
        {0, 5e7, {7, 13}, {}, 0.01}}},
      {"ring_ar_k4",
       {{5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06},
        {5e10, 1e-06}},
       {{0, 16e6, {0}, {}, 0.000321},       {0, 16e6, {1}, {}, 0.000321},       {0, 16e6, {2}, {}, 0.000321},
        {0, 16e6, {3}, {}, 0.000321},       {0, 16e6, {0}, {3, 0}, 0.000642},   {0, 16e6, {1}, {0, 1}, 0.000642},
        {0, 16e6, {2}, {1, 2}, 0.000642},   {0, 16e6, {3}, {2, 3}, 0.000642},   {0, 16e6, {0}, {7, 4}, 0.000963},
        {0, 16e6, {1}, {4, 5}, 0.000963},   {0, 16e6, {2}, {5, 6}, 0.000963},   {0, 16e6, {3}, {6, 7}, 0.000963},
        {0, 16e6, {0}, {11, 8}, 0.001284},  {0, 16e6, {1}, {8, 9}, 0.001284},   {0, 16e6, {2}, {9, 10}, 0.001284},
        {0, 16e6, {3}, {10, 11}, 0.001284}, {0, 16e6, {0}, {15, 12}, 0.001605}, {0, 16e6, {1}, {12, 13}, 0.001605},
        {0, 16e6, {2}, {13, 14}, 0.001605}, {0, 16e6, {3}, {14, 15}, 0.001605}, {0, 16e6, {0}, {19, 16}, 0.001926},
        {0, 16e6, {1}, {16, 17}, 0.001926}, {0, 16e6, {2}, {17, 18}, 0.001926}, {0, 16e6, {3}, {18, 19}, 0.001926}}},
      {"random_10links_30flows",
       {{25e9, 0}, {28e9, 0}, {39e9, 0}, {14e9, 0}, {31e9, 0}, {5e9, 0}, {1e10, 0}, {17e9, 0}, {17e9, 0}, {18e9, 0}},
       {{0.012065, 58e6, {0, 5}, {}, 0.0679702},
        {0.011743, 44e6, {6, 5, 0, 1}, {}, 0.0605781333333},
        {0.002104, 47e6, {7, 6}, {}, 0.00927470588235},
        {0.015559, 94e6, {1}, {}, 0.0262087269406},
        {0.005613, 33e6, {3, 2, 7}, {}, 0.0124239308682},
        {0.011779, 99e6, {5, 6, 0, 3}, {}, 0.076113},
        {0.000713, 37e6, {5, 0}, {}, 0.0238809333333},
        {0.011035999999999999, 63e6, {8}, {}, 0.0276113281787},
        {0.004955, 16e6, {8, 6, 4}, {}, 0.00811834782609},
        {0.0023209999999999997, 2e7, {9, 0, 4, 2}, {}, 0.00413022222222},
        {0.014577, 49e6, {3}, {}, 0.0191021031746},
        {0.016669, 25e6, {9, 7, 1}, {}, 0.0215730297521},
        {0.018441, 21e6, {6}, {}, 0.023341},
        {0.011646, 86e6, {8, 2, 1, 0}, {}, 0.0301817250859},
        {0.014395, 21e6, {4, 7, 5}, {}, 0.0409501333333},
        {0.017275, 53e6, {3, 4, 9}, {}, 0.0261367489755},
        {0.012168, 61e6, {1, 4, 8}, {}, 0.0288232817869},
        {0.011184, 59e6, {4, 7, 8}, {}, 0.0280736606529},
        {0.019646999999999998, 29e6, {0, 9, 4}, {}, 0.0251704462321},
        {0.001771, 93e6, {1, 0}, {}, 0.00687278571429},
        {0.017481999999999998, 57e6, {6, 4}, {}, 0.0266591733333},
        {0.007873999999999999, 32e6, {3, 7, 4}, {}, 0.0142667079298},
        {0.013545999999999999, 24e6, {2}, {}, 0.0142330229008},
        {0.012717, 41e6, {1, 8}, {}, 0.0253275601375},
        {0.006522, 61e6, {9, 5}, {}, 0.0655571333333},
        {0.003583, 83e6, {7}, {}, 0.0156315013249},
        {0.015198999999999999, 67e6, {1, 9}, {}, 0.0258686711301},
        {0.002604, 57e6, {8, 5, 1, 2}, {}, 0.0561808},
        {0.009417, 8e6, {7}, {}, 0.0113281911765},
        {0.011717, 58e6, {0, 1}, {}, 0.0151758244048}}},
  };
}

NetworkCase random_network(std::uint64_t seed) {
  Random random(seed);
  NetworkCase n;
  const std::size_t links = 1 + random.below(12), flows = 1 + random.below(25);
  for (std::size_t l = 0; l < links; ++l)
    n.links.push_back({1e9 * static_cast<double>(1 + random.below(50)), random.below(2) == 0 ? 0 : 1e-6});
  for (std::size_t f = 0; f < flows; ++f) {
    FlowCase flow;
    flow.start_s = random.below(2) == 0 ? 0 : 1e-5 * static_cast<double>(random.below(200));
    flow.bytes = 1e5 * static_cast<double>(1 + random.below(300));
    for (std::size_t l = 0; l < links; ++l)
      if (random.below(3) == 0) flow.route.push_back(static_cast<int>(l));
    if (flow.route.empty()) flow.route.push_back(static_cast<int>(random.below(links)));
    if (f > 0 && random.below(4) == 0) flow.after.push_back(static_cast<int>(random.below(f)));
    if (random.below(4) == 0) flow.bound = 1e8 * static_cast<double>(1 + random.below(100));
    n.flows.push_back(flow);
  }
  return n;
}

}  // namespace

TEST_CASE("finish times agree with SimGrid's plain max-min solver") {
  for (const NetworkCase& network : simgrid_cases()) {
    CAPTURE(network.name);
    const std::vector<std::int64_t> ends = run_engine(network);
    for (std::size_t f = 0; f < ends.size(); ++f) {
      CAPTURE(f);
      // SimGrid prints 12 digits: 1e-11 relative of the last digit, and one picosecond per event of ours.
      CHECK(static_cast<double>(ends[f]) * 1e-12 == doctest::Approx(network.flows[f].finish_s).epsilon(1e-9));
    }
  }
}

TEST_CASE("the slow twin agrees with SimGrid too, so it may judge random networks") {
  for (const NetworkCase& network : simgrid_cases()) {
    CAPTURE(network.name);
    const std::vector<double> ends = run_twin(network);
    for (std::size_t f = 0; f < ends.size(); ++f)
      CHECK(ends[f] == doctest::Approx(network.flows[f].finish_s).epsilon(1e-9));
  }
}

TEST_CASE("random networks with starts, dependencies and bounds end when the slow twin says") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const NetworkCase network = random_network(seed);
    CAPTURE(seed);
    const std::vector<std::int64_t> ends = run_engine(network);
    const std::vector<double> expected = run_twin(network);
    for (std::size_t f = 0; f < ends.size(); ++f) {
      CAPTURE(f);
      // Half a picosecond of rounding per event on the path, at most about 50 events before any end: 1e-9 of 1 ms is
      // more.
      CHECK(static_cast<double>(ends[f]) * 1e-12 == doctest::Approx(expected[f]).epsilon(1e-8));
    }
  }
}

TEST_CASE("the order in which flows are started at one instant does not change when they end") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    NetworkCase network = random_network(seed);
    for (FlowCase& f : network.flows) f.after.clear();
    const std::vector<std::int64_t> ends = run_engine(network);
    NetworkCase reversed = network;
    std::reverse(reversed.flows.begin(), reversed.flows.end());
    std::vector<std::int64_t> back = run_engine(reversed);
    std::reverse(back.begin(), back.end());
    CHECK(ends == back);
  }
}

// Not a theorem where flows wait for each other (a faster flow can come to share a link that it missed before), so the
// networks are fixed by their seeds.
TEST_CASE("twice the rate of every link and bound does not end later on these networks") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const NetworkCase network = random_network(seed);
    NetworkCase faster = network;
    for (LinkCase& l : faster.links) l.rate *= 2;
    for (FlowCase& f : faster.flows) f.bound *= 2;
    const std::vector<std::int64_t> slow = run_engine(network), fast = run_engine(faster);
    CHECK(*std::max_element(fast.begin(), fast.end()) <= *std::max_element(slow.begin(), slow.end()));
  }
}
