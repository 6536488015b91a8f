// From a JobSpec to its StepProgram: strategies decide, models build, ir differentiates, plan lowers.
#include "sim/base/checked.hpp"
#include "sim/ir/ops.hpp"
#include "sim/session/job.hpp"

namespace tpusim::session {

namespace {

void set(strategies::AxisSizes& sizes, ir::Axis axis, std::int64_t size) {
  sizes[static_cast<std::size_t>(axis)] = size;
}

strategies::AxisSizes axis_sizes(const JobSpec& spec) {
  strategies::AxisSizes sizes{};
  const models::ModelConfig& m = spec.model;
  set(sizes, ir::Axis::seq, spec.sequence_length);
  set(sizes, ir::Axis::embed, m.embed);
  set(sizes, ir::Axis::mlp, m.mlp);
  if (m.family == models::Family::transformer) {
    set(sizes, ir::Axis::kv_heads, m.kv_heads);
    set(sizes, ir::Axis::q_group, m.heads / m.kv_heads);
    set(sizes, ir::Axis::head_dim, m.head_dim);
    set(sizes, ir::Axis::vocab, m.vocab);
    if (m.positions == models::Positions::learned) set(sizes, ir::Axis::position, m.max_positions);
  }
  return sizes;
}

// Cost of each site for balancing stages: model FLOPs of one microbatch's forward.
std::vector<double> site_costs(const ir::Model& model) {
  std::vector<double> costs;
  for (const ir::BlockUse& use : model.uses) {
    const ir::Program& block = model.blocks[static_cast<std::size_t>(use.block)];
    double flops = 0;
    for (const ir::Op& op : block.ops) {
      if (op.phase != ir::Phase::forward) continue;
      std::vector<ir::TensorType> operands, results;
      for (ir::ValueId v : op.operands) operands.push_back(block.value(v).type);
      for (ir::ValueId v : op.results) results.push_back(block.value(v).type);
      flops += ir::cost(op.kind, operands, results).model_flops;
    }
    for (std::int64_t i = 0; i < use.count; ++i) costs.push_back(flops);
  }
  return costs;
}

models::BuildOptions build_options(const JobSpec& spec, const strategies::Setup& setup) {
  models::BuildOptions options;
  options.batch = checked_mul(setup.replicas, setup.microbatch, "the examples of a microbatch");
  options.seq = spec.sequence_length;
  options.compute_dtype = spec.compute_dtype;
  options.parameter_dtype = spec.parameter_dtype;
  options.global_tokens = static_cast<double>(spec.global_batch) * static_cast<double>(spec.sequence_length);
  options.attention = spec.attention;
  options.flash_block = spec.flash_block;
  options.padded = setup.padded;
  return options;
}

strategies::Request request_of(const JobSpec& spec) {
  strategies::Request request;
  request.mesh = spec.mesh;
  request.options = spec.strategies;
  request.sizes = axis_sizes(spec);
  request.sites.layers = spec.model.layers;
  request.global_batch = spec.global_batch;
  request.microbatch = spec.microbatch;
  request.by_hand = spec.by_hand;
  return request;
}

}  // namespace

std::int64_t JobSpec::devices() const {
  std::int64_t n = 1;
  for (const strategies::RequestedAxis& axis : mesh) n = checked_mul(n, axis.size, "the number of devices");
  return n;
}

Planned make_plan(const JobSpec& spec, const fabric::Fabric& fabric) {
  Planned out;
  strategies::Request request = request_of(spec);
  out.setup = strategies::decide(request);
  if (!out.setup.verdict) {
    out.verdict = out.setup.verdict;
    out.refusals = out.setup.refusals;
    return out;
  }
  out.model = models::build(spec.model, build_options(spec, out.setup));
  if (out.setup.pipeline_axis >= 0) {
    // Stages are balanced by cost, which is known only now that the blocks are built.
    request.sites.cost = site_costs(out.model);
    out.setup = strategies::decide(request);
  }
  ir::DifferentiateOptions differentiate;
  differentiate.remat = spec.remat;
  differentiate.gradient_dtype = spec.gradient_dtype;
  for (ir::Program& block : out.model.blocks) {
    // The backward of the block with the loss follows its forward at once, so there is nothing to save memory for.
    differentiate.remat = block.loss.valid() ? ir::Remat::none : spec.remat;
    ir::differentiate(block, differentiate);
  }
  spmd::PlacementResult placed = spmd::place(out.setup.mesh, fabric);
  if (!placed.verdict) {
    out.verdict = placed.verdict;
    out.refusals = {placed.verdict};
    return out;
  }
  out.placement = std::move(placed.placement);
  out.placement_text = std::move(placed.description);
  plan::LowerOptions options;
  options.prefetch = spec.prefetch;
  options.bucket_bytes = spec.bucket_bytes;
  options.overlap = spec.overlap;
  options.optimizer = spec.optimizer;
  options.gradient_dtype = spec.gradient_dtype;
  options.master_dtype = spec.master_dtype;
  options.verify = spec.verify_plan;
  out.program =
      plan::lower({out.model, out.setup.tables, out.setup.mesh, out.placement, fabric, out.setup.schedule, options});
  return out;
}

Placed place_mesh(const JobSpec& spec, const fabric::Fabric& fabric) {
  Placed out;
  if (spec.model.family == models::Family::fixed) {
    for (const strategies::RequestedAxis& axis : spec.mesh) out.mesh.axes.push_back({axis.name, axis.size, axis.name});
  } else {
    strategies::Setup setup = strategies::decide(request_of(spec));
    out.verdict = setup.verdict;
    if (!out.verdict) return out;
    out.mesh = std::move(setup.mesh);
  }
  spmd::PlacementResult placed = spmd::place(out.mesh, fabric);
  out.verdict = placed.verdict;
  out.placement = std::move(placed.placement);
  out.description = std::move(placed.description);
  return out;
}

plan::StepProgram fixed_program(const JobSpec& spec) {
  plan::StepProgram program;
  for (const strategies::RequestedAxis& axis : spec.mesh)
    program.mesh.axes.push_back({axis.name, axis.size, axis.name});
  plan::Buffer batch;
  batch.label = "batch";
  batch.bytes = static_cast<std::int64_t>(spec.model.example_bytes.value() * static_cast<double>(spec.global_batch) /
                                          static_cast<double>(spec.devices()));
  batch.category = plan::Category::activations;
  batch.scope = plan::Scope::microbatch;
  batch.persistent = true;
  program.buffers.push_back(batch);
  plan::Kernel kernel;
  kernel.label = "step";
  kernel.fixed = spec.model.step_compute;
  kernel.reads.push_back({ir::ValueId(), plan::BufferRef{plan::BufferId(0), 0}});
  program.kernels.push_back(kernel);
  program.call_kinds.push_back({});
  plan::Template only;
  plan::Instr instr;
  only.instrs.push_back(instr);
  program.templates.push_back(only);
  program.sites.push_back({});
  program.schedules.push_back({{plan::Segment{{plan::Call{0, 0, 0}}, 1}}});
  plan::MemorySummary memory;
  memory.peak_bytes = batch.bytes;
  memory.at_peak[static_cast<std::size_t>(plan::Category::activations)] = batch.bytes;
  program.memory.push_back(memory);
  return program;
}

}  // namespace tpusim::session
