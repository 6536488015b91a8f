#include "sim/spmd/partitioner.hpp"

#include "sim/spmd/local_writer.hpp"
#include "sim/spmd/mesh_axes.hpp"
#include "sim/spmd/walk.hpp"

namespace tpusim::spmd {
namespace {

// Up to this size a reduction costs its steps, not its bytes: our choice, no published value (at 25 GB/s 1 MiB is 42
// us, three steps between hosts).
constexpr std::int64_t kSmallBytes = 1 << 20;

// The axes that split the batch.
MeshAxes batch_axes(const ShardingTables& tables) {
  MeshAxes axes;
  for (const Rule& rule : tables.activations)
    if (rule.axis == ir::Axis::batch) unite(axes, rule.mesh_axes);
  return axes;
}

// Brings the accumulated gradient to the spec of its optimizer state. A small one that is partial over other axes than
// the batch's too (a norm's scale under sequence parallelism) is reduced over those first: it takes as many steps as
// over all at once, and the rest then joins the gradients that are reduced over the batch's axes alone, instead of
// being a collective that holds the links of one level while it waits for those of another.
Partitioned reduce_program(const ir::TensorType& type, const PartitionSpec& gradient, const PartitionSpec& state,
                           const MeshAxes& batch, const Mesh& mesh) {
  Partitioned out;
  LocalWriter writer(mesh, out);
  ir::Value value;
  value.type = type;
  value.table = ir::Table::activations;  // as every port is (verifier rule program.c11)
  value.label = "gradient";
  const Cause cause{ir::OpId(), ir::Phase::update};
  const Placed in = writer.input(value, gradient);
  constexpr std::string_view kReason = "rule 5: the accumulated gradient reduced, once a step";
  Placed reduced = in;
  const MeshAxes others = without(gradient.partial, batch);
  if (type.bytes() <= kSmallBytes && others.size() < gradient.partial.size())
    reduced = writer.resolve(reduced, others, state, cause, kReason);
  reduced = writer.resolve(reduced, gradient.partial, state, cause, kReason);
  reduced = writer.reshard(reduced, state.dims, cause, "rule 5: the gradient brought to its optimizer state's spec");
  out.local.name = "reduce";
  out.local.x_in = in.local;
  out.local.x_out = reduced.local;
  out.placed = {in, reduced};
  return out;
}

}  // namespace

Partitioned partition(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh) {
  return walk(global, tables, mesh, nullptr).partitioned;
}

ParameterPlan plan_parameter(const ir::Parameter& parameter, const ir::TensorType& type,
                             const PartitionSpec& gradient_spec, const ir::OptimizerSettings& optimizer,
                             ir::DType gradient_dtype, ir::DType master_dtype, const ShardingTables& tables,
                             const Mesh& mesh) {
  ParameterPlan plan;
  plan.parameter_spec = wanted_spec(tables, ir::Table::parameters, type, mesh);
  plan.gradient_spec = gradient_spec;
  plan.state_spec = wanted_spec(tables, ir::Table::optimizer, type, mesh);
  for (const MeshAxes& list : plan.state_spec.dims) unite(plan.norm_axes, list);
  plan.norm_axes = ascending(plan.norm_axes);

  ir::TensorType gradient_type = type;
  gradient_type.dtype = gradient_dtype;
  plan.reduce = reduce_program(gradient_type, gradient_spec, plan.state_spec, batch_axes(tables), mesh);

  const ir::UpdateProgram update = ir::update_program(optimizer, parameter, type, gradient_dtype, master_dtype);
  const UpdatePorts ports{update.parameter, update.new_parameter, update.new_slots};
  WalkResult result = walk(update.program, tables, mesh, &ports);
  const auto local = [&result](ir::ValueId id) {
    return id.valid() ? result.last[static_cast<std::size_t>(id.index)] : ir::ValueId();
  };
  plan.parameter = local(update.parameter);
  plan.gradient = local(update.gradient);
  plan.gscale = local(update.gscale);
  plan.step = local(update.step);
  plan.new_parameter = local(update.new_parameter);
  for (const ir::ValueId slot : update.slots) plan.slots.push_back(local(slot));
  for (const ir::ValueId slot : update.new_slots) plan.new_slots.push_back(local(slot));
  plan.update = std::move(result.partitioned);
  return plan;
}

}  // namespace tpusim::spmd
