// A job small enough to execute, with everything that makes it this job.
#include <algorithm>

#include "sim/session/verification.hpp"

namespace tpusim::session {

namespace {

constexpr std::int64_t kMaxDevices = 16;

std::int64_t axis_size(const JobSpec& spec, std::string_view name) {
  for (const strategies::RequestedAxis& axis : spec.mesh)
    if (axis.name == name) return axis.size;
  return 1;
}

// Whether four members of a tensor axis have something of their own in the shrunken attention (see shrink_model): only
// as many heads are kept as there are.
bool four_ways(const models::ModelConfig& full) {
  return full.family != models::Family::transformer || full.heads != full.kv_heads || full.kv_heads >= 4;
}

void shrink_mesh(JobSpec& spec, bool tensor_split) {
  std::int64_t devices = 1;
  for (strategies::RequestedAxis& axis : spec.mesh) {
    axis.size = std::min<std::int64_t>(axis.size, 2);
    devices *= axis.size;
  }
  // A tensor axis that is split over kv_heads and q_group needs room for both parts.
  for (strategies::RequestedAxis& axis : spec.mesh)
    if (axis.name == "tensor" && tensor_split && devices * 2 <= kMaxDevices) axis.size = 4, devices *= 2;
  // A lone axis gets four members, so that a ring is more than an exchange.
  if (devices == 2)
    for (strategies::RequestedAxis& axis : spec.mesh)
      if (axis.size == 2 && (axis.name != "tensor" || four_ways(spec.model))) axis.size = 4;
}

void shrink_model(JobSpec& spec, const JobSpec& full) {
  models::ModelConfig& m = spec.model;
  const std::int64_t stages = axis_size(spec, "pipeline"), tensor = axis_size(spec, "tensor");
  const std::int64_t group = full.model.heads / std::max<std::int64_t>(full.model.kv_heads, 1);
  m.layers = stages > 1 ? 2 * stages : 2;
  m.embed = 8;
  m.mlp = 12;
  if (m.family == models::Family::transformer) {
    m.kv_heads = full.model.kv_heads == 1
                     ? 1
                     : std::min<std::int64_t>(full.model.kv_heads, group > 1 ? 2 : std::max<std::int64_t>(2, tensor));
    const std::int64_t q_group = group == 1 ? 1 : std::max<std::int64_t>(2, tensor / m.kv_heads);
    m.heads = m.kv_heads * q_group;
    m.head_dim = 4;
    m.vocab = 19;  // prime, so that a split vocab is padded
    m.max_positions = 10;
  }
  spec.sequence_length = full.sequence_length == 1 ? 1 : 8;
}

}  // namespace

Shrunken shrink(const Job& job, const Planned& full) {
  Shrunken out;
  out.spec = job.spec;
  JobSpec& spec = out.spec;
  const bool split = full.setup.mesh.find("tensor").size() > 1;
  shrink_mesh(spec, split);
  shrink_model(spec, job.spec);
  spec.compute_dtype = spec.parameter_dtype = spec.gradient_dtype = spec.master_dtype = ir::DType::f64;
  spec.flash_block = 4;
  spec.bucket_bytes = std::min<std::int64_t>(spec.bucket_bytes, 2048);
  // Large enough that a gradient which is zero but for rounding is not amplified.
  spec.optimizer.eps = std::max(spec.optimizer.eps, 1e-3);
  // Without a memory of squares Adam takes steps of one size whatever the gradient, its rounding included.
  spec.optimizer.beta2 = std::max(spec.optimizer.beta2, 0.5);
  // Small enough that three steps do not diverge: a run that does amplifies roundings until they look like faults.
  spec.optimizer.learning_rate =
      std::min(spec.optimizer.learning_rate, 1e-2 / std::max(1.0, spec.optimizer.weight_decay));
  const std::int64_t replicas = axis_size(spec, "data") * axis_size(spec, "fsdp");
  const std::int64_t microbatches = full.program.microbatches > 1 ? (axis_size(spec, "pipeline") > 1 ? 4 : 2) : 1;
  spec.microbatch = full.setup.microbatch > 1 ? 2 : 1;
  spec.global_batch = replicas * spec.microbatch * microbatches;
  // One physical axis of the same kind for each mesh axis; the levels keep their order, so the placement is the
  // identity.
  out.fabric = job.cluster.fabric;
  out.fabric.axes.clear();
  for (std::size_t i = 0; i < spec.mesh.size(); ++i) {
    if (spec.mesh[i].size == 1) continue;
    fabric::PhysicalAxis axis = job.cluster.fabric.axes.front();
    const ir::MeshAxes of_full = full.setup.mesh.find(spec.mesh[i].name);
    if (!of_full.empty() && !full.placement.parts[of_full[0]].empty())
      axis = job.cluster.fabric.axes[static_cast<std::size_t>(full.placement.parts[of_full[0]].front().physical)];
    axis.name = spec.mesh[i].name;
    axis.size = spec.mesh[i].size;
    out.fabric.axes.push_back(axis);
  }
  if (out.fabric.axes.empty()) {
    out.fabric.axes.push_back(job.cluster.fabric.axes.front());
    out.fabric.axes.front().size = 1;
  }
  return out;
}

}  // namespace tpusim::session
