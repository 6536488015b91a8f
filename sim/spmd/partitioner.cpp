#include "sim/spmd/partitioner.hpp"

#include "sim/spmd/local_writer.hpp"
#include "sim/spmd/mesh_axes.hpp"
#include "sim/spmd/walk.hpp"

namespace tpusim::spmd {
namespace {

// Brings the accumulated gradient to the spec of its optimizer state.
Partitioned reduce_program(const ir::TensorType& type, const PartitionSpec& gradient, const PartitionSpec& state,
                           const Mesh& mesh) {
  Partitioned out;
  LocalWriter writer(mesh, out);
  ir::Value value;
  value.type = type;
  value.table = ir::Table::activations;  // as every port is (verifier rule program.c11)
  value.label = "gradient";
  const Cause cause{ir::OpId(), ir::Phase::update};
  const Placed in = writer.input(value, gradient);
  Placed reduced =
      writer.resolve(in, gradient.partial, state, cause, "rule 5: the accumulated gradient reduced, once a step");
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
  plan.reduce = reduce_program(gradient_type, gradient_spec, plan.state_spec, mesh);

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
