#include "sim/session/fill_result.hpp"

#include <algorithm>

#include "topologies/libraries/library.hpp"

namespace tpusim::session {

namespace {

bool is_attention(const ir::Program& program, const ir::Op& op) {
  if (std::holds_alternative<ir::Flash>(op.kind) || std::holds_alternative<ir::FlashGrad>(op.kind)) return true;
  if (!std::holds_alternative<ir::Dot>(op.kind)) return false;
  for (ir::ValueId operand : op.operands)
    if (ir::find_dim(program.value(operand).type.shape, {ir::Axis::seq, 1}) >= 0) return true;
  return false;
}

std::vector<std::string> axis_names(const spmd::Mesh& mesh, const ir::MeshAxes& axes) {
  std::vector<std::string> names;
  for (std::uint8_t axis : axes) {
    const spmd::MeshAxis& a = mesh.axes[axis];
    const std::string& name = a.parent.empty() ? a.name : a.parent;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void add_communication(std::vector<result::Communication>& rows, result::Communication row) {
  if (row.count == 0) return;
  for (result::Communication& there : rows)
    if (there.collective == row.collective && there.axes == row.axes && there.algorithm == row.algorithm) {
      there.count += row.count;
      there.bytes_per_chip += row.bytes_per_chip;
      there.busy += row.busy;
      there.exposed += row.exposed;
      return;
    }
  rows.push_back(std::move(row));
}

std::vector<result::Communication> communication(const plan::StepProgram& program, const timing::StepTiming& timing) {
  std::vector<result::Communication> rows;
  std::size_t number = 0;
  const auto add = [&](std::string collective, std::vector<std::string> axes, std::string algorithm) {
    const timing::TransferTotals& t = timing.transfers[number++];
    add_communication(
        rows, {std::move(collective), std::move(axes), std::move(algorithm), t.count, t.bytes, t.busy, t.exposed});
  };
  for (const plan::Collective& c : program.collectives) {
    const plan::CollectivePlan& plan = program.plans[static_cast<std::size_t>(c.plan)];
    add(std::string(plan::name_of(plan.kind)), axis_names(program.mesh, c.mesh_axes), plan.algorithm);
  }
  for (std::size_t i = 0; i < program.permutes.size(); ++i)
    add("collective-permute", {"pipeline"}, "to the neighbouring stage");
  for (std::size_t i = 0; i < program.stage_reduces.size(); ++i)
    add("all-reduce", {"pipeline"}, "exchange between stages");
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.busy > b.busy; });
  return rows;
}

result::Confidence confidence_of(topologies::Confidence confidence) {
  switch (confidence) {
    case topologies::Confidence::measured:
      return result::Confidence::measured;
    case topologies::Confidence::vendor:
      return result::Confidence::vendor;
    case topologies::Confidence::paper:
      return result::Confidence::paper;
    case topologies::Confidence::fitted:
      return result::Confidence::fitted;
    case topologies::Confidence::guess:
      return result::Confidence::guess;
    case topologies::Confidence::scenario:
      return result::Confidence::vendor;
  }
  return result::Confidence::guess;
}

}  // namespace

double attention_model_flops(const plan::StepProgram& program) {
  double flops = 0;
  std::vector<double> of_template(program.templates.size(), 0.0);
  for (std::size_t t = 0; t < program.templates.size(); ++t)
    for (const plan::Instr& instr : program.templates[t].instrs) {
      if (instr.kind != plan::InstrKind::kernel) continue;
      const plan::Kernel& kernel = program.kernels[static_cast<std::size_t>(instr.body)];
      if (kernel.model_flops == 0 || kernel.ops.empty()) continue;
      const ir::Program& local = program.programs[static_cast<std::size_t>(kernel.program)].local;
      if (is_attention(local, local.op(kernel.ops.front()))) of_template[t] += kernel.model_flops;
    }
  const double devices_per_stage = static_cast<double>(program.mesh.devices()) / static_cast<double>(program.stages);
  for (const plan::Schedule& schedule : program.schedules)
    for (const plan::Segment& segment : schedule.segments)
      for (std::size_t i = 0; i < segment.body.size(); ++i) {
        // Attention never moves between neighbouring calls, so any template of the kind tells.
        for (std::size_t t = 0; t < program.templates.size(); ++t)
          if (program.templates[t].kind == program.call_kinds[static_cast<std::size_t>(segment.body[i].kind)]) {
            flops += of_template[t] * static_cast<double>(segment.repeat) * devices_per_stage;
            break;
          }
      }
  return flops;
}

result::Memory memory_of(const plan::StepProgram& program, const topologies::Chip& chip) {
  const plan::MemorySummary& fullest =
      *std::max_element(program.memory.begin(), program.memory.end(),
                        [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
  result::Memory out;
  out.reserved_bytes = static_cast<std::int64_t>(chip.hbm_reserved.value.value());
  out.peak_bytes = fullest.peak_bytes + out.reserved_bytes;
  const double capacity = chip.hbm_capacity.value.value();
  out.capacity_bytes = capacity < 9e18 ? static_cast<std::int64_t>(capacity) : INT64_MAX;
  out.fits = out.peak_bytes <= out.capacity_bytes;
  out.parameters_bytes = fullest.at_peak[0];
  out.gradients_bytes = fullest.at_peak[1];
  out.optimizer_bytes = fullest.at_peak[2];
  out.activations_bytes = fullest.at_peak[3];
  out.workspace_bytes = fullest.at_peak[4];
  return out;
}

void fill_timing(const Job& job, const plan::StepProgram& program, const timing::StepTiming& timing,
                 result::Result& out) {
  out.step.time = timing.period.seconds();
  out.step.compute = timing.compute;
  out.step.communication_exposed = timing.communication;
  out.step.bubble = timing.bubble;
  out.step.input_stall = timing.input;
  out.step.overhead = timing.overhead;
  out.startup.first_step = timing.first_step.seconds();
  out.device_classes = static_cast<std::int64_t>(timing.classes);
  out.timeline = timing.timeline;
  for (result::MemorySample& sample : out.timeline.memory) sample.bytes += out.memory.reserved_bytes;
  out.communication = communication(program, timing);
  const double step = out.step.time.value(), devices = static_cast<double>(program.mesh.devices());
  const bool fixed = job.spec.model.family == models::Family::fixed;
  out.throughput.examples_per_s = static_cast<double>(job.spec.global_batch) / step;
  out.throughput.flops_convention = job.causal_flops ? "causal" : "full";
  if (job.spec.model.family == models::Family::transformer)
    out.throughput.tokens_per_s = out.throughput.examples_per_s * static_cast<double>(job.spec.sequence_length);
  if (!fixed) {
    double model = timing.model_flops;
    if (job.causal_flops) model -= attention_model_flops(program) / 2;
    const double peak = timing::peak_of(job.cluster.chip, job.spec.compute_dtype).value();
    out.throughput.model_flops_per_step = Flops(model);
    out.throughput.tflops_per_chip = model / devices / step * 1e-12;
    out.throughput.mfu = model / devices / step / peak;
    out.throughput.hfu = timing.executed_flops / devices / step / peak;
  }
  if (out.throughput.mfu && out.throughput.hfu && *out.throughput.mfu > 1.0001 * *out.throughput.hfu &&
      job.spec.attention == ir::AttentionKind::flash)
    out.notes.push_back(
        "MFU is above HFU because it counts attention in full, half of which flash attention skips; "
        "training.flops_convention causal counts the other half alone");
  if (!timing.steady)
    out.notes.push_back("the step's period did not repeat exactly within the steps played; the last one is given");
}

void fill_assumptions(const scenario::Scenario& scenario, const Job& job, result::Result& out) {
  for (const topologies::FactRow& fact : topologies::facts(job.cluster.chip)) {
    if (fact.name == "clock_rate" || fact.name == "price_per_hour") continue;
    out.assumptions.push_back(
        {job.cluster.chip.name + "." + fact.name, fact.value, fact.unit, fact.source, confidence_of(fact.confidence)});
  }
  for (const fabric::PhysicalAxis& axis : job.cluster.fabric.axes)
    if (axis.size > 1)
      for (const topologies::FactRow& fact : topologies::library_facts(job.cluster.chip, axis.level))
        out.assumptions.push_back({fact.name, fact.value, fact.unit, fact.source, confidence_of(fact.confidence)});
  for (const scenario::Default& d : scenario.defaults)
    out.assumptions.push_back({d.name, d.value, d.unit, "default of the scenario contract", result::Confidence::guess});
}

}  // namespace tpusim::session
