#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/numeric/shards.hpp"
#include "sim/session/verify/parts.hpp"

namespace tpusim::session {

namespace {

// By local value: the global value that it is a layout of (its own, gathered, scattered, reduced or sliced), invalid if
// none.
std::vector<ir::ValueId> global_of(const spmd::Partitioned& part) {
  std::vector<ir::ValueId> out(part.local.values.size());
  for (std::size_t g = 0; g < part.placed.size(); ++g)
    if (part.placed[g].local.valid()) out[static_cast<std::size_t>(part.placed[g].local.index)] = ir::ValueId(g);
  for (const ir::Op& op : part.local.ops) {
    const bool moves = std::holds_alternative<ir::AllGather>(op.kind) ||
                       std::holds_alternative<ir::ReduceScatter>(op.kind) ||
                       std::holds_alternative<ir::AllReduce>(op.kind) || std::holds_alternative<ir::Slice>(op.kind);
    ir::ValueId& to = out[static_cast<std::size_t>(op.results[0].index)];
    if (moves && !to.valid()) to = out[static_cast<std::size_t>(op.operands[0].index)];
  }
  return out;
}

}  // namespace

std::string describe_op(const spmd::Partitioned& part, const spmd::Mesh& mesh, std::size_t op_index, std::int64_t site,
                        std::int64_t microbatch) {
  const ir::Op& op = part.local.ops[op_index];
  const ir::Value& value = part.local.value(op.results[0]);
  std::string text = fmt::format("site {} ({}), ", site, part.local.name);
  if (microbatch >= 0) text += fmt::format("microbatch {}, ", microbatch);
  text += fmt::format("{}: {} \"{}\"", ir::phase_name(op.phase), ir::op_name(op.kind), value.label);
  const ir::MeshAxes* axes = nullptr;
  if (const auto* g = std::get_if<ir::AllGather>(&op.kind)) axes = &g->axes;
  if (const auto* s = std::get_if<ir::ReduceScatter>(&op.kind)) axes = &s->axes;
  if (const auto* r = std::get_if<ir::AllReduce>(&op.kind)) axes = &r->axes;
  if (axes != nullptr) text += fmt::format(" over {}", mesh.to_string(*axes));
  if (op_index < part.reason.size() && !part.reason[op_index].empty())
    text += fmt::format(" [{}]", part.reason[op_index]);
  return text;
}

std::vector<double> valid_entries(const numeric::Tensor& tensor) {
  std::vector<double> out;
  const ir::Shape& shape = tensor.shape();
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    bool counts = true;
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      counts = counts && rest % shape[d].size < shape[d].valid;
      rest /= shape[d].size;
    }
    if (counts) out.push_back(tensor.at(i));
  }
  return out;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, magnitude = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(a[i]) || a[i] == b[i]) continue;
    difference = std::max(difference, std::abs(a[i] - b[i]));
    magnitude = std::max({magnitude, std::abs(a[i]), std::abs(b[i])});
  }
  return difference / magnitude;
}

Finding compare_values(const Planned& planned, const Observed& observed, const numeric::ReferenceModel& reference,
                       double tolerance) {
  Finding out;
  const plan::StepProgram& program = planned.program;
  std::vector<std::vector<ir::ValueId>> globals;
  for (std::size_t b = 0; b < planned.model.blocks.size(); ++b) globals.push_back(global_of(program.programs[b]));
  const auto check = [&](std::int32_t block, std::size_t op_index, std::int32_t site, std::int64_t microbatch) {
    const spmd::Partitioned& part = program.programs[static_cast<std::size_t>(block)];
    for (ir::ValueId local : part.local.ops[op_index].results) {
      const ir::ValueId global = globals[static_cast<std::size_t>(block)][static_cast<std::size_t>(local.index)];
      if (!global.valid() || part.local.value(local).type.dtype == ir::DType::i32) continue;
      const auto found = observed.find({block, local.index, site, microbatch});
      const numeric::ReferenceRun& run = reference.values(microbatch, site);
      if (found == observed.end() || !run.has(global)) continue;
      std::vector<const numeric::Tensor*> shards;
      for (const numeric::Tensor& t : found->second)
        shards.push_back(t.size() > 0 && t.shape().size() == part.local.value(local).type.shape.size() ? &t : nullptr);
      const numeric::Assembled whole =
          numeric::assemble(shards, part.specs[static_cast<std::size_t>(local.index)], program.mesh);
      const double error = std::max(relative_difference(valid_entries(whole.value), valid_entries(run.value(global))),
                                    whole.replica_difference);
      ++out.compared;
      out.error = std::max(out.error, error);
      if (!(error <= tolerance) && out.culprit.empty())
        out.culprit = describe_op(part, program.mesh, op_index, site, microbatch);
    }
  };
  const auto sites = static_cast<std::int32_t>(program.sites.size());
  for (std::int64_t m = 0; m < program.microbatches; ++m)
    for (const bool backward : {false, true})
      for (std::int32_t i = 0; i < sites; ++i) {
        const std::int32_t site = backward ? sites - 1 - i : i;
        const std::int32_t block = program.sites[static_cast<std::size_t>(site)].block;
        const ir::Program& local = program.programs[static_cast<std::size_t>(block)].local;
        for (std::size_t op = 0; op < local.ops.size(); ++op)
          if ((local.ops[op].phase != ir::Phase::forward) == backward) check(block, op, site, m);
      }
  return out;
}

}  // namespace tpusim::session
