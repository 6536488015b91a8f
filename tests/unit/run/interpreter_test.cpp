#include <doctest/doctest.h>

#include <map>

#include "sim/run/null_backend.hpp"
#include "tests/support/pipeline_program.hpp"
#include "tests/unit/run/clock_backend_support.hpp"

using namespace tpusim;
using namespace tpusim::run;
using namespace tpusim::run::testing;
using namespace tpusim::testing;

namespace {

using Interval = ClockBackend::Interval;

PipelineShape shape(std::int32_t stages, std::int32_t layers, std::int64_t microbatches) {
  PipelineShape s;
  s.stages = stages;
  s.layers = layers;
  s.microbatches = microbatches;
  s.compute = s.transfer = [] { return Seconds(1e-9); };
  return s;
}

// A reader that checks that what is released was allocated, and once.
struct MemoryBackend : NullBackend {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>, int> live;
  bool broken = false;
  Token allocate(std::int32_t c, const Instance& i, Token) {
    broken = broken || ++live[{c, i.buffer.index, i.site, i.index}] != 1;
    return {};
  }
  Token release(std::int32_t c, const Instance& i, Token, Token) {
    const auto found = live.find({c, i.buffer.index, i.site, i.index});
    broken = broken || found == live.end();
    if (found != live.end()) live.erase(found);
    return {};
  }
};

}  // namespace

TEST_CASE("every instruction of every call is issued once for each class") {
  // 2 stages x 3 layers, 4 microbatches, data 2. A stage's step: forward 3 layers x 4 x 2 kernels, backward 3 x 4 x 3,
  // update 3.
  PipelineShape s = shape(2, 3, 4);
  s.gather = true;
  s.gradients = GradientMode::reduce_scatter;
  const plan::StepProgram program = PipelineProgram::build(s);
  for (const Folding folding : {Folding::per_stage, Folding::per_device}) {
    NullBackend backend;
    Interpreter<NullBackend> interpreter(program, folding, backend);
    REQUIRE_FALSE(interpreter.run(1).has_value());
    const std::int64_t classes = folding == Folding::per_stage ? 2 : 4;
    CHECK(backend.kernels == classes * (24 + 36 + 3));
    // A gather for each forward and backward call, a reduction for each layer: one call of the reader for each group of
    // two devices.
    CHECK(backend.collectives == 2 * (3 * 4 * 2 + 3));
    CHECK(backend.permutes == classes / 2 * (4 + 4));
    CHECK(backend.allocations == backend.releases);
    CHECK(interpreter.counts().played == classes * (12 + 12 + 3));
  }
}

TEST_CASE("a unit test's own plan frees what it makes, for every gradient mode and schedule") {
  for (GradientMode mode : {GradientMode::none, GradientMode::all_reduce_in_place, GradientMode::reduce_scatter,
                            GradientMode::every_microbatch})
    for (bool gpipe : {false, true}) {
      PipelineShape s = shape(3, 2, 5);
      s.gradients = mode;
      s.gpipe = gpipe;
      s.gather = s.tied = true;
      const plan::StepProgram program = PipelineProgram::build(s);
      MemoryBackend backend;
      Interpreter<MemoryBackend> interpreter(program, Folding::per_device, backend);
      REQUIRE_FALSE(interpreter.run(2).has_value());
      CHECK_FALSE(backend.broken);
      CHECK(backend.live.empty());
    }
}

TEST_CASE("a collective that a class starts and another completes belongs to the call that started it") {
  // Two devices; the first goes on to the second call before the second device arrives at the first call's collective.
  StepBuilder b({{"data", 2}});
  const BufferId g = b.buffer("g", plan::Scope::microbatch);
  const std::int32_t link = b.resource("link");
  const std::int32_t k = b.kernel("k", Seconds(1e-9), {}, {ref(g)});
  const std::int32_t c =
      b.collective(plan::CollectiveKind::all_reduce, "g", 0, link, Seconds(1e-9), {ref(g)}, {ref(g)});
  const std::int32_t kind = b.kind({});
  const std::vector<Instr> body = {Ins(InstrKind::kernel, k).makes({ref(g)}), Ins(InstrKind::collective, c)};
  b.tmpl(kind, -1, kind, body);
  b.tmpl(kind, kind, kind, body);
  b.tmpl(kind, kind, -1, body);
  b.p.schedules[0].segments = {plan::Segment{{{5, kind, 10}, {6, kind, 20}}, 2}};
  const plan::StepProgram program = b.done();
  struct Recorder : NullBackend {
    std::vector<std::vector<std::int64_t>> seen;
    Token collective(const CollectiveCall& call, Token, Token) {
      std::vector<std::int64_t> row = {call.site, call.microbatch, call.step};
      for (const CollectiveMember& m : *call.members) {
        row.push_back(m.device_class);
        row.push_back(m.reads.at(0).site);
        row.push_back(m.writes.at(0).index);
      }
      seen.push_back(row);
      return {};
    }
  } backend;
  Interpreter<Recorder> interpreter(program, Folding::per_device, backend);
  REQUIRE_FALSE(interpreter.run(2).has_value());
  std::vector<std::vector<std::int64_t>> expected;
  for (std::int64_t step : {0, 1})
    for (std::int64_t repeat : {0, 1}) {
      expected.push_back({5, 10 + repeat, step, 0, 5, 10 + repeat, 1, 5, 10 + repeat});
      expected.push_back({6, 20 + repeat, step, 0, 6, 20 + repeat, 1, 6, 20 + repeat});
    }
  CHECK(backend.seen == expected);
}

TEST_CASE("an allocation waits for every release that the plan puts before it") {
  // a (3 ps) makes t; b (5 ps) uses and frees t; the gather needs only its link but allocates after that release: it
  // starts at 8, and c (1 ps), which reads it, at 8 + 4. Without the allocation it would start at 0.
  StepBuilder b({{"data", 2}});
  const BufferId t = b.buffer("t", plan::Scope::call), w = b.buffer("w", plan::Scope::site, true),
                 wg = b.buffer("wg", plan::Scope::call);
  const std::int32_t link = b.resource("link");
  const std::int32_t ka = b.kernel("a", Seconds(0), {}, {ref(t)}), kb = b.kernel("b", Seconds(0), {ref(t)}, {}),
                     kc = b.kernel("c", Seconds(0), {ref(wg)}, {});
  const std::int32_t gather =
      b.collective(plan::CollectiveKind::all_gather, "w", 0, link, Seconds(1e-9), {ref(w)}, {ref(wg)});
  const std::int32_t kind = b.kind({});
  b.tmpl(kind, -1, -1,
         {Ins(InstrKind::kernel, ka).makes({ref(t)}), Ins(InstrKind::kernel, kb).frees({ref(t)}),
          Ins(InstrKind::collective, gather).makes({ref(wg)}), Ins(InstrKind::kernel, kc).frees({ref(wg)})});
  b.p.schedules[0].segments = {plan::Segment{{{0, kind, 0}}, 1}};
  const plan::StepProgram program = b.done();
  ClockBackend clock;
  clock.kernels = {3, 5, 1};
  clock.collectives = {4};
  Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
  REQUIRE_FALSE(interpreter.run(1).has_value());
  CHECK(clock.log ==
        std::vector<Interval>{{"kernel 0", 0, 3}, {"kernel 1", 3, 8}, {"collective 0", 8, 12}, {"kernel 2", 12, 13}});
}

TEST_CASE("data, streams and overwriting hold an instruction back, and nothing else does") {
  // k0 (4) writes g; c0 (10) sums g in place; k1 (3) does not touch g and runs beside c0; k2 (2) overwrites g, so it
  // waits for c0; c1 (1) is on the same link as c0 and reads p, which is there: it starts when the link is free.
  StepBuilder b({{"data", 2}});
  const BufferId g = b.buffer("g", plan::Scope::step, true), p = b.buffer("p", plan::Scope::step, true),
                 q = b.buffer("q", plan::Scope::step, true);
  const std::int32_t link = b.resource("link");
  const std::int32_t k0 = b.kernel("k0", Seconds(0), {}, {ref(g)}), k1 = b.kernel("k1", Seconds(0), {ref(p)}, {}),
                     k2 = b.kernel("k2", Seconds(0), {}, {ref(g)});
  const std::int32_t c0 =
      b.collective(plan::CollectiveKind::all_reduce, "g", 0, link, Seconds(1e-9), {ref(g)}, {ref(g)});
  const std::int32_t c1 =
      b.collective(plan::CollectiveKind::all_gather, "p", 0, link, Seconds(1e-9), {ref(p)}, {ref(q)});
  const std::int32_t kind = b.kind({});
  b.tmpl(kind, -1, -1,
         {Ins(InstrKind::kernel, k0), Ins(InstrKind::collective, c0), Ins(InstrKind::kernel, k1),
          Ins(InstrKind::collective, c1), Ins(InstrKind::kernel, k2)});
  b.p.schedules[0].segments = {plan::Segment{{{0, kind, 0}}, 1}};
  const plan::StepProgram program = b.done();
  ClockBackend clock;
  clock.kernels = {4, 3, 2};
  clock.collectives = {10, 1};
  Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
  REQUIRE_FALSE(interpreter.run(1).has_value());
  CHECK(clock.log == std::vector<Interval>{{"kernel 0", 0, 4},
                                           {"collective 0", 4, 14},
                                           {"kernel 1", 4, 7},
                                           {"collective 1", 14, 15},
                                           {"kernel 2", 14, 16}});
}

TEST_CASE("a `done` with a body holds the next kernel back until that transfer is over") {
  StepBuilder b({{"data", 2}});
  const BufferId g = b.buffer("g", plan::Scope::step, true);
  const std::int32_t link = b.resource("link");
  const std::int32_t k0 = b.kernel("k0", Seconds(0), {}, {ref(g)}), k1 = b.kernel("k1", Seconds(0), {}, {});
  const std::int32_t c0 =
      b.collective(plan::CollectiveKind::all_reduce, "g", 0, link, Seconds(1e-9), {ref(g)}, {ref(g)});
  const std::int32_t kind = b.kind({});
  b.tmpl(kind, -1, -1,
         {Ins(InstrKind::kernel, k0), Ins(InstrKind::collective, c0), Ins(InstrKind::done, 1),
          Ins(InstrKind::kernel, k1)});
  b.p.schedules[0].segments = {plan::Segment{{{0, kind, 0}}, 1}};
  const plan::StepProgram program = b.done();
  ClockBackend clock;
  clock.kernels = {4, 3};
  clock.collectives = {10};
  Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
  REQUIRE_FALSE(interpreter.run(1).has_value());
  CHECK(clock.log == std::vector<Interval>{{"kernel 0", 0, 4}, {"collective 0", 4, 14}, {"kernel 1", 14, 17}});
}

TEST_CASE("a gradient that the preceding call still reduces is the one that this call's update waits for") {
  // Call 0 writes g at site 0 (2 ps); its reduction (7 ps) is carried out by call 1, whose own kernel reads g of the
  // same site.
  StepBuilder b({{"data", 2}});
  const BufferId g = b.buffer("g", plan::Scope::site, true);
  const std::int32_t link = b.resource("link");
  const std::int32_t k0 = b.kernel("k0", Seconds(0), {}, {ref(g)}), k1 = b.kernel("k1", Seconds(0), {ref(g)}, {});
  const std::int32_t c0 =
      b.collective(plan::CollectiveKind::all_reduce, "g", 0, link, Seconds(1e-9), {ref(g)}, {ref(g)});
  plan::CallKind update;
  update.phase = ir::Phase::update;
  const std::int32_t back = b.kind({}), up = b.kind(update);
  Instr deferred = Ins(InstrKind::collective, c0);
  deferred.owner = -1;
  b.tmpl(back, -1, up, {Ins(InstrKind::kernel, k0)});
  b.tmpl(up, back, -1, {deferred, Ins(InstrKind::kernel, k1)});
  b.p.schedules[0].segments = {plan::Segment{{{0, back, 0}, {0, up, -1}}, 1}};
  const plan::StepProgram program = b.done();
  for (bool repetition : {false, true}) {
    ClockBackend clock;
    clock.kernels = {2, 1};
    clock.collectives = {7};
    Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
    interpreter.set_repetition(repetition);
    REQUIRE_FALSE(interpreter.run(1).has_value());
    CHECK(clock.log == std::vector<Interval>{{"kernel 0", 0, 2}, {"collective 0", 2, 9}, {"kernel 1", 9, 10}});
  }
}

TEST_CASE("what reads the batch waits for the batch of its step") {
  StepBuilder b({{"data", 1}});
  const BufferId batch = b.buffer("batch", plan::Scope::microbatch, true);
  const std::int32_t k = b.kernel("k", Seconds(0), {ref(batch)}, {});
  const std::int32_t kind = b.kind({});
  b.tmpl(kind, -1, -1, {Ins(InstrKind::kernel, k)});
  b.p.schedules[0].segments = {plan::Segment{{{0, kind, 0}}, 1}};
  const plan::StepProgram program = b.done();
  ClockBackend clock;
  clock.kernels = {4};
  clock.batches = {10, 11, 30};
  Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
  REQUIRE_FALSE(interpreter.run(3).has_value());
  CHECK(clock.log == std::vector<Interval>{{"kernel 0", 10, 14}, {"kernel 0", 14, 18}, {"kernel 0", 30, 34}});
}

TEST_CASE("a million microbatches are played as fast as a thousand, to the same formula") {
  // 1F1B on 4 stages of 2 layers. A microbatch costs a stage 2 x (2 + 3) kernels of 1 ns; transfers are hidden after
  // the filling.
  const auto run = [](std::int64_t microbatches, std::int64_t& played) {
    PipelineShape s = shape(4, 2, microbatches);
    s.gather = true;
    s.gradients = GradientMode::all_reduce_in_place;
    const plan::StepProgram program = PipelineProgram::build(s);
    ClockBackend clock;
    clock.kernels.assign(program.kernels.size(), 1000);
    clock.collectives.assign(program.collectives.size(), 700);
    clock.permutes.assign(program.permutes.size(), 100);
    Interpreter<ClockBackend> interpreter(program, Folding::per_stage, clock);
    REQUIRE_FALSE(interpreter.run(1).has_value());
    const CallCounts& n = interpreter.counts();
    played = n.played + n.replayed;
    CHECK(n.played + n.replayed + n.added == 4 * (2 * 2 * microbatches + 2));
    CHECK(clock.log.size() < 20000);
    return interpreter.compute_token(0).ps;
  };
  std::int64_t few = 0, many = 0;
  const std::int64_t short_step = run(1000, few), long_step = run(1'000'000, many);
  CHECK(many == few);
  CHECK(long_step - short_step == std::int64_t{999'000} * 10'000);  // the other microbatches at 10 ns each
}
