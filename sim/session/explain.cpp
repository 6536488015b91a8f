#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.hpp"
#include "sim/session/fill_result.hpp"
#include "sim/session/session.hpp"

namespace tpusim::session {

namespace {

std::string explain_mesh(const Job& job, const Planned& planned) {
  std::string text = "mesh\n";
  for (const spmd::MeshAxis& axis : planned.program.mesh.axes)
    text += fmt::format("  {} = {}{}\n", axis.name, axis.size,
                        axis.parent.empty() || axis.parent == axis.name ? "" : " (part of " + axis.parent + ")");
  text += "machine\n";
  for (const fabric::PhysicalAxis& axis : job.cluster.fabric.axes)
    text += fmt::format("  {}: {} chips, {}, {} one way, {} a hop\n", axis.name, axis.size,
                        axis.link == fabric::Link::ring   ? "ring"
                        : axis.link == fabric::Link::line ? "line"
                                                          : "switch",
                        format_rate(axis.beta), format_seconds(axis.alpha));
  text += fmt::format("placement: {}\n", planned.placement_text);
  return text;
}

std::string explain_tables(const Planned& planned) {
  std::string text = "sharding rules (the earlier wins where two claim one mesh axis)\n";
  const std::pair<ir::Table, const char*> tables[] = {{ir::Table::parameters, "parameters"},
                                                      {ir::Table::gradients, "gradients"},
                                                      {ir::Table::optimizer, "optimizer"},
                                                      {ir::Table::activations, "activations"}};
  for (const auto& [table, name] : tables)
    for (const spmd::Rule& rule : planned.setup.tables.of(table))
      text += fmt::format("  {}: {}{} -> [{}]  ({})\n", name,
                          rule.place == ir::Place::none ? "" : std::string(ir::name_of(rule.place)) + ".",
                          ir::name_of(rule.axis), planned.setup.mesh.to_string(rule.mesh_axes), rule.origin);
  return text;
}

// In which order the data of a plan over several axes takes them, as far as its first part goes: " [x, y]".
std::string order_of_axes(const plan::CollectivePlan& plan, const fabric::Fabric& fabric) {
  if (plan.axes.size() < 2) return "";
  std::vector<std::string_view> names;
  for (const plan::Phase& phase : plan.phases)
    if (!phase.works.empty() && names.size() < plan.axes.size()) {
      const plan::GroupAxis& axis = plan.axes[static_cast<std::size_t>(phase.works.front().axis)];
      names.push_back(fabric.axes[static_cast<std::size_t>(axis.physical)].name);
    }
  return fmt::format(" [{}]", fmt::join(names, ", "));
}

// Collectives that are alike but for what they carry have the same candidates: each kind is shown once.
std::string explain_collectives(const Planned& planned, const fabric::Fabric& fabric) {
  std::string text =
      "collectives: candidates, cheapest first; the first is taken (V: bytes in all, a: a step's latency, W: one "
      "link's "
      "rate)\n";
  const std::vector<plan::Collective>& all = planned.program.collectives;
  const auto alike = [&](const plan::Collective& a, const plan::Collective& b) {
    return a.plan == b.plan && a.elements == b.elements && a.mesh_axes == b.mesh_axes;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const plan::Collective& c = all[i];
    const auto like_c = [&](const plan::Collective& other) { return alike(c, other); };
    const auto here = all.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(all.begin(), here, like_c)) continue;
    const plan::CollectivePlan& plan = planned.program.plans[static_cast<std::size_t>(c.plan)];
    const double bytes = static_cast<double>(c.elements) * static_cast<double>(plan.element_bytes);
    std::vector<std::string_view> labels;
    for (auto other = here; other != all.end(); ++other)
      if (alike(c, *other) && std::find(labels.begin(), labels.end(), other->label) == labels.end())
        labels.push_back(other->label);
    text +=
        fmt::format("  {} over [{}], {} elements of {} bytes (V = {}): {}; {} in the plan\n", plan::name_of(plan.kind),
                    planned.program.mesh.to_string(c.mesh_axes), c.elements, plan.element_bytes,
                    format_bytes(Bytes(bytes)), fmt::join(labels, ", "), std::count_if(here, all.end(), like_c));
    for (const plan::Candidate& candidate :
         plan::candidates(plan.kind, plan.reduction, c.elements, plan.element_bytes, plan.axes))
      text +=
          fmt::format("    {}{}: {} = {} + {} = {}\n", candidate.plan.algorithm, order_of_axes(candidate.plan, fabric),
                      plan::formula_of(candidate.plan, bytes), format_seconds(candidate.alpha_term),
                      format_seconds(candidate.beta_term), format_seconds(candidate.alpha_term + candidate.beta_term));
  }
  return text;
}

// Where a kernel belongs and what it runs: "layer backward, dot", "layer forward, map.silu and 3 more in one kernel".
std::string kernel_name(const plan::StepProgram& program, const plan::Kernel& kernel) {
  if (kernel.ops.empty()) return std::string(kernel.label);
  const ir::Program& local = program.programs[static_cast<std::size_t>(kernel.program)].local;
  const ir::Op& first = local.op(kernel.ops.front());
  std::string text = local.name;
  // Programs of the update are called so already: "embedding update".
  if (first.phase != ir::Phase::update) text += fmt::format(" {}", ir::phase_name(first.phase));
  text += fmt::format(", {}", ir::op_name(first.kind));
  if (kernel.ops.size() > 1) text += fmt::format(" and {} more in one kernel", kernel.ops.size() - 1);
  return text + fmt::format(" for \"{}\"", kernel.label);
}

std::string explain_kernels(const Job& job, const plan::StepProgram& program) {
  std::string text =
      "kernels: t = floor + max(matrix, vector, HBM); matrix = padded FLOPs / (peak x efficiency), HBM = bytes / "
      "(bandwidth x efficiency)\n";
  for (const plan::Kernel& kernel : program.kernels) {
    const timing::KernelTime t = timing::kernel_time(kernel, job.cluster.chip);
    text += fmt::format("  {}: {} = {} + max({}, {}, {})   {} executed, {} read, {} written\n",
                        kernel_name(program, kernel), format_seconds(t.total()), format_seconds(t.floor),
                        format_seconds(t.matrix), format_seconds(t.vector), format_seconds(t.hbm),
                        format_flops(Flops(kernel.cost.executed_flops)),
                        format_bytes(Bytes(static_cast<double>(kernel.bytes_read))),
                        format_bytes(Bytes(static_cast<double>(kernel.bytes_written))));
  }
  return text;
}

// Each headline number's formula with its own values, as a run of the same scenario gives them.
std::string explain_numbers(const Job& job, const plan::StepProgram& program) {
  timing::TimingOptions options;
  options.input = job.input;
  result::Result r;
  r.memory = memory_of(program, job.cluster.chip);
  const auto bytes = [](std::int64_t n) { return format_bytes(Bytes(static_cast<double>(n))); };
  std::string text = "numbers\n";
  text += fmt::format(
      "  memory.peak_bytes = parameters + gradients + optimizer + activations + workspace + reserved, alive at the "
      "fullest instant of the fullest chip\n    = {} + {} + {} + {} + {} + {} = {} of {}{}\n",
      bytes(r.memory.parameters_bytes), bytes(r.memory.gradients_bytes), bytes(r.memory.optimizer_bytes),
      bytes(r.memory.activations_bytes), bytes(r.memory.workspace_bytes), bytes(r.memory.reserved_bytes),
      bytes(r.memory.peak_bytes), bytes(r.memory.capacity_bytes), r.memory.fits ? "" : ": does not fit");
  timing::StepTiming timing;
  try {
    timing = timing::time_step(program, job.cluster.chip, job.cluster.fabric, options);
  } catch (const CapacityError& e) {
    return text + "  no step: " + e.what() + "\n";
  }
  if (timing.stall) return text + "  no step: " + run::to_string(*timing.stall) + "\n";
  fill_timing(job, program, timing, r);
  const result::Step& s = r.step;
  text += fmt::format(
      "  step.time_s = compute + exposed communication + bubble + input stall + overhead, means over all chips, each "
      "instant counted once, in the steady state\n    = {} + {} + {} + {} + {} = {}\n",
      format_seconds(s.compute), format_seconds(s.communication_exposed), format_seconds(s.bubble),
      format_seconds(s.input_stall), format_seconds(s.overhead), format_seconds(s.time));
  text += fmt::format("  examples_per_s = global_batch / time_s = {} / {} = {:.6g}\n", job.spec.global_batch,
                      format_seconds(s.time), r.throughput.examples_per_s);
  if (r.throughput.tokens_per_s)
    text += fmt::format("  tokens_per_s = examples_per_s x sequence_length = {:.6g} x {} = {:.6g}\n",
                        r.throughput.examples_per_s, job.spec.sequence_length, *r.throughput.tokens_per_s);
  if (r.throughput.mfu && r.throughput.hfu && r.throughput.model_flops_per_step) {
    const std::string rest = fmt::format("({} x {} x {})", format_seconds(s.time), program.mesh.devices(),
                                         format_flops(timing::peak_of(job.cluster.chip, job.spec.compute_dtype)));
    text += fmt::format("  mfu = model FLOPs / (time_s x chips x peak of the compute dtype) = {} / {} = {:.4f}\n",
                        format_flops(*r.throughput.model_flops_per_step), rest, *r.throughput.mfu);
    text += fmt::format("  hfu = executed FLOPs / (the same) = {} / {} = {:.4f}\n",
                        format_flops(Flops(timing.executed_flops)), rest, *r.throughput.hfu);
  }
  return text;
}

}  // namespace

std::string explain(const scenario::Scenario& scenario, const Options& options) {
  DiagnosticSink sink;
  const std::optional<Job> job = resolve(scenario, options.folder, sink);
  scenario::locate(sink.all(), scenario.source);
  sink.throw_if_errors();
  if (job->spec.model.family == models::Family::fixed)
    return fmt::format("a step of fixed length: {} of compute on every chip, then the next batch\n",
                       format_seconds(job->spec.model.step_compute));
  const Planned planned = make_plan(job->spec, job->cluster.fabric);
  if (!planned.verdict) {
    Diagnostic d;
    d.code = Code::not_divisible;
    d.pointer = planned.verdict.pointer;
    d.message = planned.verdict.reason;
    std::vector<Diagnostic> all = {d};
    scenario::locate(all, scenario.source);
    throw ScenarioError(all);
  }
  return explain_mesh(*job, planned) + explain_tables(planned) + explain_collectives(planned, job->cluster.fabric) +
         explain_kernels(*job, planned.program) + plan::print(planned.program) + explain_numbers(*job, planned.program);
}

}  // namespace tpusim::session
