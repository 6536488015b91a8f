#include "faults_support.hpp"

#include "topologies/catalogue.hpp"

namespace tpusim::tests {

session::JobSpec small_job(Style style, std::vector<strategies::RequestedAxis> mesh) {
  session::JobSpec spec;
  spec.mesh = std::move(mesh);
  spec.compute_dtype = spec.parameter_dtype = spec.gradient_dtype = spec.master_dtype = ir::DType::f64;
  spec.optimizer.learning_rate = 1e-2;
  spec.optimizer.eps = 1e-3;
  spec.optimizer.clip_norm = 0.5;
  spec.flash_block = 4;
  spec.bucket_bytes = 1024;
  spec.sequence_length = 8;
  spec.microbatch = 1;
  models::ModelConfig& model = spec.model;
  model.name = "small";
  model.layers = 2, model.embed = 8, model.mlp = 10, model.vocab = 13, model.head_dim = 4, model.heads = 4,
  model.kv_heads = 2;
  std::int64_t replicas = 1;
  for (const strategies::RequestedAxis& axis : spec.mesh)
    if (axis.name == "data" || axis.name == "fsdp") replicas *= axis.size;
  spec.global_batch = 2 * replicas;
  if (style == Style::gpt2) {
    model.positions = models::Positions::learned;
    model.max_positions = 9;
    model.norm = models::Norm::layer;
    model.activation = models::Activation::gelu;
    model.gated_mlp = false;
    model.bias = true;
  }
  if (style == Style::palm) model.parallel_block = true;
  return spec;
}

fabric::Fabric rings(const session::JobSpec& spec) {
  fabric::Fabric fabric;
  for (const strategies::RequestedAxis& axis : spec.mesh)
    fabric.axes.push_back(
        {axis.name, axis.size, fabric::Level::chip, fabric::Link::ring, Seconds(1e-6), BytesPerSecond(1e9)});
  return fabric;
}

session::Planned plan_with(const session::JobSpec& spec, const fabric::Fabric& fabric, ir::Vjp vjp,
                           ir::ShardingRuleOf rule_of) {
  session::Planned planned = session::make_plan(spec, fabric);
  TPUSIM_CHECK(planned.verdict.feasible, planned.verdict.reason);
  models::BuildOptions build;
  build.batch = planned.setup.replicas * planned.setup.microbatch;
  build.seq = spec.sequence_length;
  build.compute_dtype = spec.compute_dtype;
  build.parameter_dtype = spec.parameter_dtype;
  build.global_tokens = static_cast<double>(spec.global_batch * spec.sequence_length);
  build.attention = spec.attention;
  build.flash_block = spec.flash_block;
  build.padded = planned.setup.padded;
  planned.model = models::build(spec.model, build);
  for (ir::Program& block : planned.model.blocks) ir::differentiate(block, {spec.remat, spec.gradient_dtype, vjp});
  planned.setup.tables.rule_of = rule_of;
  plan::LowerOptions options;
  options.prefetch = spec.prefetch;
  options.bucket_bytes = spec.bucket_bytes;
  options.overlap = spec.overlap;
  options.optimizer = spec.optimizer;
  options.gradient_dtype = spec.gradient_dtype;
  options.master_dtype = spec.master_dtype;
  planned.program = plan::lower({planned.model, planned.setup.tables, planned.setup.mesh, planned.placement, fabric,
                                 planned.setup.schedule, options});
  return planned;
}

result::Verification prove(const session::JobSpec& spec, const session::Planned& planned, const fabric::Fabric& fabric,
                           const session::Proof& proof) {
  return session::verify_planned(spec, planned, fabric, *topologies::find_chip("tpu-v4"), 11, proof);
}

std::string failures(const result::Verification& verification) {
  std::string text;
  for (const result::Check& check : verification.checks)
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  return text;
}

}  // namespace tpusim::tests
