// The network against another solver of the same model (SimGrid 3.32; simgrid_cases.txt says how it was set) and
// against a slow twin of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "fluid_support.hpp"
#include "sim/base/random.hpp"

using namespace tpusim;
using namespace tpusim::engine;
using namespace tpusim::engine::testing;

namespace {

std::vector<NetworkCase> simgrid_cases() {
  return read_cases(TPUSIM_SOURCE_DIR "/tests/unit/engine/simgrid_cases.txt");
}

NetworkCase random_network(std::uint64_t seed, std::size_t most_links = 12, std::size_t most_flows = 25) {
  Random random(seed);
  NetworkCase n;
  const std::size_t links = 1 + random.below(most_links), flows = 1 + random.below(most_flows);
  for (std::size_t l = 0; l < links; ++l) {
    const double rate = 1e9 * static_cast<double>(1 + random.below(50)), latency = random.below(2) == 0 ? 0 : 1e-6;
    n.links.push_back({rate, latency, random.below(6) == 0});
  }
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
  std::size_t flows = 0;
  for (const NetworkCase& network : simgrid_cases()) flows += network.flows.size();
  REQUIRE(simgrid_cases().size() == 22);
  REQUIRE(flows == 652);
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

TEST_CASE("10,000 small random networks are max-min fair at every instant and end when the slow twin says") {
  for (std::uint64_t seed = 1000; seed < 11000; ++seed) {
    const NetworkCase network = random_network(seed, 6, 10);
    std::vector<std::string> violations;
    const std::vector<std::int64_t> ends = run_engine(network, &violations);
    const std::vector<double> expected = run_twin(network);
    REQUIRE_MESSAGE(violations.empty(), "seed " << seed << ": " << violations.front());
    for (std::size_t f = 0; f < ends.size(); ++f) {
      // The design's tolerance: 1e-9 relative or 1 ps per event, of which a flow has two.
      const double allowed = std::max(1e-9 * expected[f], 2e-12 * static_cast<double>(ends.size()));
      const double apart = std::abs(static_cast<double>(ends[f]) * 1e-12 - expected[f]);
      REQUIRE_MESSAGE(apart <= allowed, "seed " << seed << ", flow " << f << ": " << ends[f] << " ps");
    }
  }
}

TEST_CASE("rates are the twin's after any mix of starts, ends, cancels and links that slow down, stop and recover") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    NetworkCase network = random_network(seed, 8, 1);
    network.flows.clear();
    Simulator sim;
    FluidNetwork net(sim);
    for (const LinkCase& l : network.links)
      net.add_link(BytesPerSecond(l.rate), l.non_blocking ? Sharing::non_blocking : Sharing::shared);
    std::vector<FlowId> ids;
    for (int round = 0; round < 60; ++round) {
      if (const std::uint64_t what = random.below(4); what < 2 || ids.empty()) {
        FlowCase f;
        FlowSpec spec;
        for (std::size_t hops = random.below(5); hops > 0; --hops)  // a link may come twice
          f.route.push_back(static_cast<int>(random.below(network.links.size())));
        if (f.route.empty() || random.below(3) == 0) f.bound = 1e8 * static_cast<double>(1 + random.below(100));
        for (int l : f.route) spec.route.push_back({LinkId(l), 1});
        if (f.bound > 0) spec.bound = BytesPerSecond(f.bound);
        spec.bytes = Bytes(1e5 * static_cast<double>(1 + random.below(100)));
        network.flows.push_back(f);
        ids.push_back(net.start(spec, Action{}));
      } else if (what == 2) {
        net.cancel(ids[random.below(ids.size())]);
      } else {
        const std::size_t l = random.below(network.links.size());
        network.links[l].rate = 1e9 * static_cast<double>(random.below(20));
        net.set_capacity(LinkId(l), BytesPerSecond(network.links[l].rate));
      }
      sim.run_until(sim.now() + SimTime::from_ps(static_cast<std::int64_t>(random.below(3)) * 1000000));
      std::vector<std::size_t> moving;
      for (std::size_t f = 0; f < ids.size(); ++f)
        if (net.remaining(ids[f]).value() > 0) moving.push_back(f);
      REQUIRE(moving.size() == net.active_flows());
      const std::vector<double> rates = twin_rates(network, moving);
      for (std::size_t f : moving)
        // The twin adds a raise per round: some dozen roundings of at most 2^-53 of a link's capacity.
        REQUIRE(std::abs(net.rate(ids[f]).value() - rates[f]) <= 1e-10 * std::max(1e9, rates[f]));
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
