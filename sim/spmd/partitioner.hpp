// The partitioner: a global program and the sharding tables -> the program of one device, with collectives. Five rules
// (ARCHITECTURE.md); nothing is guessed and no strategy is named here.
#pragma once

#include <string>
#include <vector>

#include "sim/base/verdict.hpp"
#include "sim/ir/ops.hpp"
#include "sim/spmd/partition_spec.hpp"

namespace tpusim::spmd {

// Where a global value first exists on the devices, and how it is laid out there.
struct Placed {
  ir::ValueId local;
  PartitionSpec spec;
};

struct Partitioned {
  ir::Program local;                 // shapes of one device's shards; the same on every device (SPMD)
  std::vector<Placed> placed;        // by global value index; invalid local where the value was never made
  std::vector<PartitionSpec> specs;  // by local value index
  std::vector<ir::OpId> origin;  // by local op index: the global op it computes, or the one that a collective serves
  std::vector<std::string_view>
      reason;  // by local op index: which partitioner rule put a collective there ("rule 3: gathered for use")
};

// Specs of ports and other values that are fixed from outside: x_in must arrive as its wanted spec (activations table),
// x_out is left in its wanted spec, so blocks fit together; likewise dx_out, dx_in. Parameters arrive in their table's
// spec. A parameter's gradient is left as the gradients table says *except* over axes that the table leaves whole:
// there it stays a partial sum (it is accumulated over microbatches first and reduced once a step by reduce_gradient).
// Collectives shared: equal gathers of one value within one phase are one.
// A broken precondition (a rule that names one axis twice, ...) is an InternalError; what the user can cause is a
// Verdict upstream.
Partitioned partition(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh);

// The end of a parameter's life in one step, as per-device programs on values of the gradient's dtype:
// reduce: accumulated gradient (spec of the gradients table, partial over `partial`) -> the spec of its optimizer
// state; update: parameter sliced to the state's spec, updated there, the new parameter gathered to its own spec. Norm:
// sum of squares of the reduced gradient, a scalar partial over the axes that split it.
struct ParameterPlan {
  Partitioned reduce;  // x_in = accumulated gradient, x_out = reduced gradient
  Partitioned update;  // of ir::UpdateProgram; ids of its ports below, local
  ir::ValueId parameter, gradient, gscale, step, new_parameter;
  std::vector<ir::ValueId> slots, new_slots;
  PartitionSpec parameter_spec, gradient_spec, state_spec;
  MeshAxes norm_axes;  // the axes that split state_spec: its sum of squares is partial over these
};
ParameterPlan plan_parameter(const ir::Parameter& parameter, const ir::TensorType& type,
                             const PartitionSpec& gradient_spec, const ir::OptimizerSettings& optimizer,
                             ir::DType gradient_dtype, ir::DType master_dtype, const ShardingTables& tables,
                             const Mesh& mesh);

}  // namespace tpusim::spmd
