#include <doctest/doctest.h>

#include "sim/run/interpreter.hpp"
#include "sim/run/null_backend.hpp"
#include "tests/support/step_builder.hpp"
#include "tests/unit/run/clock_backend_support.hpp"

using namespace tpusim;
using namespace tpusim::run;
using namespace tpusim::testing;

namespace {

// Stages that each hand a value to the next (the last to the first). `late`: a stage sends only after it has used what
// it receives.
plan::StepProgram ring(std::int32_t stages, bool late, std::int64_t data = 1) {
  StepBuilder b({{"pipeline", stages}, {"data", data}});
  const BufferId mine = b.buffer("mine", plan::Scope::step, true), got = b.buffer("got", plan::Scope::step, true);
  const std::int32_t use = b.kernel("use", Seconds(1e-9), {ref(got)}, {});
  std::vector<std::int32_t> sends;
  for (std::int32_t s = 0; s < stages; ++s)
    sends.push_back(b.permute(s, (s + 1) % stages, ref(mine), ref(got), b.resource("link"), Seconds(1e-9)));
  for (std::int32_t s = 0; s < stages; ++s) {
    plan::CallKind k;
    k.stage_edge = 3;
    k.stage = s;
    const std::int32_t kind = b.kind(k);
    const Ins receive(InstrKind::receive, sends[static_cast<std::size_t>((s + stages - 1) % stages)]),
        send(InstrKind::send, sends[static_cast<std::size_t>(s)]), kernel(InstrKind::kernel, use);
    b.tmpl(kind, -1, -1, late ? std::vector<Instr>{receive, kernel, send} : std::vector<Instr>{receive, send, kernel});
    b.p.schedules[static_cast<std::size_t>(s)].segments = {plan::Segment{{{s, kind, 0}}, 1}};
  }
  return b.done();
}

}  // namespace

TEST_CASE("two stages that each use what they receive before they send stall, and the report says who waits for whom") {
  const plan::StepProgram program = ring(2, true);
  NullBackend backend;
  Interpreter<NullBackend> interpreter(program, Folding::per_stage, backend);
  const auto stall = interpreter.run(1);
  REQUIRE(stall.has_value());
  const StallReport expected{{Wait{0, 0, 0, "mine from stage 1 to stage 0, microbatch 0", {1}},
                              Wait{1, 1, 1, "mine from stage 0 to stage 1, microbatch 0", {0}}},
                             {0, 1}};
  CHECK(*stall == expected);
  CHECK(to_string(*stall) ==
        "the plan stalls:\n  device 0 (stage 0) waits for mine from stage 1 to stage 0, microbatch 0\n"
        "  device 1 (stage 1) waits for mine from stage 0 to stage 1, microbatch 0\n  cycle of classes: 0 -> 1 -> 0");
  CHECK(backend.kernels == 0);
}

TEST_CASE("the cycle of a longer ring holds every stage, in the order of waiting") {
  const plan::StepProgram program = ring(4, true);
  NullBackend backend;
  Interpreter<NullBackend> interpreter(program, Folding::per_stage, backend);
  const auto stall = interpreter.run(1);
  REQUIRE(stall.has_value());
  CHECK(stall->cycle == std::vector<std::int32_t>{0, 3, 2, 1});  // each waits for the stage before it
}

TEST_CASE("every device stalls on its own when devices have classes of their own") {
  const plan::StepProgram program = ring(2, true, 3);
  NullBackend backend;
  Interpreter<NullBackend> interpreter(program, Folding::per_device, backend);
  const auto stall = interpreter.run(1);
  REQUIRE(stall.has_value());
  CHECK(stall->waits.size() == 6);
  CHECK(stall->cycle == std::vector<std::int32_t>{0, 3});  // device 3 is device 0's neighbour on the pipeline axis
}

TEST_CASE("a receive that nobody needs yet does not keep a stage from sending") {
  for (const Folding folding : {Folding::per_stage, Folding::per_device}) {
    const plan::StepProgram program = ring(4, false, 2);
    NullBackend backend;
    Interpreter<NullBackend> interpreter(program, folding, backend);
    CHECK_FALSE(interpreter.run(3).has_value());
    const std::int64_t per_step = folding == Folding::per_stage ? 4 : 8;
    CHECK(backend.permutes == 3 * per_step);
    CHECK(backend.kernels == 3 * per_step);
  }
}

TEST_CASE("a stage that ends without its send leaves the other waiting, without a cycle") {
  plan::StepProgram program = ring(2, false);
  for (plan::Template& t : program.templates)
    if (t.kind.stage == 1) t.instrs.erase(t.instrs.begin() + 1);  // its send
  NullBackend backend;
  Interpreter<NullBackend> interpreter(program, Folding::per_stage, backend);
  const auto stall = interpreter.run(1);
  REQUIRE(stall.has_value());
  CHECK(stall->waits.size() == 1);
  CHECK(stall->waits[0].missing == std::vector<std::int32_t>{1});
  CHECK(stall->cycle.empty());
}

TEST_CASE("the shortest of several cycles is reported") {
  // 0 -> 1 -> 2 -> 0 and 2 -> 3 -> 2.
  const std::vector<Wait> waits = {{0, 0, 0, "", {1}}, {1, 1, 0, "", {2}}, {2, 2, 0, "", {0, 3}}, {3, 3, 0, "", {2}}};
  CHECK(shortest_cycle(waits) == std::vector<std::int32_t>{2, 3});
  CHECK(shortest_cycle({{0, 0, 0, "", {1}}, {1, 1, 0, "", {2}}}).empty());
  CHECK(shortest_cycle({{5, 5, 0, "", {5}}}) == std::vector<std::int32_t>{5});
}
