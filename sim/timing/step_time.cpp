#include "sim/timing/step_time.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/checked.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/timing/step_timeline.hpp"

namespace tpusim::timing {

namespace {

constexpr std::int64_t kMaxSteps = 12;  // a state that has not come back by then: the last step is reported as it is

using Calls = std::vector<std::vector<std::int64_t>>;

// Adds what `count` executions of every template charge to the devices of a class.
void charge(const plan::StepProgram& program, const Calls& calls, const std::vector<run::DeviceClass>& classes,
            StepTiming& out) {
  const std::size_t permute0 = program.collectives.size(), reduce0 = permute0 + program.permutes.size();
  out.transfers.assign(reduce0 + program.stage_reduces.size(), {});
  double devices = 0, flops = 0;
  for (const run::DeviceClass& c : classes) devices += static_cast<double>(c.count);
  std::vector<double> bytes(run::kTrafficKinds, 0.0);
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (std::size_t t = 0; t < calls[c].size(); ++t) {
      const double times = static_cast<double>(calls[c][t]) * static_cast<double>(classes[c].count);
      if (times == 0) continue;
      for (const plan::Instr& instr : program.templates[t].instrs) {
        const auto body = static_cast<std::size_t>(instr.body);
        double sent = 0;
        std::size_t transfer = 0;
        run::Traffic kind = run::Traffic::permute;
        switch (instr.kind) {
          case plan::InstrKind::kernel:
            flops += times * program.kernels[body].cost.executed_flops;
            out.vector_flops += times * program.kernels[body].cost.vector_flops;
            out.model_flops += times * program.kernels[body].model_flops;
            continue;
          case plan::InstrKind::collective: {
            const plan::CollectivePlan& plan = program.plans[static_cast<std::size_t>(program.collectives[body].plan)];
            sent = plan.bytes_per_member();
            kind = static_cast<run::Traffic>(plan.kind);
            transfer = body;
            break;
          }
          case plan::InstrKind::send:
            sent = static_cast<double>(program.permutes[body].bytes);
            transfer = permute0 + body;
            break;
          case plan::InstrKind::stage_reduce:
            sent = static_cast<double>(program.stage_reduces[body].bytes) *
                   (static_cast<double>(program.stage_reduces[body].stages.size()) - 1);
            kind = run::Traffic::stage_reduce;
            transfer = reduce0 + body;
            break;
          case plan::InstrKind::receive:
          case plan::InstrKind::done:
            continue;
        }
        bytes[static_cast<std::size_t>(kind)] += times * sent;
        out.transfers[transfer].count += times / devices;
        out.transfers[transfer].bytes += times * sent / devices;
      }
    }
  for (std::size_t k = 0; k < bytes.size(); ++k) out.tally.bytes_sent[k] = std::llround(bytes[k]);
  out.executed_flops = flops;
  out.tally.executed_flops = flops < 9e18 ? std::llround(flops) : INT64_MAX;
  for (const plan::MemorySummary& memory : program.memory)
    out.tally.peak_bytes = std::max(out.tally.peak_bytes, memory.peak_bytes);
}

struct Boundary {                 // the state of things at the end of a step
  std::vector<std::int64_t> end;  // of each class's compute stream
  std::vector<run::Spent> spent;
  Calls calls;
  std::vector<std::int64_t> state;  // of the interpreter, relative to the first class
};

// When a step began whose batch came at `ready`, given the end of the step before: the first class that could start it
// did.
SimTime begun(std::int64_t ready, const Boundary& before) {
  return max(SimTime::from_ps(ready), SimTime::from_ps(*std::min_element(before.end.begin(), before.end.end())));
}

void summarize(const std::vector<run::DeviceClass>& classes, const Boundary& before, const Boundary& after,
               const Durations& durations, StepTiming& out) {
  double devices = 0;
  run::Spent total;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    devices += static_cast<double>(classes[c].count);
    out.spent_by_class.push_back(after.spent[c] - before.spent[c]);
  }
  const auto mean = [&](auto part) {
    double sum = 0;
    for (std::size_t c = 0; c < classes.size(); ++c)
      sum += static_cast<double>(part(out.spent_by_class[c])) * static_cast<double>(classes[c].count);
    return Seconds(sum / devices * 1e-12);
  };
  out.compute = mean([](const run::Spent& s) { return s.compute; });
  out.communication = mean([](const run::Spent& s) { return s.communication; });
  out.bubble = mean([](const run::Spent& s) { return s.bubble; });
  out.input = mean([](const run::Spent& s) { return s.input; });
  out.overhead = mean([](const run::Spent& s) { return s.overhead; });
  for (std::size_t t = 0; t < out.transfers.size(); ++t) {
    out.transfers[t].busy = durations.transfers[t].seconds() * out.transfers[t].count;
    out.transfers[t].exposed = mean([&](const run::Spent& s) { return s.exposed[t]; });
  }
}

}  // namespace

StepTiming time_step(const plan::StepProgram& program, const topologies::Chip& chip, const fabric::Fabric& fabric,
                     const TimingOptions& options) {
  StepTiming out;
  const Durations table = durations(program, chip, fabric, options.speed_up);
  std::optional<HostPipeline> hosts;
  std::vector<std::int64_t> batch_ready;
  if (options.input) {
    HostInput input = *options.input;
    input.speed_up *= options.speed_up.hosts;
    hosts.emplace(input);
  }
  std::function<std::int64_t(std::int64_t)> ready;
  if (hosts) ready = [&](std::int64_t step) { return batch_ready[static_cast<std::size_t>(step)]; };
  const run::Folding folding = options.per_device ? run::Folding::per_device : run::Folding::per_stage;
  const auto class_count = static_cast<std::size_t>(options.per_device ? program.mesh.devices() : program.stages);
  TimingBackend backend(table, class_count, ready);
  run::Interpreter<TimingBackend> interpreter(program, folding, backend);
  interpreter.set_call_limit(options.call_limit);
  out.classes = class_count;
  TimelineRecorder recorder(program, interpreter.classes());

  std::vector<Boundary> boundaries(1);
  boundaries[0] = {std::vector<std::int64_t>(class_count, 0), std::vector<run::Spent>(class_count), interpreter.calls(),
                   interpreter.relative_state()};
  for (run::Spent& spent : boundaries[0].spent) spent.exposed.assign(table.transfers.size(), 0);
  std::int64_t steps = 0;
  const auto at = [&](std::int64_t k) -> const Boundary& { return boundaries[static_cast<std::size_t>(k)]; };
  const auto play = [&](bool record) {
    if (hosts)
      batch_ready.push_back(
          hosts
              ->ready(steps,
                      steps == 0 ? SimTime{} : begun(batch_ready[static_cast<std::size_t>(steps) - 1], at(steps - 1)))
              .ps());
    interpreter.set_repetition(options.repetition && !record);
    out.stall = interpreter.run(++steps);
    if (out.stall) return false;
    Boundary now;
    for (std::size_t c = 0; c < class_count; ++c) {
      now.end.push_back(interpreter.compute_token(c).ps);
      now.spent.push_back(backend.spent(static_cast<std::int32_t>(c)));
    }
    now.calls = interpreter.calls();
    now.state = interpreter.relative_state();
    boundaries.push_back(std::move(now));
    return true;
  };
  // Without hosts a step that ends in the state in which it began is followed by its like. Hosts have a state of their
  // own: two equal periods, and batches that come at that period or before they are needed.
  const auto period_of = [&](std::int64_t k, std::size_t c) { return at(k).end[c] - at(k - 1).end[c]; };
  const auto steady = [&] {
    if (at(steps).state != at(steps - 1).state) return false;
    if (!hosts) return true;
    if (steps < 3) return false;
    for (std::int64_t k : {steps, steps - 1})
      for (std::size_t c = 0; c < class_count; ++c) {
        if (period_of(k, c) != period_of(steps, 0)) return false;
        const bool waited = at(k).spent[c].input != at(k - 1).spent[c].input;
        if (waited && batch_ready[static_cast<std::size_t>(k) - 1] - batch_ready[static_cast<std::size_t>(k) - 2] !=
                          period_of(k, c))
          return false;
      }
    return true;
  };
  if (options.events) {
    backend.observer = [&](const Event& e) { out.events.push_back(e); };
    if (!play(true)) return out;
    backend.observer = nullptr;
    // Issued in a legal order, so equal ends may keep it.
    std::stable_sort(out.events.begin(), out.events.end(),
                     [](const Event& a, const Event& b) { return a.end < b.end; });
    out.steady = steady();
  }
  while (!out.steady && steps < kMaxSteps) {
    if (!play(false)) return out;
    out.steady = steady();
  }
  if (options.timeline && recorder.affordable()) {
    backend.observer = [&](const Event& e) { recorder.add(e); };
    backend.memory_log = &recorder.memory();
    if (!play(true)) return out;
    backend.observer = nullptr;
    backend.memory_log = nullptr;
    out.timeline = recorder.finish(at(steps - 1).end, at(steps).end);
  }
  const Boundary& last = boundaries.back();
  const Boundary& before = boundaries[boundaries.size() - 2];
  out.steps_played = steps;
  out.period = SimTime::from_ps(period_of(steps, 0));
  for (std::size_t c = 0; c < class_count; ++c)
    out.first_step = max(out.first_step, SimTime::from_ps(boundaries[1].end[c]));
  Calls calls = last.calls;
  for (std::size_t c = 0; c < class_count; ++c)
    for (std::size_t t = 0; t < calls[c].size(); ++t) calls[c][t] -= before.calls[c][t];
  charge(program, calls, interpreter.classes(), out);
  summarize(interpreter.classes(), before, last, table, out);
  return out;
}

}  // namespace tpusim::timing
