// Ops that were fused -> a Kernel with its cost and traffic.
#include <algorithm>

#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

using Named = std::pair<ir::ValueId, BufferRef>;

// The share of an op's multiply-adds that are neither padding nor done by other devices as well: padding goes by the
// valid part of each dim, repetition by the mesh axes that split none of its dims.
double useful_share(const Lowering& l, const spmd::Partitioned& p, const ir::Op& op) {
  InlineVector<ir::DimName, 24> seen;
  ir::MeshAxes split;
  double share = 1;
  const auto visit = [&](ir::ValueId v) {
    const ir::Shape& shape = p.local.value(v).type.shape;
    const spmd::PartitionSpec& spec = p.specs[at(v.index)];
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (seen.contains(shape[d].name)) continue;
      seen.push_back(shape[d].name);
      std::int64_t whole = shape[d].size;
      if (d < spec.dims.size())
        for (std::uint8_t axis : spec.dims[d]) {
          whole *= l.out.mesh.axes[axis].size;
          if (!split.contains(axis)) split.push_back(axis);
        }
      if (shape[d].valid != whole) share *= static_cast<double>(shape[d].valid) / static_cast<double>(whole);
    }
  };
  for (ir::ValueId v : op.operands) visit(v);
  for (ir::ValueId v : op.results) visit(v);
  for (std::size_t axis = 0; axis < l.out.mesh.axes.size(); ++axis)
    if (static_cast<std::int32_t>(axis) != l.out.pipeline_axis && !split.contains(static_cast<std::uint8_t>(axis)))
      share /= static_cast<double>(l.out.mesh.axes[axis].size);
  return share;
}

// Bytes of operand i that the op touches: a slice, a lookup and a pick read only what they return.
std::int64_t touched(const ir::Program& program, const ir::Op& op, std::size_t i) {
  const std::int64_t all = program.value(op.operands[i]).type.bytes();
  const bool part =
      std::holds_alternative<ir::Slice>(op.kind) ||
      (i == 0 && (std::holds_alternative<ir::Lookup>(op.kind) || std::holds_alternative<ir::Pick>(op.kind)));
  return part ? std::min(all, program.value(op.results[0]).type.bytes()) : all;
}

struct Reading {
  ir::ValueId value;
  std::int64_t bytes;
};

void add_cost(Lowering& l, std::int32_t program_index, const ir::Op& op, Kernel& kernel) {
  const spmd::Partitioned& p = l.out.programs[at(program_index)];
  std::vector<ir::TensorType> operands, results;
  for (ir::ValueId v : op.operands) operands.push_back(p.local.value(v).type);
  for (ir::ValueId v : op.results) results.push_back(p.local.value(v).type);
  const ir::OpCost cost = ir::cost(op.kind, operands, results);
  kernel.cost.model_flops += cost.model_flops;
  kernel.cost.executed_flops += cost.executed_flops;
  kernel.cost.vector_flops += cost.vector_flops;
  for (const ir::MatrixProduct& product : cost.products) kernel.cost.products.push_back(product);
  if (!on_matrix_unit(op.kind)) return;
  kernel.matrix = true;
  kernel.compute_dtype = operands[0].dtype;
  if (op.phase == ir::Phase::forward || op.phase == ir::Phase::backward)
    kernel.model_flops += cost.model_flops * useful_share(l, p, op);
}

}  // namespace

Node kernel_node(Lowering& l, std::int32_t program_index, const std::vector<ir::OpId>& ops,
                 const std::vector<std::uint8_t>& used_after) {
  const ir::Program& program = l.program(program_index);
  Kernel kernel;
  kernel.program = program_index;
  kernel.ops = ops;
  std::vector<Reading> readings;
  std::vector<ir::ValueId> made;
  for (ir::OpId id : ops) {
    const ir::Op& op = program.op(id);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const ir::ValueId v = op.operands[i];
      if (std::find(made.begin(), made.end(), v) != made.end()) continue;
      const std::int64_t bytes = touched(program, op, i);
      const auto known = std::find_if(readings.begin(), readings.end(), [v](const Reading& r) { return r.value == v; });
      if (known == readings.end())
        readings.push_back({v, bytes});
      else
        known->bytes = std::max(known->bytes, bytes);
    }
    for (ir::ValueId v : op.results) made.push_back(v);
  }
  const ir::Value& last = program.value(program.op(ops.back()).results[0]);
  kernel.compute_dtype = last.type.dtype;
  kernel.label = last.label;
  Node node;
  node.kind = InstrKind::kernel;
  for (const Reading& r : readings) {
    kernel.reads.emplace_back(r.value, l.home(program_index, r.value));
    kernel.bytes_read += r.bytes;
    node.reads.push_back(kernel.reads.back().second);
  }
  const Binding& binding = l.bindings[at(program_index)];
  for (ir::ValueId v : made) {
    if (used_after[at(v.index)] == 0) continue;
    const BufferRef ref = l.home(program_index, v);
    kernel.writes.emplace_back(v, ref);
    kernel.bytes_written += program.value(v).type.bytes();
    node.writes.push_back(ref);
    if (binding.in_place[at(v.index)] == 0 && !l.out.buffers[at(ref.buffer.index)].persistent)
      node.births.push_back(ref);
  }
  // The first and the later microbatches' backward calls have most kernels in common.
  std::int32_t& known = l.made_first[at(program_index)][at(ops[0].index)];
  if (known >= 0) {
    const Kernel& other = l.out.kernels[at(known)];
    if (other.ops == kernel.ops && other.reads == kernel.reads && other.writes == kernel.writes) {
      node.body = known;
      return node;
    }
  }
  for (ir::OpId id : ops) add_cost(l, program_index, program.op(id), kernel);
  node.body = known = static_cast<std::int32_t>(l.out.kernels.size());
  l.out.kernels.push_back(std::move(kernel));
  return node;
}

}  // namespace tpusim::plan::passes
