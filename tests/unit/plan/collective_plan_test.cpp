#include "sim/plan/collective_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace tpusim;
using namespace tpusim::plan;

namespace {

GroupAxis axis(int physical, std::int64_t size, fabric::Link link, double alpha = 1e-6, double beta = 45e9) {
  GroupAxis a;
  a.physical = physical;
  a.size = size;
  a.physical_size = size;
  a.link = link;
  a.alpha = Seconds(alpha);
  a.beta = BytesPerSecond(beta);
  return a;
}

// A switch along which every algorithm that one has is offered.
GroupAxis offering(std::int64_t size, double alpha = 1e-6, double beta = 45e9) {
  GroupAxis a = axis(0, size, fabric::Link::switched, alpha, beta);
  for (LineAlgorithm algorithm : {LineAlgorithm::ring, LineAlgorithm::halving_doubling, LineAlgorithm::direct,
                                  LineAlgorithm::double_tree, LineAlgorithm::in_network})
    a.offers.push_back({algorithm, fabric::Protocol::none, Seconds(0), a.alpha, a.beta});
  return a;
}

Candidate offered(CollectiveKind kind, std::int64_t elements, const GroupAxis& axis, LineAlgorithm algorithm) {
  for (Candidate& c : candidates(kind, ir::Reduction::sum, elements, 4, {axis}))
    if (c.plan.phases[0].works[0].algorithm == algorithm) return std::move(c);
  FAIL("no such candidate");
  return {};
}

// What the moves of a step put on the busiest port: the switch adds up what comes in for one chunk (a reduction in the
// network), and makes the copies that leave nobody's port.
StepLoad load_of(LineAlgorithm algorithm, const LineStep& step, std::int64_t n, std::int64_t pieces,
                 std::int64_t part) {
  std::map<std::int32_t, std::int64_t> out, in;
  std::set<std::pair<std::int32_t, std::int32_t>> summed;
  for (const Move& m : step) {
    const std::int64_t elements =
        piece_of(part, m.piece, pieces_of(algorithm, pieces)).count * (m.chunk == Move::every_chunk ? n : 1);
    if (!m.free) out[m.from] += elements;
    if (algorithm != LineAlgorithm::in_network || !m.add || summed.emplace(m.to, m.chunk).second) in[m.to] += elements;
  }
  StepLoad load{1, 0, 0};
  for (const auto& [member, elements] : out) load.forward = std::max(load.forward, elements);
  for (const auto& [member, elements] : in) load.backward = std::max(load.backward, elements);
  return load;
}

const CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                 CollectiveKind::all_reduce};

}  // namespace

TEST_CASE(
    "every candidate on one axis of 2 to 17 members ends where the definition says and moves the bytes that it is "
    "charged") {
  for (fabric::Link link : {fabric::Link::ring, fabric::Link::line, fabric::Link::switched})
    for (std::int64_t n = 2; n <= 17; ++n)
      for (CollectiveKind kind : kKinds)
        for (const Candidate& c : candidates(kind, ir::Reduction::sum, 7 * n, 4, {axis(0, n, link)})) {
          INFO(n, " ", c.plan.algorithm);
          CHECK(verify(c.plan) == "");
        }
}

TEST_CASE("every candidate on grids of two and three axes ends where the definition says, small shards included") {
  for (std::int64_t x : {2, 3, 4})
    for (std::int64_t y : {2, 4})
      for (std::int64_t z : {1, 2, 3})
        for (std::int64_t shard : {1, 2, 5})
          for (CollectiveKind kind : kKinds) {
            std::vector<GroupAxis> axes = {axis(0, x, fabric::Link::ring), axis(1, y, fabric::Link::line)};
            if (z > 1) axes.push_back(axis(2, z, fabric::Link::switched));
            for (const Candidate& c : candidates(kind, ir::Reduction::sum, shard * x * y * z, 2, axes)) {
              INFO(x, "x", y, "x", z, " ", c.plan.algorithm);
              CHECK(verify(c.plan) == "");
            }
          }
}

TEST_CASE(
    "a ring all-gather costs (n-1)(a + V/(nW)), a bidirectional one floor(n/2) a + V(n-1)/(2nW), a line (n-1)(a + "
    "V/(nW))") {
  const double a = 1e-6, w = 45e9;
  for (std::int64_t n : {2, 3, 4, 5, 8, 16}) {
    const std::int64_t elements = n * 1000;  // even shards, so halves are exact
    const double v = static_cast<double>(elements) * 2;
    for (fabric::Link link : {fabric::Link::ring, fabric::Link::line, fabric::Link::switched})
      for (const Candidate& c :
           candidates(CollectiveKind::all_gather, ir::Reduction::sum, elements, 2, {axis(0, n, link, a, w)})) {
        const double dn = static_cast<double>(n);
        const bool two_way = c.plan.phases[0].works[0].algorithm == LineAlgorithm::bidirectional_ring;
        const double expected =
            two_way ? static_cast<double>(n / 2) * a + v * (dn - 1) / (2 * dn * w) : (dn - 1) * (a + v / (dn * w));
        CHECK((c.alpha_term + c.beta_term).value() == doctest::Approx(expected).epsilon(1e-12));
      }
  }
}

TEST_CASE("an all-gather over k wrapped axes of size X is estimated at k floor(X/2) a + V(1-1/n)/(2kW)") {
  // V = 4096 x 12 elements of 2 bytes; n = X^k; parts and halves divide.
  for (std::int64_t k : {2, 3}) {
    const std::int64_t x = 4, n = k == 2 ? 16 : 64;
    std::vector<GroupAxis> axes;
    for (std::int64_t i = 0; i < k; ++i) axes.push_back(axis(static_cast<int>(i), x, fabric::Link::ring));
    const std::int64_t elements = n * 1200;
    const Candidate best = candidates(CollectiveKind::all_gather, ir::Reduction::sum, elements, 2, axes).front();
    CHECK(best.plan.part_elements.size() == static_cast<std::size_t>(k));
    const double v = static_cast<double>(elements) * 2, dk = static_cast<double>(k);
    CHECK((best.alpha_term + best.beta_term).value() ==
          doctest::Approx(dk * 2 * 1e-6 + v * (1 - 1.0 / static_cast<double>(n)) / (2 * dk * 45e9)).epsilon(1e-12));
  }
}

TEST_CASE("a plan with a move left out, doubled or misdirected is caught by its rule") {
  CollectivePlan plan = choose(CollectiveKind::all_gather, ir::Reduction::sum, 32, 4,
                               {axis(0, 4, fabric::Link::ring), axis(1, 2, fabric::Link::line)});
  REQUIRE(verify(plan) == "");
  CollectivePlan missing = plan;
  missing.phases.pop_back();
  CHECK(verify(missing).substr(0, 7) == "plan.c3");
  CollectivePlan doubled = plan;
  doubled.phases.push_back(doubled.phases.back());
  CHECK(verify(doubled).substr(0, 7) == "plan.c2");
  CollectivePlan early = plan;
  std::swap(early.phases.front(), early.phases.back());
  CHECK(verify(early) != "");
  CollectivePlan miscounted = plan;
  miscounted.total_bytes += 1;
  CHECK(verify(miscounted).substr(0, 7) == "plan.c4");
}

TEST_CASE(
    "two mesh axes that divide one physical axis join up to the whole ring, and each alone is a line or a shared "
    "ring") {
  fabric::Fabric fabric;
  fabric.axes.push_back({"x", 16, fabric::Level::chip, fabric::Link::ring, Seconds(1e-6), BytesPerSecond(45e9)});
  spmd::Placement placement;
  placement.parts = {{{0, 4, 4}}, {{0, 4, 1}}};  // axis 0 strides over axis 1
  const std::vector<GroupAxis> whole = group_axes({0, 1}, placement, fabric);
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].size == 16);
  CHECK(whole[0].stride == 1);
  CHECK(whole[0].link == fabric::Link::ring);
  const std::vector<GroupAxis> major = group_axes({0}, placement, fabric), minor = group_axes({1}, placement, fabric);
  CHECK(major[0].link == fabric::Link::ring);
  CHECK(major[0].stride == 4);
  CHECK(minor[0].link == fabric::Link::line);
  // A step of the major group crosses 4 hops on links shared by 4 groups.
  CHECK(step_seconds(major[0], {}, 45e3).value() == doctest::Approx(4e-6 + 4e-6));
}

TEST_CASE("the formula of a candidate shows its steps and what one link carries, in symbols and in numbers") {
  // 45e6 elements of 4 bytes gathered by 5: V = 180 MB, a step of 5 us. One way round, which is
  // what a switch has: 4 steps, 4/5 V on each link.
  const std::vector<Candidate> ring = candidates(CollectiveKind::all_gather, ir::Reduction::sum, 45'000'000, 4,
                                                 {axis(0, 5, fabric::Link::switched, 5e-6)});
  REQUIRE(ring.size() == 1);
  CHECK(formula_of(ring[0].plan, 180e6) == "4 a + 0.8 V/W = 4 x 5 us + 137 MiB / 45 GB/s");
  // Both ways round: 2 steps, half of that.
  const std::vector<Candidate> both =
      candidates(CollectiveKind::all_gather, ir::Reduction::sum, 45'000'000, 4, {axis(0, 5, fabric::Link::ring, 5e-6)});
  CHECK(formula_of(both[0].plan, 180e6) == "2 a + 0.4 V/W = 2 x 5 us + 68.7 MiB / 45 GB/s");
  CHECK(formula_of(candidates(CollectiveKind::all_gather, ir::Reduction::sum, 8, 4, {})[0].plan, 32) ==
        "nothing to send");
}

TEST_CASE("every offer of a switch of 2 to 17 members gives a sound plan, in pipelines of one piece and of several") {
  for (std::int64_t n = 2; n <= 17; ++n)
    for (CollectiveKind kind : kKinds) {
      const std::vector<Candidate> all = candidates(kind, ir::Reduction::sum, 7 * n, 4, {offering(n)});
      CHECK(all.size() == (kind == CollectiveKind::all_reduce ? 5 : 3));
      for (const Candidate& c : all)
        for (std::int64_t pieces : {1, 2, 3}) {
          INFO(n, " ", c.plan.algorithm, ", ", pieces, " pieces");
          CHECK(verify(with_pieces(c.plan, pieces)) == "");
        }
    }
}

TEST_CASE("an all-reduce over hosts and chips may take its last axis in place, and is sound") {
  for (std::int64_t hosts : {2, 3, 4})
    for (std::int64_t chips : {2, 4}) {
      GroupAxis host = offering(hosts), chip = offering(chips);
      chip.physical = 1;
      int in_place = 0;
      for (const Candidate& c :
           candidates(CollectiveKind::all_reduce, ir::Reduction::sum, 12 * hosts * chips, 4, {host, chip})) {
        INFO(hosts, " ", chips, " ", c.plan.algorithm);
        CHECK(verify(with_pieces(c.plan, 2)) == "");
        if (c.plan.phases.size() == 3) ++in_place;
      }
      CHECK(in_place == 2);  // over the hosts or over the chips
    }
}

TEST_CASE("the loads of an algorithm's steps are those of its moves") {
  const std::int64_t part = 2 * 3 * 4 * 5;
  for (LineAlgorithm algorithm : {LineAlgorithm::ring, LineAlgorithm::halving_doubling, LineAlgorithm::direct,
                                  LineAlgorithm::double_tree, LineAlgorithm::in_network})
    for (std::int64_t n = 2; n <= 33; ++n)
      for (std::int64_t pieces : {1, 2, 3, 5, 10, 20, 60}) {
        if (!reduces_in_place(algorithm) && pieces > 1) continue;
        std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> played, stated;
        for (const LineStep& step : line_steps(algorithm, n, pieces)) {
          const StepLoad load = load_of(algorithm, step, n, pieces, part);
          // A ring's step goes one way: what a member sends is what the next receives, over one link.
          ++played[{load.forward, algorithm == LineAlgorithm::ring ? 0 : load.backward}];
        }
        for (const StepLoad& load : step_loads(algorithm, n, pieces, part))
          stated[{load.forward, load.backward}] += load.count;
        INFO(name_of(algorithm), " of ", n, " in ", pieces);
        CHECK(played == stated);
      }
}

TEST_CASE("nobody but one has children in both trees of a double tree, and both are as deep as a binary tree") {
  for (std::int64_t n = 2; n <= 300; ++n) {
    const std::vector<std::int32_t> first = tree_parents(n, false), second = tree_parents(n, true);
    std::set<std::int32_t> inner;
    int twice = 0, roots = 0;
    for (const std::int32_t p : first) p < 0 ? static_cast<void>(++roots) : static_cast<void>(inner.insert(p));
    std::set<std::int32_t> both;
    for (const std::int32_t p : second) {
      if (p < 0) ++roots;
      if (p >= 0 && inner.count(p) != 0 && both.insert(p).second) ++twice;
    }
    CHECK(roots == 2);
    CHECK(twice <= (n % 2 == 0 ? 0 : 1));
    std::int64_t deepest = 0;
    for (const auto* parents : {&first, &second})
      for (std::int32_t p : *parents) {
        std::int64_t depth = 0;
        for (; p >= 0; p = (*parents)[static_cast<std::size_t>(p)]) ++depth;
        deepest = std::max(deepest, depth);
      }
    // A root with one child above a binary tree of n - 1.
    CHECK(deepest <= static_cast<std::int64_t>(std::floor(std::log2(static_cast<double>(n)))) + 1);
  }
}

TEST_CASE(
    "halving-doubling takes ceil(log2 n) a + V(n-1)/(nW), a direct exchange a + V(n-1)/(nW), an all-reduce twice "
    "that") {
  const double a = 1e-6, w = 45e9;
  for (std::int64_t n = 2; n <= 17; ++n)
    for (CollectiveKind kind : kKinds) {
      const std::int64_t elements = n * 1000;
      const double dn = static_cast<double>(n), v = dn * 4000, times = kind == CollectiveKind::all_reduce ? 2 : 1;
      const auto total = [&](LineAlgorithm algorithm) {
        const Candidate c = offered(kind, elements, offering(n, a, w), algorithm);
        return (c.alpha_term + c.beta_term).value();
      };
      const double bytes = v * (dn - 1) / (dn * w);
      CHECK(total(LineAlgorithm::halving_doubling) ==
            doctest::Approx(times * (std::ceil(std::log2(dn)) * a + bytes)).epsilon(1e-12));
      CHECK(total(LineAlgorithm::direct) == doctest::Approx(times * (a + bytes)).epsilon(1e-12));
    }
}

TEST_CASE("an all-reduce in the network of g pieces takes (g+1) a + V/W ((n+1)/n + (n-1)/(n g))") {
  // The first step brings n pieces of V/(n g) to the switch, the last takes as many from it, and those between carry
  // one more each way: 2 n + (g-1)(n+1) = g (n+1) + n - 1.
  const double a = 1e-6, w = 45e9;
  for (std::int64_t n : {2, 3, 8, 16})
    for (std::int64_t g : {1, 2, 5, 100}) {
      const double dn = static_cast<double>(n), dg = static_cast<double>(g), v = dn * 1000 * 4;
      Candidate c = offered(CollectiveKind::all_reduce, n * 1000, offering(n, a, w), LineAlgorithm::in_network);
      const CollectivePlan plan = with_pieces(c.plan, g);
      double time = 0;
      for (const StepLoad& load : step_loads(LineAlgorithm::in_network, n, g, plan.shard_elements))
        time += static_cast<double>(load.count) *
                step_seconds(plan.axes[0], plan.phases[0].works[0],
                             4 * static_cast<double>(std::max(load.forward, load.backward)))
                    .value();
      CHECK(plan.shard_elements == 1000);
      CHECK(time == doctest::Approx((dg + 1) * a + v / w * ((dn + 1) / dn + (dn - 1) / (dn * dg))).epsilon(1e-12));
    }
}

TEST_CASE("a double tree of 2^k members takes (2k+g-1) a, and moves 2V over a port in a full pipeline") {
  // Depth k: a root above a complete binary tree of 2^k - 1. In a full step the busiest port sends 4 pieces of V/(2g):
  // up and twice down in the tree where its member has children, up in the other.
  for (std::int64_t k : {2, 3, 5, 8}) {
    const std::int64_t n = std::int64_t{1} << k, g = 64;
    std::int64_t steps = 0, most = 0;
    for (const StepLoad& load : step_loads(LineAlgorithm::double_tree, n, g, 2 * g)) {
      steps += load.count;
      most = std::max({most, load.forward, load.backward});
    }
    CHECK(steps == 2 * k + g - 1);
    CHECK(most == 4 * n);  // 4 pieces, each one element of every one of n chunks; 2g of them are V
  }
}

TEST_CASE("the length of a pipeline is the cheapest of all lengths up to rounding") {
  for (LineAlgorithm algorithm : {LineAlgorithm::in_network, LineAlgorithm::double_tree})
    for (std::int64_t n : {2, 4, 8, 16})
      for (std::int64_t elements : {std::int64_t{1} << 10, std::int64_t{1} << 16, std::int64_t{1} << 22}) {
        const Candidate chosen = offered(CollectiveKind::all_reduce, elements, offering(n, 3e-6, 3e11), algorithm);
        const auto time = [&](const CollectivePlan& plan) {
          double t = 0;
          const Phase::Work& work = plan.phases[0].works[0];
          for (const StepLoad& load : step_loads(algorithm, n, work.pieces, plan.shard_elements))
            t += static_cast<double>(load.count) *
                 step_seconds(plan.axes[0], work, 4 * static_cast<double>(std::max(load.forward, load.backward)))
                     .value();
          return t;
        };
        double best = 1;
        for (std::int64_t pieces = 1; pieces <= 1024; pieces = std::max(pieces + 1, pieces * 9 / 8))
          best = std::min(best, time(with_pieces(chosen.plan, pieces)));
        INFO(name_of(algorithm), " of ", n, ", ", elements, " elements, ", chosen.plan.phases[0].works[0].pieces,
             " pieces");
        // The formula ignores how the pipeline of a double tree fills step by step.
        CHECK(time(chosen.plan) <= 1.05 * best);
      }
}

TEST_CASE("an offer's base is paid once by a collective, and the formula shows it") {
  GroupAxis a = axis(0, 4, fabric::Link::switched);
  a.offers.push_back({LineAlgorithm::ring, fabric::Protocol::ll, Seconds(6.6e-6), Seconds(1e-6), BytesPerSecond(1e9)});
  const Candidate c = candidates(CollectiveKind::all_reduce, ir::Reduction::sum, 4000, 4, {a}).front();
  // 16,000 bytes: 3/4 of them twice.
  CHECK((c.alpha_term + c.beta_term).value() == doctest::Approx(6.6e-6 + 6e-6 + 24e-6));
  CHECK(c.plan.algorithm == "ring of 4 (LL)");
  CHECK(formula_of(c.plan, 16000) ==
        "b + 3 a + 0.75 V/W + 3 a + 0.75 V/W = 6.6 us + 3 x 1 us + 11.7 KiB / 1 GB/s + 3 x 1 us + 11.7 KiB / 1 GB/s");
}
