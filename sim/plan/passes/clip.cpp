// Clipping by the global norm, as torch.nn.utils.clip_grad_norm_ does it: gscale = min(1, clip / (norm + 1e-6)), where
// norm is the root of the sum of squares of all gradients of the model, a tied parameter's once.
//
// A site's squares are summed from the reduced gradients in the spec of their optimizer state. That spec is split over
// some mesh axes (its norm axes) and equal over the others, so the sum is partial over exactly those axes: one
// accumulator for each distinct set of them, each all-reduced over its own axes, then added, then summed over the
// pipeline stages.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

std::size_t set_of(ClipPlan& clip, const ir::MeshAxes& axes) {
  for (std::size_t i = 0; i < clip.norm_axes.size(); ++i)
    if (clip.norm_axes[i] == axes) return i;
  clip.norm_axes.push_back(axes);
  return clip.norm_axes.size() - 1;
}

spmd::PartitionSpec scalar(const ir::MeshAxes& partial) {
  spmd::PartitionSpec spec;
  spec.partial = partial;
  return spec;
}

// Appends acc + sum of squares of the reduced gradient of each parameter that counts here.
void add_norms(Lowering& l, std::size_t b, ir::DType dtype) {
  BlockPlan& block = l.blocks[b];
  Extension more(l.out.programs[at(block.update_program)]);
  more.builder.phase = ir::Phase::update;
  const std::size_t first = more.partitioned.local.ops.size();
  for (std::size_t u = 0; u < block.parameters.size(); ++u) {
    const UpdatePorts& port = l.ports[b][u];
    if (!block.parameters[u].counts || !block.parameters[u].updates) continue;
    const std::size_t set = set_of(l.clip, port.norm_axes);
    std::size_t n = 0;
    while (n < block.norms.size() && block.norms[n].set != set) ++n;
    if (n == block.norms.size()) {
      const ir::ValueId before = more.builder.input({dtype, {}, ir::Place::none}, "norm", ir::Table::optimizer);
      block.norms.push_back({set, before, before});
      more.settle(scalar(port.norm_axes));
    }
    ir::ValueId g = port.reduced;
    const spmd::PartitionSpec spec = more.partitioned.specs[at(g.index)];
    if (more.builder.type(g).dtype != dtype)
      g = more.builder.cast(g, dtype, {"norm", ir::Place::none, ir::Table::optimizer});
    ir::ValueId squares = more.builder.map(ir::Elementwise::square, g, {"norm", ir::Place::none, ir::Table::optimizer});
    more.settle(spec);
    ir::DimNames dims;
    for (const ir::Dim& dim : more.builder.type(squares).shape) dims.push_back(dim.name);
    if (!dims.empty())
      squares = more.builder.reduce(ir::Reduction::sum, squares, dims, {"norm", ir::Place::none, ir::Table::optimizer});
    block.norms[n].after = more.builder.map(ir::Elementwise::add, block.norms[n].after, squares,
                                            {"norm", ir::Place::none, ir::Table::optimizer});
    more.settle(scalar(port.norm_axes));
  }
  for (std::size_t o = first; o < more.partitioned.local.ops.size(); ++o) block.norm_ops.push_back(ir::OpId(o));
}

// From the accumulators to gscale.
void add_step_wide(Lowering& l, ir::DType dtype) {
  ClipPlan& clip = l.clip;
  clip.program = static_cast<std::int32_t>(l.out.programs.size());
  l.out.programs.emplace_back();
  Extension more(l.out.programs.back());
  more.partitioned.local.name = "clipping";
  ir::Builder& b = more.builder;
  b.phase = ir::Phase::update;
  const ir::Builder::As as{"norm", ir::Place::none, ir::Table::optimizer};
  const auto newest = [&more] { return ir::OpId(more.partitioned.local.ops.size() - 1); };
  for (const ir::MeshAxes& axes : clip.norm_axes) {
    clip.zero.push_back(b.fill(0.0, {}, dtype, as));
    clip.start_ops.push_back(newest());
    clip.sum.push_back(b.input({dtype, {}, ir::Place::none}, "norm", ir::Table::optimizer));
    more.settle(scalar(axes));
  }
  for (std::size_t i = 0; i < clip.sum.size(); ++i) {
    ir::ValueId whole = clip.sum[i];
    if (!clip.norm_axes[i].empty()) {
      whole = b.add(ir::AllReduce{ir::Reduction::sum, clip.norm_axes[i]}, {whole}, dtype, as)[0];
      clip.sum_ops.push_back(newest());
    }
    if (i > 0) {
      whole = b.map(ir::Elementwise::add, clip.total, whole, as);
      clip.sum_ops.push_back(newest());
    }
    clip.total = whole;
  }
  const std::size_t first = more.partitioned.local.ops.size();
  const ir::ValueId norm = b.map(ir::Elementwise::sqrt, clip.total, as);
  const ir::ValueId inverse =
      b.map(ir::Elementwise::reciprocal, b.map(ir::Elementwise::add_scalar, norm, as, 1e-6), as);
  const ir::ValueId ratio = b.map(ir::Elementwise::scale, inverse, as, l.in.options.optimizer.clip_norm);
  clip.gscale = b.map(ir::Elementwise::minimum_scalar, ratio, {"gscale", ir::Place::none, ir::Table::optimizer}, 1.0);
  for (std::size_t o = first; o < more.partitioned.local.ops.size(); ++o) clip.scale_ops.push_back(ir::OpId(o));
  more.settle({});
}

}  // namespace

void add_clipping(Lowering& l) {
  if (!l.clipping()) return;
  ir::DType dtype = ir::DType::f32;
  for (std::size_t b = 0; b < l.blocks.size(); ++b)
    for (const UpdatePorts& port : l.ports[b])
      if (port.gscale.valid()) dtype = l.program(l.blocks[b].update_program).value(port.gscale).type.dtype;
  for (std::size_t b = 0; b < l.blocks.size(); ++b) add_norms(l, b, dtype);
  TPUSIM_CHECK(!l.clip.norm_axes.empty(), "a model without parameters has no norm to clip");
  add_step_wide(l, dtype);
}

}  // namespace tpusim::plan::passes
