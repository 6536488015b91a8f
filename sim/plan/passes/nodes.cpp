// The nodes of each block's calls: its fused ops, and the once-a-step reductions of its gradients in buckets.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

// A gradient's first value of the step goes straight to its buffer; later ones to a temporary that is added.
class FirstGradients {
 public:
  FirstGradients(Lowering& l, const BlockPlan& block, bool first) : binding_(l.bindings[at(block.program)]) {
    if (!first) return;
    for (const ParameterUse& use : block.parameters) {
      if (!use.writes_first) continue;
      const auto v = at(use.gradient.index);
      changed_.push_back({v, binding_.bound[v], binding_.keep[v]});
      binding_.bound[v] = {use.gradient_buffer, 0};
      binding_.keep[v] = 1;
    }
  }
  ~FirstGradients() {
    for (const Change& c : changed_) {
      binding_.bound[c.value] = c.bound;
      binding_.keep[c.value] = c.keep;
    }
  }
  FirstGradients(const FirstGradients&) = delete;
  FirstGradients& operator=(const FirstGradients&) = delete;

 private:
  struct Change {
    std::size_t value;
    BufferRef bound;
    std::uint8_t keep;
  };
  Binding& binding_;
  std::vector<Change> changed_;
};

// Backward ops with the additions to accumulators, each right behind the op that makes its gradient.
std::vector<ir::OpId> backward_ops(const Lowering& l, const BlockPlan& block, bool first,
                                   std::vector<std::uint8_t>& accumulates) {
  std::vector<ir::OpId> follows(l.program(block.program).ops.size());
  accumulates.assign(follows.size(), 0);
  for (const ParameterUse& use : block.parameters)
    if (!first || !use.writes_first) {
      follows[at(use.produced_at)] = use.accumulate;
      accumulates[at(use.accumulate.index)] = 1;
    }
  std::vector<ir::OpId> ops;
  for (ir::OpId op : block.backward_ops) {
    ops.push_back(op);
    if (follows[at(op.index)].valid()) ops.push_back(follows[at(op.index)]);
  }
  return ops;
}

std::vector<Node> backward_nodes(Lowering& l, BlockPlan& block, bool first) {
  std::vector<std::uint8_t> accumulates;
  const std::vector<ir::OpId> ops = backward_ops(l, block, first, accumulates);
  const FirstGradients bound(l, block, first);
  std::vector<Node> nodes = nodes_of(l, block.program, ops);
  for (Node& node : nodes) {
    if (node.kind != InstrKind::kernel) continue;
    const Kernel& kernel = l.out.kernels[at(node.body)];
    node.accumulate =
        std::all_of(kernel.ops.begin(), kernel.ops.end(), [&](ir::OpId op) { return accumulates[at(op.index)] != 0; });
  }
  return nodes;
}

// Gradient reductions, level by level of their chains, in buckets, in the order in which backward makes the gradients.
std::vector<Node> reduce_nodes(Lowering& l, const BlockPlan& block) {
  std::vector<const ParameterUse*> uses;
  std::size_t levels = 0;
  for (const ParameterUse& use : block.parameters) {
    uses.push_back(&use);
    levels = std::max(levels, use.reduce_ops.size());
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const ParameterUse* a, const ParameterUse* b) { return a->produced_at < b->produced_at; });
  const ir::Program& program = l.program(block.update_program);
  const std::vector<std::uint8_t> used(program.values.size(), 1);
  std::vector<Node> nodes;
  for (std::size_t level = 0; level < levels; ++level) {
    Buckets buckets(program, l.in.options.bucket_bytes);
    for (const ParameterUse* use : uses) {
      if (level >= use->reduce_ops.size()) continue;
      const ir::OpId id = use->reduce_ops[level];
      if (is_collective(program.op(id).kind))
        buckets.put(id);
      else
        nodes.push_back(kernel_node(l, block.update_program, {id}, used));
    }
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      nodes.push_back(collective_node(l, block.update_program, buckets.ops(b)));
      nodes.back().bucket = true;
    }
  }
  return nodes;
}

// Sums over the stages that hold a tied parameter.
void add_stage_reduces(Lowering& l, const BlockPlan& block, std::vector<Node>& nodes) {
  for (const ParameterUse& use : block.parameters) {
    if (use.stage_reduce < 0) continue;
    Node node;
    node.kind = InstrKind::stage_reduce;
    node.body = use.stage_reduce;
    node.reads = node.writes = {l.out.stage_reduces[at(use.stage_reduce)].buffer};
    nodes.push_back(node);
  }
}

void append(std::vector<Node>& to, std::vector<Node> from) {
  for (Node& node : from) to.push_back(std::move(node));
}

// A gradient that was reduced into a buffer of its own is held until that is used: releasing it any earlier would make
// every later allocation of the plan wait for the reduction.
void hold_gradients(BlockPlan& block) {
  for (const ParameterUse& use : block.parameters) {
    if (!use.updates || use.reduced_buffer == use.gradient_buffer) continue;
    const BufferRef reduced{use.reduced_buffer, 0}, gradient{use.gradient_buffer, 0};
    const auto reader = std::find_if(block.update.begin(), block.update.end(), [&](const Node& node) {
      return node.kind == InstrKind::kernel &&
             std::find(node.reads.begin(), node.reads.end(), reduced) != node.reads.end();
    });
    TPUSIM_CHECK(reader != block.update.end(), "an update that does not read its gradient");
    reader->reads.push_back(gradient);
  }
}

void make_update_nodes(Lowering& l, BlockPlan& block) {
  std::vector<ir::OpId> ops;
  for (const ParameterUse& use : block.parameters) ops.insert(ops.end(), use.update_ops.begin(), use.update_ops.end());
  if (l.clipping()) {
    add_stage_reduces(l, block, block.norm);
    append(block.norm, nodes_of(l, block.update_program, block.norm_ops));
  } else {
    add_stage_reduces(l, block, block.update);
  }
  append(block.update, nodes_of(l, block.update_program, ops));
  hold_gradients(block);
}

void make_clip_nodes(Lowering& l) {
  ClipPlan& clip = l.clip;
  if (clip.program < 0) return;
  const std::vector<std::uint8_t> used(l.program(clip.program).values.size(), 1);
  clip.start.push_back(kernel_node(l, clip.program, clip.start_ops, used));
  if (clip.stage_reduce < 0) {
    std::vector<ir::OpId> ops = clip.sum_ops;
    ops.insert(ops.end(), clip.scale_ops.begin(), clip.scale_ops.end());
    l.bindings[at(clip.program)].keep[at(clip.total.index)] = 0;
    clip.nodes = nodes_of(l, clip.program, ops);
    return;
  }
  clip.nodes = nodes_of(l, clip.program, clip.sum_ops);
  Node node;
  node.kind = InstrKind::stage_reduce;
  node.body = clip.stage_reduce;
  node.reads = node.writes = {l.out.stage_reduces[at(clip.stage_reduce)].buffer};
  clip.nodes.push_back(node);
  append(clip.nodes, nodes_of(l, clip.program, clip.scale_ops));
}

}  // namespace

std::vector<Node> nodes_of(Lowering& l, std::int32_t program_index, const std::vector<ir::OpId>& ops) {
  const std::vector<std::vector<ir::OpId>> groups =
      fuse(l.program(program_index), ops, l.bindings[at(program_index)], l.in.options.bucket_bytes);
  const ir::Program& program = l.program(program_index);
  // Values that more than their own kernel needs.
  std::vector<std::uint8_t> used = l.bindings[at(program_index)].keep;
  std::vector<std::int32_t> home(program.values.size(), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (ir::OpId id : groups[g])
      for (ir::ValueId v : program.op(id).results) home[at(v.index)] = static_cast<std::int32_t>(g);
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (ir::OpId id : groups[g])
      for (ir::ValueId v : program.op(id).operands)
        if (home[at(v.index)] != static_cast<std::int32_t>(g)) used[at(v.index)] = 1;

  const std::vector<std::uint8_t> parameter = l.bindings[at(program_index)].parameter;
  std::vector<std::uint8_t> late(program.values.size());
  std::vector<Node> nodes;
  for (const std::vector<ir::OpId>& group : groups) {
    const bool collective = is_collective(program.op(group[0]).kind);
    Node node = collective ? collective_node(l, program_index, group) : kernel_node(l, program_index, group, used);
    node.late = program.op(group[0]).phase != ir::Phase::update;
    bool reads = false;
    for (ir::OpId id : group)
      for (ir::ValueId v : program.op(id).operands) {
        if (home[at(v.index)] >= 0 && &groups[at(home[at(v.index)])] == &group) continue;
        reads = true;
        node.late = node.late && (parameter[at(v.index)] != 0 || late[at(v.index)] != 0);
      }
    node.late = node.late && reads;
    for (ir::OpId id : group)
      for (ir::ValueId v : program.op(id).results) late[at(v.index)] = node.late ? 1 : 0;
    nodes.push_back(std::move(node));
  }
  // What a parameter's gather needs, back from the gathers.
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (!nodes[n].late) continue;
    if (nodes[n].kind == InstrKind::collective) nodes[n].prefetch = true;
    if (!nodes[n].prefetch) continue;
    for (std::size_t m = 0; m < n; ++m)
      for (const BufferRef& ref : nodes[n].reads)
        if (std::find(nodes[m].writes.begin(), nodes[m].writes.end(), ref) != nodes[m].writes.end())
          nodes[m].prefetch = true;
  }
  return nodes;
}

void make_nodes(Lowering& l) {
  for (const spmd::Partitioned& p : l.out.programs) l.made_first.emplace_back(p.local.ops.size(), -1);
  for (BlockPlan& block : l.blocks) {
    block.forward = nodes_of(l, block.program, block.forward_ops);
    block.backward[0] = backward_nodes(l, block, false);
    block.backward[1] = backward_nodes(l, block, true);
    block.reduce = reduce_nodes(l, block);
    make_update_nodes(l, block);
  }
  make_clip_nodes(l);
}

}  // namespace tpusim::plan::passes
