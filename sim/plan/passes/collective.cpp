// Pass 4: collective ops -> Collectives with a plan that was chosen once for each size and group.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

std::int32_t plan_for(Lowering& l, const PlanKey& key) {
  for (std::size_t i = 0; i < l.plan_keys.size(); ++i)
    if (l.plan_keys[i] == key) return static_cast<std::int32_t>(i);
  const std::vector<GroupAxis> axes = group_axes(key.axes, l.in.placement, l.in.fabric);
  std::vector<std::int32_t> resources;
  for (const GroupAxis& axis : axes)
    if (axis.size > 1) resources.push_back(axis.physical);
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  l.plan_keys.push_back(key);
  l.plan_resources.push_back(std::move(resources));
  l.out.plans.push_back(choose(key.kind, key.reduction, key.elements, key.element_bytes, axes));
  return static_cast<std::int32_t>(l.out.plans.size() - 1);
}

}  // namespace

Node collective_node(Lowering& l, std::int32_t program_index, const std::vector<ir::OpId>& ops) {
  const ir::Program& program = l.program(program_index);
  const Binding& binding = l.bindings[at(program_index)];
  Collective c;
  Node node;
  node.kind = InstrKind::collective;
  c.program = program_index;
  c.ops = ops;
  PlanKey key{CollectiveKind::all_reduce, ir::Reduction::sum, 0, 1, {}};
  for (ir::OpId id : ops) {
    const ir::Op& op = program.op(id);
    const ir::ValueId from = op.operands[0], to = op.results[0];
    if (const auto* gather = std::get_if<ir::AllGather>(&op.kind)) {
      key.kind = CollectiveKind::all_gather;
      c.mesh_axes = gather->axes;
    } else if (const auto* scatter = std::get_if<ir::ReduceScatter>(&op.kind)) {
      key.kind = CollectiveKind::reduce_scatter;
      c.mesh_axes = scatter->axes;
    } else {
      c.mesh_axes = std::get<ir::AllReduce>(op.kind).axes;
      key.reduction = std::get<ir::AllReduce>(op.kind).kind;
    }
    const ir::ValueId whole = key.kind == CollectiveKind::all_gather ? to : from;
    c.elements =
        checked_add(c.elements, ir::element_count(program.value(whole).type.shape), "the elements of a collective");
    key.element_bytes = ir::bytes_of(program.value(from).type.dtype);
    c.reads.emplace_back(from, l.home(program_index, from));
    c.writes.emplace_back(to, l.home(program_index, to));
    node.reads.push_back(c.reads.back().second);
    node.writes.push_back(c.writes.back().second);
    if (binding.in_place[at(to.index)] == 0 && !l.out.buffers[at(c.writes.back().second.buffer.index)].persistent)
      node.births.push_back(c.writes.back().second);
  }
  std::int32_t& known = l.made_first[at(program_index)][at(ops[0].index)];
  if (known >= 0) {
    const Collective& other = l.out.collectives[at(known)];
    if (other.ops == c.ops && other.reads == c.reads && other.writes == c.writes) {
      node.body = known;
      return node;
    }
  }
  key.elements = c.elements;
  key.axes = c.mesh_axes;
  c.plan = plan_for(l, key);
  c.resources = l.plan_resources[at(c.plan)];
  c.label = program.value(program.op(ops[0]).operands[0]).label;
  node.body = known = static_cast<std::int32_t>(l.out.collectives.size());
  l.out.collectives.push_back(std::move(c));
  return node;
}

}  // namespace tpusim::plan::passes
