#include "sim/engine/fluid.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/random.hpp"

using namespace tpusim;
using namespace tpusim::engine;

namespace {

struct World {
  Simulator sim;
  FluidNetwork net{sim};
  std::vector<std::pair<int, std::int64_t>> ends;  // flow, ps
  Action note(int flow) {
    return [this, flow] { ends.push_back({flow, sim.now().ps()}); };
  }
  FlowSpec flow(std::vector<LinkId> route, double bytes, double latency_s = 0) {
    FlowSpec spec;
    for (LinkId l : route) spec.route.push_back({l, 1});
    spec.bytes = Bytes(bytes);
    spec.latency = SimTime::from(Seconds(latency_s));
    return spec;
  }
  void until_solved() { sim.run_until(sim.now()); }
};

using Ends = std::vector<std::pair<int, std::int64_t>>;
constexpr std::int64_t us = 1000000;  // picoseconds

}  // namespace

TEST_CASE("one flow over several links takes its latency once and then its slowest link") {
  // 3 us + 90,000 B / 9e9 B/s = 13 us.
  World w;
  const LinkId fast = w.net.add_link(BytesPerSecond(45e9)), slow = w.net.add_link(BytesPerSecond(9e9));
  w.net.start(w.flow({fast, slow}, 90000, 3e-6), w.note(0));
  w.sim.run();
  CHECK(w.ends == Ends{{0, 13 * us}});
}

TEST_CASE("equal flows share a link equally and the rest speeds up when one leaves") {
  // 10 B/ns shared by two: 50 kB end after 10 us; the other has 100 kB left at 10 B/ns: 20 us in all.
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  w.net.start(w.flow({l}, 50000), w.note(0));
  const FlowId big = w.net.start(w.flow({l}, 150000), w.note(1));
  w.until_solved();
  CHECK(w.net.rate(big) == BytesPerSecond(5e9));
  CHECK(w.net.load(l) == BytesPerSecond(10e9));
  w.sim.run();
  CHECK(w.ends == Ends{{0, 10 * us}, {1, 20 * us}});
  CHECK(w.net.rate(big) == BytesPerSecond(0));
}

TEST_CASE("a flow held back elsewhere leaves its share to the others") {
  // A over l1 and l2, B over l1, C over l2; l1 10, l2 4 B/ns: A = C = 2, B = 8 (parking lot).
  World w;
  const LinkId l1 = w.net.add_link(BytesPerSecond(10e9)), l2 = w.net.add_link(BytesPerSecond(4e9));
  const FlowId a = w.net.start(w.flow({l1, l2}, 1e6), Action{});
  const FlowId b = w.net.start(w.flow({l1}, 1e6), Action{});
  const FlowId c = w.net.start(w.flow({l2}, 1e6), Action{});
  w.until_solved();
  CHECK(w.net.rate(a) == BytesPerSecond(2e9));
  CHECK(w.net.rate(b) == BytesPerSecond(8e9));
  CHECK(w.net.rate(c) == BytesPerSecond(2e9));
}

TEST_CASE("a bound holds a flow back and the others get the rest") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  FlowSpec bounded = w.flow({l}, 1e6);
  bounded.bound = BytesPerSecond(1e9);
  const FlowId a = w.net.start(bounded, Action{});
  const FlowId b = w.net.start(w.flow({l}, 1e6), Action{});
  const FlowId c = w.net.start(w.flow({l}, 1e6), Action{});
  w.until_solved();
  CHECK(w.net.rate(a) == BytesPerSecond(1e9));
  CHECK(w.net.rate(b) == BytesPerSecond(4.5e9));
  CHECK(w.net.rate(c) == BytesPerSecond(4.5e9));
}

TEST_CASE("a non-blocking link holds each flow to its capacity and shares nothing") {
  // A switch core of 4 B/ns between ports of 10: A and B come from ports of their own, C shares B's port: A = 4 (core),
  // B = 4 (core), C = 10 - 4 = 6 (port, does not cross the core). With a core of 2 B/ns: A = B = 2, C = 8.
  World w;
  const LinkId core = w.net.add_link(BytesPerSecond(4e9), Sharing::non_blocking);
  const LinkId p = w.net.add_link(BytesPerSecond(10e9)), q = w.net.add_link(BytesPerSecond(10e9));
  const FlowId a = w.net.start(w.flow({core, p}, 1e6), Action{});
  const FlowId b = w.net.start(w.flow({q, core}, 1e6), Action{});
  const FlowId c = w.net.start(w.flow({q}, 1e6), Action{});
  const FlowId d = w.net.start(w.flow({core}, 1e6), Action{});
  const auto rates = [&] {
    w.until_solved();
    std::vector<double> out;
    for (FlowId id : {a, b, c, d}) out.push_back(w.net.rate(id).value());
    return out;
  };
  CHECK(rates() == std::vector<double>{4e9, 4e9, 6e9, 4e9});
  CHECK(w.net.load(core) == BytesPerSecond(12e9));
  w.net.set_capacity(core, BytesPerSecond(2e9));
  CHECK(rates() == std::vector<double>{2e9, 2e9, 8e9, 2e9});
}

TEST_CASE("the two ways of a full-duplex link do not share, the two ways over a bus do") {
  // 1 MB each way at 10 B/ns: 100 us over two links, 200 us over the one bus.
  World w;
  const LinkId there = w.net.add_link(BytesPerSecond(10e9)), back = w.net.add_link(BytesPerSecond(10e9));
  const LinkId bus = w.net.add_link(BytesPerSecond(10e9));
  w.net.start(w.flow({there}, 1e6), w.note(0));
  w.net.start(w.flow({back}, 1e6), w.note(1));
  w.net.start(w.flow({bus}, 1e6), w.note(2));
  w.net.start(w.flow({bus}, 1e6), w.note(3));
  w.sim.run();
  CHECK(w.ends == Ends{{0, 100 * us}, {1, 100 * us}, {2, 200 * us}, {3, 200 * us}});
}

TEST_CASE("a slot that is used again by flows with longer and shorter routes keeps its links straight") {
  // Chains of 1, 9, 2, 17, 1 links of 1 B/ns, 1 kB each, one after the other: 1 us each.
  World w;
  std::vector<LinkId> links;
  for (int i = 0; i < 17; ++i) links.push_back(w.net.add_link(BytesPerSecond(1e9)));
  int at = 0;
  for (std::ptrdiff_t n : {1, 9, 2, 17, 1}) {
    w.net.start(w.flow({links.begin(), links.begin() + n}, 1000), w.note(n > 2 ? -1 : 1));
    w.sim.run();
    CHECK(w.ends.back().second == ++at * us);
    for (LinkId l : links) CHECK(w.net.load(l) == BytesPerSecond(0));
  }
}

TEST_CASE("a flow without links moves at its bound, or at once") {
  World w;
  FlowSpec bounded = w.flow({}, 1000);
  bounded.bound = BytesPerSecond(1e9);
  w.net.start(bounded, w.note(0));
  w.net.start(w.flow({}, 1000, 2e-6), w.note(1));
  w.sim.run();
  CHECK(w.ends == Ends{{0, 1 * us}, {1, 2 * us}});
}

TEST_CASE("a flow without bytes ends after its latency and takes no share") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(1e9));
  w.net.start(w.flow({l}, 0, 5e-6), w.note(0));
  w.net.start(w.flow({l}, 1000), w.note(1));
  CHECK(w.ends.empty());  // never inside start()
  w.sim.run();
  CHECK(w.ends == Ends{{1, 1 * us}, {0, 5 * us}});
}

TEST_CASE("flows that end at one instant end in the order given, then in the order of their start") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(4e9));
  for (int i = 0; i < 4; ++i) {
    FlowSpec spec = w.flow({l}, 1000);
    spec.order = i == 3 ? -1 : 0;
    w.net.start(spec, w.note(i));
  }
  w.sim.run();
  CHECK(w.ends == Ends{{3, 1 * us}, {0, 1 * us}, {1, 1 * us}, {2, 1 * us}});
}

TEST_CASE("all that ends or starts at one instant is solved once") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  for (int i = 0; i < 10; ++i) w.net.start(w.flow({l}, 1000), w.note(i));
  w.sim.run();
  CHECK(w.ends.size() == 10);
  CHECK(w.ends.back().second == 1 * us);
  CHECK(w.net.solves() == 2);  // after the starts, after the ends
}

TEST_CASE("a cancelled flow gives its share back and never reports") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  w.net.start(w.flow({l}, 100000), w.note(0));  // 5 B/ns until 4 us, then 10: 4 + (100 - 20)/10 = 12 us
  const FlowId other = w.net.start(w.flow({l}, 100000), w.note(1));
  struct Ctx {
    FluidNetwork* net;
    FlowId id;
  } ctx{&w.net, other};
  w.sim.at(SimTime::from_ps(4 * us), Priority::start, [c = &ctx] {
    CHECK(c->net->remaining(c->id).value() == doctest::Approx(80000).epsilon(1e-12));
    CHECK(c->net->cancel(c->id));
    CHECK_FALSE(c->net->cancel(c->id));
  });
  w.sim.run();
  CHECK(w.ends == Ends{{0, 12 * us}});
  CHECK(w.sim.now().ps() == 12 * us);
}

TEST_CASE("a flow cancelled before its first byte leaves nothing behind") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  const FlowId id = w.net.start(w.flow({l}, 100000, 1e-6), w.note(0));
  CHECK(w.net.cancel(id));
  w.sim.run();
  CHECK(w.ends.empty());
  CHECK(w.net.active_flows() == 0);
  CHECK(w.sim.now().ps() == 0);
}

TEST_CASE("a link that goes down stops its flows and lets them go on when it comes back") {
  // 100 kB at 10 B/ns: 4 us of the 10 done, down from 4 to 9 us, then at half rate: 9 + 60/5 = 21 us.
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(10e9));
  w.net.start(w.flow({l}, 100000), w.note(0));
  struct Ctx {
    FluidNetwork* net;
    LinkId link;
  } ctx{&w.net, l};
  w.sim.at(SimTime::from_ps(4 * us), Priority::start, [c = &ctx] { c->net->set_capacity(c->link, BytesPerSecond(0)); });
  w.sim.at(SimTime::from_ps(9 * us), Priority::start,
           [c = &ctx] { c->net->set_capacity(c->link, BytesPerSecond(5e9)); });
  w.sim.run();
  CHECK(w.ends == Ends{{0, 21 * us}});
}

TEST_CASE("a change in one part of the network leaves the other part alone") {
  World w;
  const LinkId a = w.net.add_link(BytesPerSecond(3e9)), b = w.net.add_link(BytesPerSecond(7e9));
  w.net.start(w.flow({a}, 1e6), w.note(0));  // 333.333333 us
  for (int i = 1; i <= 50; ++i) w.net.start(w.flow({b}, 1000.0 * i), w.note(i));
  w.sim.run();
  // 1e6/3e9 s to the nearest picosecond, not touched by the 50 solves of the other part.
  Ends zero;
  for (const auto& e : w.ends)
    if (e.first == 0) zero.push_back(e);
  CHECK(zero == Ends{{0, 333333333}});
}

TEST_CASE("faults of the caller are InternalErrors") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(1e9));
  CHECK_THROWS_AS(w.net.add_link(BytesPerSecond(-1)), InternalError);
  CHECK_THROWS_AS(w.net.add_link(BytesPerSecond(0.0 / 0.0)), InternalError);
  CHECK_THROWS_AS(w.net.start(w.flow({l}, -1), Action{}), InternalError);
  CHECK_THROWS_AS(w.net.start(w.flow({LinkId(7)}, 1), Action{}), InternalError);
}

TEST_CASE("a transfer longer than 106 days is refused by name") {
  World w;
  const LinkId l = w.net.add_link(BytesPerSecond(1));
  w.net.start(w.flow({l}, 1e10), Action{});
  CHECK_THROWS_AS(w.sim.run(), CapacityError);
}

namespace {

// `groups` equal copies of a small network, each with its own links, against one copy whose flows stand for the flows
// of each link.
struct Folded {
  std::vector<std::int64_t> ends;
  std::vector<double> rates;
};

// Classes of flows over classes of links: class f puts count[f][l] flows on each link of class l.
Folded run_folded(const std::vector<double>& capacity, const std::vector<std::vector<std::int64_t>>& count,
                  const std::vector<double>& bytes) {
  World w;
  for (double c : capacity) w.net.add_link(BytesPerSecond(c));
  std::vector<FlowId> ids;
  for (std::size_t f = 0; f < count.size(); ++f) {
    FlowSpec spec;
    for (std::size_t l = 0; l < capacity.size(); ++l)
      if (count[f][l] > 0) spec.route.push_back({LinkId(l), count[f][l]});
    spec.bytes = Bytes(bytes[f]);
    ids.push_back(w.net.start(spec, w.note(static_cast<int>(f))));
  }
  w.until_solved();
  Folded out;
  for (FlowId id : ids) out.rates.push_back(w.net.rate(id).value());
  w.sim.run();
  out.ends.resize(count.size());
  for (const auto& e : w.ends) out.ends[static_cast<std::size_t>(e.first)] = e.second;
  return out;
}

}  // namespace

TEST_CASE("folded and unfolded networks get the same rates and times bit for bit") {
  // n links of each class in a ring; class f has n flows; flow i of class f crosses, for each link class l, the links
  // i..i+count-1 (mod n), so every link of class l carries count[f][l] flows of class f.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::size_t classes = 1 + random.below(4), kinds = 1 + random.below(5);
    const std::int64_t n = 2 + static_cast<std::int64_t>(random.below(15));
    std::vector<double> capacity, bytes;
    for (std::size_t l = 0; l < classes; ++l) capacity.push_back(1e9 * (1 + 50 * random.uniform()));
    std::vector<std::vector<std::int64_t>> count(kinds);
    for (std::size_t f = 0; f < kinds; ++f) {
      bytes.push_back(std::floor(1e6 * (0.1 + random.uniform())));
      for (std::size_t l = 0; l < classes; ++l)
        count[f].push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n) + 1)));
      count[f][random.below(classes)] = 1;
    }
    const Folded folded = run_folded(capacity, count, bytes);

    World w;
    for (std::size_t l = 0; l < classes; ++l)
      for (std::int64_t i = 0; i < n; ++i) w.net.add_link(BytesPerSecond(capacity[l]));
    std::vector<FlowId> ids;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::size_t f = 0; f < kinds; ++f) {
        FlowSpec spec;
        spec.bytes = Bytes(bytes[f]);
        for (std::size_t l = 0; l < classes; ++l)
          for (std::int64_t k = 0; k < count[f][l]; ++k)
            spec.route.push_back({LinkId(static_cast<std::size_t>(static_cast<std::int64_t>(l) * n + (i + k) % n)), 1});
        ids.push_back(w.net.start(spec, w.note(static_cast<int>(f))));
      }
    w.until_solved();
    for (std::size_t i = 0; i < ids.size(); ++i) REQUIRE(w.net.rate(ids[i]).value() == folded.rates[i % kinds]);
    w.sim.run();
    REQUIRE(w.ends.size() == ids.size());
    for (const auto& e : w.ends) REQUIRE(e.second == folded.ends[static_cast<std::size_t>(e.first)]);
  }
}
