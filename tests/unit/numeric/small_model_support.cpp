#include "tests/unit/numeric/small_model_support.hpp"

#include <algorithm>

#include "sim/numeric/shards.hpp"

namespace tpusim::numeric::testing {
namespace {

using ir::Axis;
constexpr ir::DimName kBatch{Axis::batch, 0}, kSeq{Axis::seq, 0}, kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0},
    kVocab{Axis::vocab, 0};
constexpr std::int64_t kBatchSize = 8, kSeqSize = 3, kEmbedSize = 8, kMlpSize = 16, kVocabSize = 10, kVocabPadded = 12;

ir::Dim dim(ir::DimName name) {
  switch (name.axis) {
    case Axis::batch:
      return {name, kBatchSize, kBatchSize};
    case Axis::seq:
      return {name, kSeqSize, kSeqSize};
    case Axis::mlp:
      return {name, kMlpSize, kMlpSize};
    case Axis::vocab:
      return {name, kVocabPadded, kVocabSize};
    case Axis::embed:
    case Axis::kv_heads:
    case Axis::q_group:
    case Axis::head_dim:
    case Axis::expert:
    case Axis::height:
    case Axis::width:
    case Axis::channels:
    case Axis::position:
      break;
  }
  return {name, kEmbedSize, kEmbedSize};
}
ir::TensorType tensor(ir::DType dtype, std::initializer_list<ir::DimName> names, ir::Place place = ir::Place::none) {
  ir::TensorType type{dtype, {}, place};
  for (ir::DimName name : names) type.shape.push_back(dim(name));
  return type;
}

ir::ValueId parameter(ir::Program& p, ir::Builder& b, const char* name, const ir::TensorType& type,
                      const std::string& tie = "") {
  ir::Parameter added;
  added.value = b.input(type, name, ir::Table::parameters);
  added.name = name;
  added.tie = tie;
  added.input_dims = {type.shape[0].name};  // for Adafactor's row and column means
  added.output_dims = {type.shape[1].name};
  p.parameters.push_back(added);
  return added.value;
}

ir::ValueId ids(ir::Program& p, ir::Builder& b, const char* label, ir::DataKind kind) {
  const ir::ValueId value = b.input(tensor(ir::DType::i32, {kBatch, kSeq}), label);
  p.data.push_back({value, kind});
  return value;
}

ir::Program embedding(const Asked& asked) {
  ir::Program p;
  p.name = "embedding";
  ir::Builder b(p);
  const ir::ValueId tokens = ids(p, b, "tokens", ir::DataKind::tokens);
  const ir::ValueId table = parameter(p, b, "table", tensor(asked.dtype, {kVocab, kEmbed}), asked.tied ? "table" : "");
  p.x_out = b.add(ir::Lookup{kVocab, {}}, {table, tokens}, asked.dtype, {"x", ir::Place::residual}, {})[0];
  return p;
}

ir::Program layer(const Asked& asked) {
  ir::Program p;
  p.name = "layer";
  ir::Builder b(p);
  p.x_in = b.input(tensor(asked.dtype, {kBatch, kSeq, kEmbed}, ir::Place::residual), "x");
  const ir::ValueId w1 = parameter(p, b, "w1", tensor(asked.dtype, {kEmbed, kMlp}));
  const ir::ValueId w2 = parameter(p, b, "w2", tensor(asked.dtype, {kMlp, kEmbed}));
  const ir::ValueId hidden = b.dot(p.x_in, w1, {kBatch, kSeq, kMlp}, asked.dtype, {"hidden"});
  const ir::ValueId active = b.map(ir::Elementwise::relu, hidden, {"active"});
  const ir::ValueId back = b.dot(active, w2, {kBatch, kSeq, kEmbed}, asked.dtype, {"back", ir::Place::residual});
  p.x_out = b.map(ir::Elementwise::add, p.x_in, back, {"x", ir::Place::residual});
  return p;
}

ir::Program head(const Asked& asked) {
  ir::Program p;
  p.name = "head";
  ir::Builder b(p);
  p.x_in = b.input(tensor(asked.dtype, {kBatch, kSeq, kEmbed}, ir::Place::residual), "x");
  const ir::ValueId targets = ids(p, b, "targets", ir::DataKind::targets);
  const ir::ValueId table = parameter(p, b, asked.tied ? "table" : "unembedding", tensor(asked.dtype, {kVocab, kEmbed}),
                                      asked.tied ? "table" : "");
  const ir::ValueId logits = b.dot(p.x_in, table, {kBatch, kSeq, kVocab}, asked.dtype, {"logits", ir::Place::logits});
  if (asked.squared) {
    const ir::ValueId target = b.add(ir::Pick{kVocab, {}}, {logits, targets}, asked.dtype, {"picked"}, {})[0];
    p.loss = b.reduce(ir::Reduction::sum, b.map(ir::Elementwise::square, target, {"square"}), {kBatch, kSeq}, {"loss"});
    return p;
  }
  const ir::ValueId masked =
      b.add(ir::MaskPadding{kVocab, -1e30, {}}, {logits}, asked.dtype, {"masked", ir::Place::logits}, {})[0];
  const ir::ValueId top = b.reduce(ir::Reduction::max, masked, {kVocab}, {"top"});
  const ir::ValueId shifted = b.map(ir::Elementwise::sub, masked, top, {"shifted", ir::Place::logits});
  const ir::ValueId weights = b.map(ir::Elementwise::exp, shifted, {"weights", ir::Place::logits});
  const ir::ValueId sum =
      b.map(ir::Elementwise::log, b.reduce(ir::Reduction::sum, weights, {kVocab}, {"sum"}), {"log sum"});
  const ir::ValueId picked = b.add(ir::Pick{kVocab, {}}, {shifted, targets}, asked.dtype, {"picked"}, {})[0];
  const ir::ValueId loss = b.map(ir::Elementwise::sub, sum, picked, {"token loss"});
  const double tokens = static_cast<double>(kBatchSize * kSeqSize * asked.microbatches);
  p.loss =
      b.map(ir::Elementwise::scale, b.reduce(ir::Reduction::sum, loss, {kBatch, kSeq}, {"loss"}), {"loss"}, 1 / tokens);
  return p;
}

void add_rules(SmallModel& m, const std::string& name, int zero) {
  const spmd::MeshAxes axes = m.mesh.find(name);
  const auto rule = [&](std::vector<spmd::Rule>& table, Axis axis) {
    table.push_back({axis, ir::Place::none, axes, "test"});
  };
  if (name == "fsdp") {
    rule(m.tables.optimizer, Axis::embed);
    if (zero >= 2) rule(m.tables.gradients, Axis::embed);
    if (zero >= 3) rule(m.tables.parameters, Axis::embed);
  }
  if (name == "tensor")
    for (auto* table : {&m.tables.activations, &m.tables.parameters, &m.tables.gradients, &m.tables.optimizer})
      for (Axis axis : {Axis::mlp, Axis::vocab}) rule(*table, axis);
  if (name != "data" && name != "fsdp") return;
  for (spmd::Rule& known : m.tables.activations)
    if (known.axis == Axis::batch) {
      for (std::uint8_t axis : axes) known.mesh_axes.push_back(axis);
      return;
    }
  rule(m.tables.activations, Axis::batch);
}

}  // namespace

SmallModel::SmallModel(const Asked& asked) {
  std::int64_t stages = 1;
  for (const auto& [name, size] : asked.mesh) {
    mesh.axes.push_back({name, size, name});
    fabric::PhysicalAxis physical;
    physical.name = "p" + std::to_string(fabric.axes.size());
    physical.size = size;
    physical.alpha = Seconds(1e-6);
    physical.beta = BytesPerSecond(1e9);
    placement.parts.push_back({{static_cast<int>(fabric.axes.size()), size, 1}});
    fabric.axes.push_back(physical);
    if (name == "pipeline") stages = size;
  }
  for (const auto& axis : asked.mesh) add_rules(*this, axis.first, asked.zero);
  model.name = "small";
  model.layers = asked.layers;
  model.blocks = {embedding(asked), layer(asked), head(asked)};
  model.uses = {{0, 1}, {1, asked.layers}, {2, 1}};
  ir::DifferentiateOptions differentiate;
  differentiate.gradient_dtype = asked.dtype == ir::DType::f64 ? ir::DType::f64 : ir::DType::f32;
  for (ir::Program& block : model.blocks) ir::differentiate(block, differentiate);

  schedule.microbatches = asked.microbatches;
  for (std::int64_t s = 0; s <= stages; ++s)
    schedule.first_site.push_back(s == 0 ? 0 : s == stages ? asked.layers + 2 : 1 + s * asked.layers / stages);
  for (std::int64_t s = 0; s < stages; ++s) {
    const plan::Unit forward{ir::Phase::forward, 0}, backward{ir::Phase::backward, 0}, update{ir::Phase::update, 0};
    if (asked.gpipe)
      schedule.stages.push_back({{{forward}, asked.microbatches}, {{backward}, asked.microbatches}, {{update}, 1}});
    else
      schedule.stages.push_back({{{forward, backward}, asked.microbatches}, {{update}, 1}});
  }
  options.optimizer.kind = asked.optimizer;
  options.optimizer.learning_rate = 0.05;
  options.optimizer.eps = 1e-3;
  options.optimizer.clip_norm = asked.clip;
  options.gradient_dtype = options.master_dtype = differentiate.gradient_dtype;
}

std::map<std::string, Tensor> whole_parameters(const plan::StepProgram& program, const NumericBackend& backend,
                                               double& replica_difference) {
  std::map<std::string, Tensor> whole;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const plan::Buffer& buffer = program.buffers[b];
    if (!buffer.persistent || buffer.category != plan::Category::parameters) continue;
    const spmd::Partitioned& block = program.programs[static_cast<std::size_t>(buffer.block)];
    const ir::Parameter& parameter = block.local.parameters[static_cast<std::size_t>(buffer.parameter)];
    for (std::size_t site = 0; site < program.sites.size(); ++site) {
      if (program.sites[site].block != buffer.block) continue;
      std::vector<const Tensor*> shards;
      const std::int32_t at = buffer.scope == plan::Scope::step ? 0 : static_cast<std::int32_t>(site);
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d)
        shards.push_back(backend.find(d, {plan::BufferId(b), at, 0}));
      const Assembled assembled =
          assemble(shards, block.specs[static_cast<std::size_t>(parameter.value.index)], program.mesh);
      replica_difference = std::max(replica_difference, assembled.replica_difference);
      whole[parameter_key(parameter, static_cast<std::int64_t>(site))] = assembled.value;
    }
  }
  return whole;
}

double whole_loss(const plan::StepProgram& program, const NumericBackend& backend) {
  const plan::Buffer& buffer = program.buffers[static_cast<std::size_t>(program.loss.index)];
  const spmd::Partitioned& block = program.programs[static_cast<std::size_t>(buffer.block)];
  double sum = 0;
  for (std::size_t site = 0; site < program.sites.size(); ++site) {
    if (program.sites[site].block != buffer.block) continue;
    for (std::int64_t m = 0; m < program.microbatches; ++m) {
      std::vector<const Tensor*> shards;
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d)
        shards.push_back(backend.find(d, {program.loss, static_cast<std::int32_t>(site), m}));
      sum += assemble(shards, block.specs[static_cast<std::size_t>(buffer.value.index)], program.mesh).value.at(0);
    }
  }
  return sum;
}

}  // namespace tpusim::numeric::testing
