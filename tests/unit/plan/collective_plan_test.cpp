#include "sim/plan/collective_plan.hpp"

#include <doctest/doctest.h>

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
  CHECK(step_seconds(major[0], 45e3).value() == doctest::Approx(4e-6 + 4e-6));
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
