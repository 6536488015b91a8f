// Pass 1: each block on one device, the end of each parameter's life in a step, and which holder of a tied parameter
// does what.
//
// All reductions and updates of a block's parameters are joined into one program beside it, the update program of the
// block.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

// One holder of a tied parameter.
struct Holder {
  std::int32_t block, use, stage, site;
};

spmd::PartitionSpec gradient_spec(const Lowering& l, const BlockPlan& block, const ParameterUse& use) {
  return l.out.programs[at(block.program)].specs[at(use.gradient.index)];
}

// All holders' gradients must be partial over the same axes to be added: the others are reduced at once.
void make_partials_equal(Lowering& l, const std::vector<Holder>& group) {
  ir::MeshAxes common =
      gradient_spec(l, l.blocks[at(group[0].block)], l.blocks[at(group[0].block)].parameters[at(group[0].use)]).partial;
  for (const Holder& h : group) {
    const spmd::PartitionSpec spec =
        gradient_spec(l, l.blocks[at(h.block)], l.blocks[at(h.block)].parameters[at(h.use)]);
    ir::MeshAxes both;
    for (std::uint8_t axis : common)
      if (spec.partial.contains(axis)) both.push_back(axis);
    common = both;
  }
  for (const Holder& h : group) {
    BlockPlan& block = l.blocks[at(h.block)];
    ParameterUse& use = block.parameters[at(h.use)];
    spmd::PartitionSpec spec = gradient_spec(l, block, use);
    ir::MeshAxes extra;
    for (std::uint8_t axis : spec.partial)
      if (!common.contains(axis)) extra.push_back(axis);
    if (extra.empty()) continue;
    Extension more(l.out.programs[at(block.program)]);
    more.builder.phase = ir::Phase::backward;
    const ir::Value gradient = more.partitioned.local.value(use.gradient);
    use.gradient = more.builder.add(ir::AllReduce{ir::Reduction::sum, extra}, {use.gradient}, gradient.type.dtype,
                                    {gradient.label, gradient.type.place, ir::Table::gradients})[0];
    spec.partial = common;
    more.settle(spec);
    block.backward_ops.push_back(ir::OpId(more.partitioned.local.ops.size() - 1));
  }
}

void resolve_ties(Lowering& l) {
  std::vector<std::string> names;
  std::vector<std::vector<Holder>> groups;
  for (std::size_t b = 0; b < l.blocks.size(); ++b) {
    const ir::Program& program = l.program(l.blocks[b].program);
    for (std::size_t u = 0; u < l.blocks[b].parameters.size(); ++u) {
      ParameterUse& use = l.blocks[b].parameters[u];
      const std::string& tie = program.parameters[at(use.index)].tie;
      if (tie.empty()) continue;
      TPUSIM_CHECK(l.sites_of_block[b].size() == 1, "a tied parameter belongs to blocks that occur once");
      const std::int32_t site = l.sites_of_block[b][0];
      std::size_t g = static_cast<std::size_t>(std::find(names.begin(), names.end(), tie) - names.begin());
      if (g == names.size()) {
        names.push_back(tie);
        groups.emplace_back();
      }
      groups[g].push_back(
          {static_cast<std::int32_t>(b), static_cast<std::int32_t>(u), l.out.sites[at(site)].stage, site});
    }
  }
  for (std::vector<Holder>& group : groups) {
    if (group.size() < 2) continue;
    std::sort(group.begin(), group.end(), [](const Holder& a, const Holder& b) { return a.site < b.site; });
    make_partials_equal(l, group);
    for (std::size_t i = 0; i < group.size(); ++i) {
      ParameterUse& use = l.blocks[at(group[i].block)].parameters[at(group[i].use)];
      use.tied = true;
      use.counts = i == 0;
      use.updates = i == 0 || group[i - 1].stage != group[i].stage;
      use.writes_first = i + 1 == group.size() || group[i + 1].stage != group[i].stage;
    }
  }
}

std::int32_t producer(const ir::Program& program, ir::ValueId value) {
  return program.value(value).producer.index;
}

// Adds acc + gradient to the block's program; used where the gradient is not the first of its step.
void add_accumulation(Lowering& l, BlockPlan& block) {
  Extension more(l.out.programs[at(block.program)]);
  more.builder.phase = ir::Phase::backward;
  for (ParameterUse& use : block.parameters) {
    const ir::Value gradient = more.partitioned.local.value(use.gradient);
    TPUSIM_CHECK(gradient.producer.valid(), "a gradient that nobody makes");
    const spmd::PartitionSpec spec = more.partitioned.specs[at(use.gradient.index)];
    use.produced_at = producer(more.partitioned.local, use.gradient);
    const ir::ValueId before = more.builder.input(gradient.type, gradient.label, ir::Table::gradients);
    use.accumulated = more.builder.map(ir::Elementwise::add, before, use.gradient,
                                       {gradient.label, gradient.type.place, ir::Table::gradients});
    use.accumulate = more.partitioned.local.value(use.accumulated).producer;
    const ir::OpId origin = more.partitioned.origin[at(use.produced_at)];
    more.settle(spec, origin);
  }
}

// Copies a program behind another; returns by how much value ids grow.
std::int32_t append(spmd::Partitioned& to, const spmd::Partitioned& from, std::vector<ir::OpId>& ops) {
  const auto values = static_cast<std::int32_t>(to.local.values.size()),
             first = static_cast<std::int32_t>(to.local.ops.size());
  for (ir::Value value : from.local.values) {
    if (value.producer.valid()) value.producer.index += first;
    to.local.values.push_back(value);
  }
  for (ir::Op op : from.local.ops) {
    for (ir::ValueId& v : op.operands) v.index += values;
    for (ir::ValueId& v : op.results) v.index += values;
    op.phase = ir::Phase::update;
    ops.push_back(ir::OpId(to.local.ops.size()));
    to.local.ops.push_back(op);
  }
  to.specs.insert(to.specs.end(), from.specs.begin(), from.specs.end());
  to.origin.insert(to.origin.end(), from.origin.begin(), from.origin.end());
  to.reason.insert(to.reason.end(), from.reason.begin(), from.reason.end());
  to.specs.resize(to.local.values.size());
  to.origin.resize(to.local.ops.size());
  to.reason.resize(to.local.ops.size());
  return values;
}

ir::ValueId shifted(ir::ValueId id, std::int32_t by) {
  return id.valid() ? ir::ValueId(id.index + by) : id;
}

// The update program of one parameter behind the others. Without clipping gscale is the constant 1, made inside the
// update kernel: its op stands before the ops that read it.
std::int32_t append_update(Lowering& l, spmd::Partitioned& joined, const spmd::ParameterPlan& plan, ParameterUse& use) {
  if (l.clipping() || !plan.gscale.valid()) return append(joined, plan.update, use.update_ops);
  const ir::OpId constant(joined.local.ops.size());
  joined.local.ops.emplace_back();
  use.update_ops.push_back(constant);
  const std::int32_t offset = append(joined, plan.update, use.update_ops);
  ir::Op& fill = joined.local.ops[at(constant.index)];
  fill.kind = ir::Fill{1.0};
  fill.phase = ir::Phase::update;
  fill.results.push_back(shifted(plan.gscale, offset));
  joined.local.value(fill.results[0]).producer = constant;
  return offset;
}

UpdatePorts join_update(Lowering& l, spmd::Partitioned& joined, const ir::Program& global, const BlockPlan& block,
                        ParameterUse& use) {
  const LowerOptions& options = l.in.options;
  const ir::Parameter& parameter = global.parameters[at(use.index)];
  const spmd::ParameterPlan plan =
      spmd::plan_parameter(parameter, global.value(parameter.value).type, gradient_spec(l, block, use),
                           options.optimizer, options.gradient_dtype, options.master_dtype, l.in.tables, l.in.mesh);
  UpdatePorts port;
  std::int32_t offset = append(joined, plan.reduce, use.reduce_ops);
  port.accumulated = shifted(plan.reduce.local.x_in, offset);
  port.reduced = shifted(plan.reduce.local.x_out, offset);
  offset = append_update(l, joined, plan, use);
  if (l.clipping()) port.gscale = shifted(plan.gscale, offset);
  // The update reads what the reduction made.
  const ir::ValueId gradient = shifted(plan.gradient, offset);
  for (ir::OpId op : use.update_ops)
    for (ir::ValueId& v : joined.local.ops[at(op.index)].operands)
      if (v == gradient) v = port.reduced;
  port.parameter = shifted(plan.parameter, offset);
  port.new_parameter = shifted(plan.new_parameter, offset);
  port.step = shifted(plan.step, offset);
  for (ir::ValueId v : plan.slots) port.slots.push_back(shifted(v, offset));
  for (ir::ValueId v : plan.new_slots) port.new_slots.push_back(shifted(v, offset));
  port.norm_axes = plan.norm_axes;
  return port;
}

}  // namespace

void partition_blocks(Lowering& l) {
  for (std::size_t b = 0; b < l.blocks.size(); ++b) {
    BlockPlan& block = l.blocks[b];
    block.program = static_cast<std::int32_t>(b);
    l.out.programs.push_back(spmd::partition(l.in.model.blocks[b], l.in.tables, l.in.mesh));
    const ir::Program& local = l.out.programs.back().local;
    for (std::size_t i = 0; i < local.ops.size(); ++i)
      (local.ops[i].phase == ir::Phase::forward ? block.forward_ops : block.backward_ops).push_back(ir::OpId(i));
    for (std::size_t i = 0; i < local.parameters.size(); ++i) {
      if (!local.parameters[i].gradient.valid()) continue;
      ParameterUse use;
      use.index = static_cast<std::int32_t>(i);
      use.gradient = local.parameters[i].gradient;
      block.parameters.push_back(use);
    }
  }
  resolve_ties(l);
  for (BlockPlan& block : l.blocks) add_accumulation(l, block);
  l.ports.resize(l.blocks.size());
  for (std::size_t b = 0; b < l.blocks.size(); ++b) {
    BlockPlan& block = l.blocks[b];
    block.update_program = static_cast<std::int32_t>(l.out.programs.size());
    spmd::Partitioned joined;
    joined.local.name = l.in.model.blocks[b].name + " update";
    for (ParameterUse& use : block.parameters)
      l.ports[b].push_back(use.updates ? join_update(l, joined, l.in.model.blocks[b], block, use) : UpdatePorts{});
    l.out.programs.push_back(std::move(joined));
  }
}

}  // namespace tpusim::plan::passes
