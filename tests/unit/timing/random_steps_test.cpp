// Random steps: every shortcut of the interpreter leaves the same picoseconds as playing everything, device by device.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/timing/random_steps_support.hpp"

using namespace tpusim;
using namespace tpusim::timing;
using namespace tpusim::timing::testing;

TEST_CASE("with and without repetition, and with nothing ever forgotten, 400 random steps end at the same picosecond") {
  std::int64_t replayed = 0, added = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const plan::StepProgram program = random_step(random, 64);
    const Trace on = trace(program, run::Folding::per_stage, true, 4),
                off = trace(program, run::Folding::per_stage, false, 4);
    const Trace whole = trace<OpaqueBackend>(program, run::Folding::per_stage, false, 4);
    REQUIRE(off.ends == whole.ends);
    REQUIRE(off.spent == whole.spent);
    REQUIRE(on.ends == off.ends);
    REQUIRE(on.spent == off.spent);
    REQUIRE(on.calls == off.calls);
    REQUIRE(off.counts.replayed + off.counts.added == 0);
    REQUIRE(on.counts.played + on.counts.replayed + on.counts.added == off.counts.played);
    replayed += on.counts.replayed;
    added += on.counts.added;
  }
  CHECK(replayed > 10000);  // the shortcuts were really taken
  CHECK(added > 10000);
}

TEST_CASE("a class for each stage and a class for each device give 200 random steps the same picoseconds") {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const plan::StepProgram program = random_step(random, 64);
    const bool repetition = seed % 2 == 0;
    const Trace folded = trace(program, run::Folding::per_stage, true, 3),
                unfolded = trace(program, run::Folding::per_device, repetition, 3);
    for (std::size_t step = 0; step < folded.ends.size(); ++step)
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
        const auto stage = static_cast<std::size_t>(program.mesh.coordinate(d, program.pipeline_axis));
        REQUIRE(unfolded.ends[step][static_cast<std::size_t>(d)] == folded.ends[step][stage]);
        REQUIRE(unfolded.spent[step][static_cast<std::size_t>(d)] == folded.spent[step][stage]);
        REQUIRE(unfolded.calls[step][static_cast<std::size_t>(d)] == folded.calls[step][stage]);
      }
  }
}

TEST_CASE(
    "what a device spends its time on adds up to the end of its compute stream, at every step of 200 random steps") {
  for (std::uint64_t seed = 2000; seed < 2200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Trace t = trace(random_step(random, 64), run::Folding::per_stage, true, 3);
    for (std::size_t step = 0; step < t.ends.size(); ++step)
      for (std::size_t c = 0; c < t.ends[step].size(); ++c) {
        const run::Spent& spent = t.spent[step][c];
        REQUIRE(spent.total() == t.ends[step][c]);
        std::int64_t exposed = 0;
        for (std::int64_t e : spent.exposed) exposed += e;
        REQUIRE(exposed == spent.communication);
      }
  }
}

TEST_CASE("a step's result is the same folded or not, repeated or played out, and its parts add up to the period") {
  for (std::uint64_t seed = 3000; seed < 3200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const plan::StepProgram program = random_step(random, 64);
    const fabric::Fabric fabric = fabric_of(program);
    TimingOptions plain, played, unfolded;
    played.repetition = false;
    unfolded.per_device = true;
    const StepTiming a = time_step(program, {}, fabric, plain), b = time_step(program, {}, fabric, played),
                     c = time_step(program, {}, fabric, unfolded);
    REQUIRE(a.steady);
    REQUIRE(std::abs((a.compute + a.communication + a.bubble + a.input + a.overhead).value() -
                     a.period.seconds().value()) < 1e-15 * static_cast<double>(a.steps_played));
    for (const StepTiming* other : {&b, &c}) {
      REQUIRE(other->period == a.period);
      REQUIRE(other->first_step == a.first_step);
      REQUIRE(other->steps_played == a.steps_played);
      REQUIRE(other->tally == a.tally);
      REQUIRE(other->transfers.size() == a.transfers.size());
      for (std::size_t t = 0; t < a.transfers.size(); ++t) {
        REQUIRE(other->transfers[t].count == doctest::Approx(a.transfers[t].count).epsilon(1e-12));
        REQUIRE(other->transfers[t].exposed.value() == doctest::Approx(a.transfers[t].exposed.value()).epsilon(1e-12));
      }
    }
    REQUIRE(b.spent_by_class == a.spent_by_class);
    // Steady means steady: playing twice as many steps ends exactly that many periods later.
    const Trace longer = trace(program, run::Folding::per_stage, false, a.steps_played * 2);
    for (std::size_t s = 0; s < static_cast<std::size_t>(program.stages); ++s)
      REQUIRE(longer.ends.back()[s] - longer.ends[static_cast<std::size_t>(a.steps_played) - 1][s] ==
              a.period.ps() * a.steps_played);
  }
}
