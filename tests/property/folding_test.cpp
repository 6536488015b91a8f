// Folding by class and repetition change no picosecond: every random job is timed with both, without either, and
// compared.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/plan/step_program.hpp"
#include "tests/support/random_job.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

constexpr std::uint64_t kJobs = 300;
constexpr std::int64_t kMostDevices = 64;

// Means over devices are sums in another order when every device is a class of its own: a few roundings apart. Whole
// counts are equal.
void same_totals(const timing::StepTiming& folded, const timing::StepTiming& unfolded, std::int64_t devices) {
  REQUIRE(unfolded.transfers.size() == folded.transfers.size());
  const auto n = static_cast<double>(devices);
  for (std::size_t t = 0; t < folded.transfers.size(); ++t) {
    REQUIRE(std::llround(unfolded.transfers[t].count * n) == std::llround(folded.transfers[t].count * n));
    REQUIRE(std::llround(unfolded.transfers[t].bytes * n) == std::llround(folded.transfers[t].bytes * n));
    REQUIRE(unfolded.transfers[t].busy.value() == doctest::Approx(folded.transfers[t].busy.value()).epsilon(1e-12));
    REQUIRE(unfolded.transfers[t].exposed.value() ==
            doctest::Approx(folded.transfers[t].exposed.value()).epsilon(1e-12));
  }
}

void same_bits(const timing::StepTiming& a, const timing::StepTiming& b) {
  REQUIRE(b.period == a.period);
  REQUIRE(b.first_step == a.first_step);
  REQUIRE(b.steady == a.steady);
  REQUIRE(b.steps_played == a.steps_played);
  REQUIRE(b.tally == a.tally);
  REQUIRE(b.executed_flops == a.executed_flops);
  REQUIRE(b.vector_flops == doctest::Approx(a.vector_flops).epsilon(1e-12));
  REQUIRE(b.model_flops == doctest::Approx(a.model_flops).epsilon(1e-12));
}

// Jobs number part, part + parts, ...; returns how many could be planned.
std::uint64_t compare(std::uint64_t part, std::uint64_t parts) {
  std::uint64_t planned = 0;
  for (std::uint64_t seed = part; seed < kJobs; seed += parts) {
    const RandomJob job = random_job(seed, kMostDevices);
    INFO("seed ", seed, ": ", describe(job));
    const session::Planned plan = session::make_plan(job.spec, job.fabric);
    if (!plan.verdict) continue;
    ++planned;
    const plan::StepProgram& program = plan.program;
    timing::TimingOptions both, played, unfolded, neither;
    if (seed % 4 == 1) {  // a host that is now and then too slow
      both.input.emplace();
      both.input->examples_per_host = static_cast<double>(job.spec.global_batch);
      both.input->stages = {{"decode", 2, Seconds(1e-5 * static_cast<double>(1 + seed % 50))}};
      both.input->prefetch = 1 + static_cast<std::int64_t>(seed % 3);
      played.input = unfolded.input = neither.input = both.input;
    }
    played.repetition = neither.repetition = false;
    unfolded.per_device = neither.per_device = true;
    const timing::StepTiming a = timing::time_step(program, job.chip, job.fabric, both);
    REQUIRE_FALSE(a.stall.has_value());
    REQUIRE(a.classes == static_cast<std::size_t>(program.stages));

    const timing::StepTiming b = timing::time_step(program, job.chip, job.fabric, played);
    same_bits(a, b);
    REQUIRE(b.spent_by_class == a.spent_by_class);
    for (std::size_t t = 0; t < a.transfers.size(); ++t) {
      REQUIRE(b.transfers[t].count == a.transfers[t].count);
      REQUIRE(b.transfers[t].bytes == a.transfers[t].bytes);
      REQUIRE(b.transfers[t].busy == a.transfers[t].busy);
      REQUIRE(b.transfers[t].exposed == a.transfers[t].exposed);
    }

    for (const timing::TimingOptions& options : {unfolded, neither}) {
      const timing::StepTiming c = timing::time_step(program, job.chip, job.fabric, options);
      same_bits(a, c);
      REQUIRE(c.classes == static_cast<std::size_t>(program.mesh.devices()));
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
        const std::int64_t stage = program.pipeline_axis < 0 ? 0 : program.mesh.coordinate(d, program.pipeline_axis);
        REQUIRE(c.spent_by_class[static_cast<std::size_t>(d)] == a.spent_by_class[static_cast<std::size_t>(stage)]);
      }
      same_totals(a, c, program.mesh.devices());
    }
  }
  return planned;
}

}  // namespace

// 300 jobs, of which about one in four is refused (heads that do not divide, too few microbatches): at least 200 must
// remain.
TEST_CASE(
    "folded or not, repeated or played out, more than 200 random jobs on up to 64 devices take the same picoseconds") {
  CHECK(compare(0, 1) >= 200);
}

TEST_CASE("the parts of a step sum to its period in 100 random jobs, and so do those of every class") {
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    const RandomJob job = random_job(seed, kMostDevices);
    INFO("seed ", seed, ": ", describe(job));
    const session::Planned plan = session::make_plan(job.spec, job.fabric);
    if (!plan.verdict) continue;
    const timing::StepTiming t = timing::time_step(plan.program, job.chip, job.fabric, {});
    REQUIRE(t.steady);
    for (const run::Spent& spent : t.spent_by_class) {
      REQUIRE(spent.total() == t.period.ps());
      std::int64_t exposed = 0;
      for (std::int64_t e : spent.exposed) exposed += e;
      REQUIRE(exposed == spent.communication);
    }
    // Five means of doubles near the period: within a few roundings of each.
    const double sum = (t.compute + t.communication + t.bubble + t.input + t.overhead).value();
    REQUIRE(std::abs(sum - t.period.seconds().value()) <= 1e-12 * t.period.seconds().value());
  }
}
