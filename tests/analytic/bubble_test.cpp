// The bubble of pipeline schedules with free communication and equal stages: (p-1)/(m+p-1) of the step for GPipe (Y.
// Huang et al., NeurIPS 2019, section 2.3) and for 1F1B alike (D. Narayanan et al., SC 2021, section 2.2, as a share of
// the ideal time: (p-1)/m).
#include <doctest/doctest.h>

#include "sim/strategies/strategies.hpp"
#include "sim/timing/step_time.hpp"
#include "tests/support/step_builder.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

constexpr double kForward = 2e-6, kBackward = 4e-6;

// One site a stage, whose forward takes 2 us and backward 4; transfers take no time; nothing is updated. `alive`: most
// forward values a stage holds at once.
plan::StepProgram pipeline(strategies::PipelineSchedule schedule, std::int32_t stages, std::int64_t microbatches) {
  StepBuilder b({{"pipeline", stages}});
  const BufferId x = b.buffer("x", plan::Scope::microbatch), dx = b.buffer("dx", plan::Scope::microbatch);
  std::vector<std::int64_t> first_site;
  for (std::int32_t s = 0; s <= stages; ++s) first_site.push_back(s);
  const plan::ScheduleSpec spec = strategies::make_schedule(schedule, first_site, microbatches);
  std::vector<std::int32_t> down, up;
  for (std::int32_t s = 0; s + 1 < stages; ++s) {
    down.push_back(b.permute(s, s + 1, ref(x), ref(x, -1), b.resource("down"), Seconds(0)));
    up.push_back(b.permute(s + 1, s, ref(dx, -1), ref(dx), b.resource("up"), Seconds(0)));
    b.p.permutes[static_cast<std::size_t>(down.back())].bytes =
        b.p.permutes[static_cast<std::size_t>(up.back())].bytes = 0;
  }
  std::vector<CallParts> parts;
  for (std::int32_t s = 0; s < stages; ++s) {
    const bool opens = s == 0, closes = s + 1 == stages;
    const std::int32_t f = b.kernel("f", Seconds(kForward),
                                    opens ? std::vector<BufferRef>{} : std::vector<BufferRef>{ref(x, -1)}, {ref(x)});
    const std::int32_t g =
        b.kernel("b", Seconds(kBackward), closes ? std::vector<BufferRef>{ref(x)} : std::vector<BufferRef>{ref(dx)},
                 opens ? std::vector<BufferRef>{} : std::vector<BufferRef>{ref(dx, -1)});
    const auto at = static_cast<std::size_t>(s);
    for (ir::Phase phase : {ir::Phase::forward, ir::Phase::backward}) {
      plan::CallKind kind;
      kind.stage = s;
      kind.phase = phase;
      b.kind(kind);
      CallParts part;
      const bool forward = phase == ir::Phase::forward;
      if (forward && !opens) part.prefetch.push_back(Ins(InstrKind::receive, down[at - 1]));
      if (!forward && !closes) part.prefetch.push_back(Ins(InstrKind::receive, up[at]));
      part.main.push_back(Ins(InstrKind::kernel, forward ? f : g));
      if (forward && !closes) part.main.push_back(Ins(InstrKind::send, down[at]));
      if (!forward && !opens) part.main.push_back(Ins(InstrKind::send, up[at - 1]));
      parts.push_back(part);
    }
    for (const plan::UnitSegment& segment : spec.stages[at]) {
      plan::Segment out;
      out.repeat = segment.repeat;
      for (const plan::Unit& unit : segment.body)
        if (unit.phase != ir::Phase::update)
          out.body.push_back({s, 2 * s + (unit.phase == ir::Phase::forward ? 0 : 1), unit.microbatch});
      if (!out.body.empty()) b.p.schedules[at].segments.push_back(out);
    }
  }
  make_templates(b, parts);
  return b.done();
}

fabric::Fabric fabric_of(const plan::StepProgram& program) {
  fabric::Fabric f;
  f.axes.resize(static_cast<std::size_t>(program.resources));
  return f;
}

}  // namespace

TEST_CASE(
    "GPipe and 1F1B take (m + p - 1) microbatches' time for the first step, and their bubble is (p-1)/(m+p-1) of it") {
  for (const auto schedule : {strategies::PipelineSchedule::gpipe, strategies::PipelineSchedule::one_f_one_b})
    for (std::int32_t p = 1; p <= 8; ++p)
      for (std::int64_t m : {1, 2, 3, 7, 8, 32}) {
        CAPTURE(p);
        CAPTURE(m);
        const plan::StepProgram program = pipeline(schedule, p, m);
        const timing::StepTiming t = timing::time_step(program, {}, fabric_of(program), {});
        const std::int64_t microbatch = SimTime::from(Seconds(kForward + kBackward)).ps();
        CHECK(t.first_step.ps() == (m + p - 1) * microbatch);
      }
}

TEST_CASE("with an update that waits for all stages every step has that bubble, and it is counted as one") {
  // The sum over stages takes 1 ps and joins the steps: the period is (m + p - 1)(f + b) and each device computes m (f
  // + b) of it.
  for (const auto schedule : {strategies::PipelineSchedule::gpipe, strategies::PipelineSchedule::one_f_one_b})
    for (std::int32_t p = 2; p <= 8; ++p)
      for (std::int64_t m : {1, 3, 8, 32}) {  // fewer than stages, too
        plan::StepProgram program = pipeline(schedule, p, m);
        StepBuilder b({{"pipeline", p}});
        b.p = program;
        const BufferId g = b.buffer("g", plan::Scope::step, true);
        std::vector<std::int32_t> stages;
        for (std::int32_t s = 0; s < p; ++s) stages.push_back(s);
        // Writes by the last backward kernels are what the sum waits for.
        for (plan::Kernel& k : b.p.kernels)
          if (k.label == "b") k.writes.emplace_back(ir::ValueId(), ref(g));
        const std::int32_t sum =
            b.stage_reduce(ref(g), stages, b.resource("sums"), Seconds(static_cast<double>(p - 1) * 1e-12));
        const std::int32_t after = b.kernel("after", Seconds(1e-12), {ref(g)}, {});
        for (std::int32_t s = 0; s < p; ++s) {
          plan::CallKind kind;
          kind.stage = s;
          kind.phase = ir::Phase::update;
          const std::int32_t update = b.kind(kind);
          plan::Schedule& schedule_of_stage = b.p.schedules[static_cast<std::size_t>(s)];
          const std::int32_t before = schedule_of_stage.segments.back().body.back().kind;
          schedule_of_stage.segments.push_back({{{s, update, -1}}, 1});
          for (plan::Template& t : b.p.templates)
            if (t.kind_index == before && t.next == -1) t.next = update;
          b.tmpl(update, before, -1, {Ins(InstrKind::stage_reduce, sum), Ins(InstrKind::kernel, after)});
        }
        program = b.done();
        const timing::StepTiming t = timing::time_step(program, {}, fabric_of(program), {});
        REQUIRE(t.steady);
        const double microbatch = kForward + kBackward, period = static_cast<double>(m + p - 1) * microbatch;
        CHECK(std::abs(t.period.seconds().value() - period) < static_cast<double>(p + 2) * 1e-12);
        CHECK(t.compute.value() == doctest::Approx(static_cast<double>(m) * microbatch).epsilon(1e-6));
        CHECK(t.bubble.value() / t.period.seconds().value() ==
              doctest::Approx(static_cast<double>(p - 1) / static_cast<double>(m + p - 1)).epsilon(1e-6));
      }
}

TEST_CASE("1F1B runs forward at most min(p - s, m) microbatches ahead of backward on stage s, GPipe all of them") {
  for (std::int32_t p = 1; p <= 8; ++p)
    for (std::int64_t m : {1, 2, 3, 7, 8, 32})
      for (const auto schedule : {strategies::PipelineSchedule::gpipe, strategies::PipelineSchedule::one_f_one_b}) {
        const plan::StepProgram program = pipeline(schedule, p, m);
        for (std::int32_t s = 0; s < p; ++s) {
          std::int64_t alive = 0, most = 0;
          for (const plan::Segment& segment : program.schedules[static_cast<std::size_t>(s)].segments)
            for (std::int64_t r = 0; r < segment.repeat; ++r)
              for (const plan::Call& call : segment.body) most = std::max(most, alive += call.kind % 2 == 0 ? 1 : -1);
          CHECK(alive == 0);
          CHECK(most ==
                (schedule == strategies::PipelineSchedule::gpipe && p > 1 ? m : std::min<std::int64_t>(p - s, m)));
        }
      }
}
