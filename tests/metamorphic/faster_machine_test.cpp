// A machine with something twice as fast is never slower.
//
// On the same plan the algorithm of every collective is held, and the interpreter runs the transfers of a link one
// after the other, so no two share one: every completion is a maximum of sums of durations, none of which grows. Never
// slower, to the picosecond. Planned anew, a faster link may change which algorithm the estimate prefers; then at most
// 5 % slower.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/random_job.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

timing::StepTiming time(const session::Planned& plan, const RandomJob& job, const timing::SpeedUp& speed_up) {
  timing::TimingOptions options;
  options.speed_up = speed_up;
  return timing::time_step(plan.program, job.chip, job.fabric, options);
}

std::vector<std::pair<std::string, timing::SpeedUp>> doubled() {
  std::vector<std::pair<std::string, timing::SpeedUp>> out(6);
  out[0].first = "peak", out[0].second.peak = 2;
  out[1].first = "vector", out[1].second.vector = 2;
  out[2].first = "HBM", out[2].second.hbm = 2;
  for (std::size_t level = 0; level < 3; ++level)
    out[3 + level].first = "links of level " + std::to_string(level), out[3 + level].second.links[level] = 2;
  return out;
}

fabric::Fabric with_bandwidth(fabric::Fabric fabric, double factor) {
  for (fabric::PhysicalAxis& axis : fabric.axes) axis.beta = axis.beta * factor;
  return fabric;
}

constexpr std::int64_t kElements = 16384;

bool other_algorithms(const session::Planned& a, const session::Planned& b) {
  if (a.program.plans.size() != b.program.plans.size()) return true;
  for (std::size_t i = 0; i < a.program.plans.size(); ++i)
    if (a.program.plans[i].algorithm != b.program.plans[i].algorithm) return true;
  return false;
}

}  // namespace

TEST_CASE(
    "on the same plan twice the peak, vector rate, HBM bandwidth or links of a level are never slower, to the "
    "picosecond") {
  std::size_t gained = 0;
  for (std::uint64_t seed = 2000; seed < 2120; ++seed) {
    const RandomJob job = random_job(seed, 64);
    const session::Planned plan = session::make_plan(job.spec, job.fabric);
    if (!plan.verdict) continue;
    const timing::StepTiming base = time(plan, job, {});
    REQUIRE(base.steady);
    for (const auto& [name, speed_up] : doubled()) {
      INFO("seed ", seed, ": ", describe(job), ", twice the ", name);
      const timing::StepTiming faster = time(plan, job, speed_up);
      REQUIRE(faster.steady);
      REQUIRE(faster.period <= base.period);
      REQUIRE(faster.first_step <= base.first_step);
      REQUIRE(faster.tally == base.tally);
      if (faster.period < base.period) ++gained;
    }
  }
  CHECK(gained >= 200);  // of about 600: a speed-up that changed nothing at all would pass the rest
}

TEST_CASE(
    "planned anew for links twice as fast, a job is at most 5 % slower, whether or not that changes an algorithm") {
  std::size_t faster = 0, changed = 0;
  for (std::uint64_t seed = 3000; seed < 3200; ++seed) {
    const RandomJob job = random_job(seed, 64);
    const session::Planned plan = session::make_plan(job.spec, job.fabric);
    if (!plan.verdict) continue;
    RandomJob doubled_job = job;
    doubled_job.fabric = with_bandwidth(job.fabric, 2);
    const session::Planned again = session::make_plan(doubled_job.spec, doubled_job.fabric);
    INFO("seed ", seed, ": ", describe(job));
    const SimTime before = time(plan, job, {}).period, after = time(again, doubled_job, {}).period;
    REQUIRE(after.seconds().value() <= 1.05 * before.seconds().value());
    if (after < before) ++faster;
    if (other_algorithms(plan, again)) ++changed;
  }
  CHECK(faster >= 100);
  CHECK(changed >= 5);  // so the case is really among them
}

TEST_CASE("a case where twice the bandwidth changes the algorithm: an all-reduce of 8 over two switches") {
  // 64 KiB over 2 hosts of 4 chips through switches, a = 20 us a message. Which of the candidates is the cheapest
  // depends on the share of the latency; a faster link makes latency weigh more.
  const auto axis = [](int physical, std::int64_t size, double alpha, double beta) {
    return plan::GroupAxis{physical, size, 1, fabric::Link::switched, size, Seconds(alpha), BytesPerSecond(beta)};
  };
  const auto best = [&](double beta) {
    return plan::candidates(plan::CollectiveKind::all_reduce, ir::Reduction::sum, kElements, 4,
                            {axis(0, 2, 20e-6, beta), axis(1, 4, 20e-6, beta)})
        .front();
  };
  double beta = 1e6;
  while (best(beta).plan.algorithm == best(2 * beta).plan.algorithm && beta < 1e15) beta *= 2;
  const plan::Candidate slow = best(beta), fast = best(2 * beta);
  REQUIRE(slow.plan.algorithm != fast.plan.algorithm);
  CHECK(fast.alpha_term < slow.alpha_term);  // fewer messages
  CHECK((fast.alpha_term + fast.beta_term) < (slow.alpha_term + slow.beta_term));
}
