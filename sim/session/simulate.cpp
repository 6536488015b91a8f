#include <fmt/format.h>

#include <filesystem>

#include "sim/base/quantity_text.hpp"
#include "sim/scenario/write.hpp"
#include "sim/session/diagnosis.hpp"
#include "sim/session/fill_result.hpp"
#include "sim/session/session.hpp"
#include "sim/session/verification.hpp"

namespace tpusim::session {

namespace {

void say(const Options& options, std::string_view stage, double fraction) {
  if (options.progress) options.progress(stage, fraction);
}

// Resolves, or throws everything that is wrong with its place in the file. Warnings are kept.
Job resolve_or_throw(const scenario::Scenario& scenario, const Options& options, std::vector<Diagnostic>& warnings) {
  DiagnosticSink sink;
  std::optional<Job> job = resolve(scenario, options.folder, sink);
  scenario::locate(sink.all(), scenario.source);
  sink.throw_if_errors();
  warnings = sink.all();
  TPUSIM_CHECK(job.has_value(), "a scenario without faults that does not resolve");
  return std::move(*job);
}

// What is beyond a bound of the simulator cannot work here, as what does not divide cannot: a verdict, not a fault.
Verdict too_large(const CapacityError& e) {
  return {false, e.what(), "a smaller step: fewer microbatches, or a smaller batch", "", "/training/global_batch"};
}

Planned plan_of(const Job& job, Code& code) {
  code = Code::not_divisible;
  if (job.spec.model.family != models::Family::fixed) {
    try {
      return make_plan(job.spec, job.cluster.fabric);
    } catch (const CapacityError& e) {
      Planned refused;
      refused.verdict = too_large(e);
      code = Code::too_large;
      return refused;
    }
  }
  Planned planned;
  planned.program = fixed_program(job.spec);
  for (const strategies::RequestedAxis& axis : job.spec.mesh)
    if (axis.name != "data" && axis.size > 1)
      planned.verdict = {false, "a model of fixed step length can only be data parallel",
                         "mesh {\"data\": " + std::to_string(job.spec.devices()) + "}", axis.name,
                         "/mesh/" + axis.name};
  return planned;
}

Verdict memory_verdict(const result::Memory& memory) {
  if (memory.fits) return {};
  return {false, "out of memory", format_bytes(Bytes(static_cast<double>(memory.peak_bytes))) + " on the fullest chip",
          format_bytes(Bytes(static_cast<double>(memory.capacity_bytes))), "/cluster"};
}

void describe_model(const Job& job, const Planned& planned, result::Result& out) {
  out.model.layers = job.spec.model.family == models::Family::fixed ? 0 : job.spec.model.layers;
  out.model.parameters = job.spec.model.family == models::Family::fixed ? 0 : models::parameter_count(job.spec.model);
  for (const std::string& note : planned.setup.notes) out.notes.push_back(note);
  if (!planned.placement_text.empty()) out.notes.push_back("mesh on the machine: " + planned.placement_text);
  if (job.spec.model.family != models::Family::fixed)
    out.notes.push_back(
        "times are those of a roofline with this schedule, not fitted to published runs: expect real ones to be "
        "longer");
  if (job.spec.model.family == models::Family::transformer && job.spec.remat == ir::Remat::selective &&
      job.spec.attention == ir::AttentionKind::flash)
    out.notes.push_back("remat selective drops attention's scores, which flash attention never keeps: as remat none");
  out.notes.push_back(job.input ? "the input pipeline is simulated on every host"
                                : "no input is described: the batch is always there");
}

// A scenario without a name is called as its file is.
std::string default_name(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() || file == "-" ? "scenario" : stem;
}

std::string refusal_text(const Verdict& v) {
  std::string text = v.reason;
  if (!v.needed.empty()) text += "; needed: " + v.needed;
  if (!v.available.empty()) text += "; there is: " + v.available;
  return v.pointer.empty() ? text : v.pointer + ": " + text;
}

}  // namespace

result::Result simulate(const scenario::Scenario& scenario, const Options& options) {
  result::Result out;
  std::vector<Diagnostic> warnings;
  say(options, "reading", 0);
  const Job job = resolve_or_throw(scenario, options, warnings);
  for (const Diagnostic& warning : warnings) out.warnings.push_back(format(warning));
  scenario::Scenario filled = scenario;
  if (filled.name.empty()) filled.name = default_name(scenario.source.file);
  filled.mesh.clear();
  for (const strategies::RequestedAxis& axis : job.spec.mesh) filled.mesh.push_back({axis.name, axis.size});
  out.scenario_json = scenario::to_json(filled);
  fill_assumptions(scenario, job, out);

  say(options, "planning", 0.1);
  Code code{};
  const Planned planned = plan_of(job, code);
  describe_model(job, planned, out);
  if (!planned.verdict) {
    out.verdict = planned.verdict;
    for (std::size_t i = 1; i < planned.refusals.size(); ++i)
      out.notes.push_back("also refused: " + refusal_text(planned.refusals[i]));
    return out;
  }
  out.memory = memory_of(planned.program, job.cluster.chip);
  out.verdict = memory_verdict(out.memory);

  say(options, "timing", 0.2);
  timing::TimingOptions timing_options;
  timing_options.input = job.input;
  timing_options.timeline = options.timeline;
  timing::StepTiming timing;
  try {
    timing = timing::time_step(planned.program, job.cluster.chip, job.cluster.fabric, timing_options);
  } catch (const CapacityError& e) {  // too long for one run of the engine, or too much that is never alike
    out.verdict = too_large(e);
    return out;
  }
  if (timing.stall) {
    out.verdict = {false, run::to_string(*timing.stall), "a plan in which nobody waits in a circle", "", "/strategies"};
    return out;
  }
  fill_timing(job, planned.program, timing, out);
  if (options.diagnose) {
    say(options, "replaying", 0.3);
    if (out.verdict)
      out.diagnosis = diagnose(job, planned.program, timing);
    else
      for (std::string& way : ways_to_fit(job)) out.notes.push_back(std::move(way));
  }
  if (options.verify && job.spec.model.family != models::Family::fixed) {
    say(options, "verifying", 0.5);
    out.verification = verify_job(job, planned, options.seed, options.threads);
  }
  say(options, "done", 1);
  return out;
}

Verdict check(const scenario::Scenario& scenario, const Options& options, DiagnosticSink& sink) {
  const std::optional<Job> job = resolve(scenario, options.folder, sink);
  scenario::locate(sink.all(), scenario.source);
  if (!job || sink.has_errors()) return {};
  Code code{};
  const Planned planned = plan_of(*job, code);
  if (!planned.verdict) {
    for (const Verdict& v : planned.refusals.empty() ? std::vector<Verdict>{planned.verdict} : planned.refusals)
      sink.error(code, v.pointer, v.reason + (v.needed.empty() ? "" : "; needed: " + v.needed), "", {});
    scenario::locate(sink.all(), scenario.source);
    return planned.verdict;
  }
  return memory_verdict(memory_of(planned.program, job->cluster.chip));
}

}  // namespace tpusim::session
