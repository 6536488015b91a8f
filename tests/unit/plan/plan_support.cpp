#include "tests/unit/plan/plan_support.hpp"

namespace tpusim::plan::testing {
namespace {

constexpr ir::DimName kB{ir::Axis::batch, 0}, kE{ir::Axis::embed, 0}, kM{ir::Axis::mlp, 0};

ir::TensorType tensor(std::vector<ir::Dim> dims, ir::Place place = ir::Place::none) {
  ir::TensorType type;
  for (const ir::Dim& dim : dims) type.shape.push_back(dim);
  type.place = place;
  return type;
}
const ir::Dim kBatchDim{kB, kBatch, kBatch}, kEmbedDim{kE, kEmbed, kEmbed}, kMlpDim{kM, kMlp, kMlp};

ir::ValueId parameter(ir::Program& p, ir::Builder& b, const char* name, const ir::TensorType& type,
                      const std::string& tie = "") {
  ir::Parameter parameter;
  parameter.value = b.input(type, name, ir::Table::parameters);
  parameter.name = name;
  parameter.tie = tie;
  p.parameters.push_back(parameter);
  return parameter.value;
}

ir::ValueId data(ir::Program& p, ir::Builder& b, const char* label, ir::DataKind kind) {
  const ir::ValueId v = b.input(tensor({kBatchDim, kEmbedDim}), label);
  p.data.push_back({v, kind});
  return v;
}

ir::Program input_block(bool tied) {
  ir::Program p;
  p.name = "input";
  ir::Builder b(p);
  const ir::ValueId features = data(p, b, "features", ir::DataKind::features);
  const ir::ValueId g = parameter(p, b, "g", tensor({kEmbedDim}), tied ? "g" : "");
  p.x_out = b.map(ir::Elementwise::mul, features, g, {"x", ir::Place::residual});
  return p;
}

ir::Program layer_block() {
  ir::Program p;
  p.name = "layer";
  ir::Builder b(p);
  p.x_in = b.input(tensor({kBatchDim, kEmbedDim}, ir::Place::residual), "x");
  const ir::ValueId w1 = parameter(p, b, "w1", tensor({kEmbedDim, kMlpDim})),
                    w2 = parameter(p, b, "w2", tensor({kMlpDim, kEmbedDim}));
  const ir::ValueId hidden = b.dot(p.x_in, w1, {kB, kM}, ir::DType::f32, {"hidden"});
  const ir::ValueId active = b.map(ir::Elementwise::relu, hidden, {"active"});
  const ir::ValueId back = b.dot(active, w2, {kB, kE}, ir::DType::f32, {"back", ir::Place::residual});
  p.x_out = b.map(ir::Elementwise::add, p.x_in, back, {"x", ir::Place::residual});
  return p;
}

ir::Program head_block(bool tied) {
  ir::Program p;
  p.name = "head";
  ir::Builder b(p);
  p.x_in = b.input(tensor({kBatchDim, kEmbedDim}, ir::Place::residual), "x");
  const ir::ValueId labels = data(p, b, "labels", ir::DataKind::labels);
  const ir::ValueId g = parameter(p, b, "g", tensor({kEmbedDim}), tied ? "g" : "");
  const ir::ValueId y = b.map(ir::Elementwise::mul, p.x_in, g, {"y"});
  const ir::ValueId error = b.map(ir::Elementwise::sub, y, labels, {"error"});
  p.loss = b.reduce(ir::Reduction::sum, b.map(ir::Elementwise::square, error, {"square"}), {kB, kE}, {"loss"});
  return p;
}

void add_rules(Tiny& t, const std::string& name, int zero) {
  const spmd::MeshAxes axes = t.mesh.find(name);
  if (axes.empty()) return;
  const auto rule = [&](std::vector<spmd::Rule>& table, ir::Axis axis) {
    table.push_back({axis, ir::Place::none, axes, "test"});
  };
  if (name == "data" || name == "fsdp") rule(t.tables.activations, ir::Axis::batch);
  if (name == "fsdp") {
    rule(t.tables.optimizer, ir::Axis::embed);
    if (zero >= 2) rule(t.tables.gradients, ir::Axis::embed);
    if (zero >= 3) rule(t.tables.parameters, ir::Axis::embed);
  }
  if (name == "tensor")
    for (std::vector<spmd::Rule>* table :
         {&t.tables.activations, &t.tables.parameters, &t.tables.gradients, &t.tables.optimizer})
      rule(*table, ir::Axis::mlp);
}

// Two axes on one dim are one rule.
void join_batch_rules(Tiny& t) {
  spmd::Rule joined{ir::Axis::batch, ir::Place::none, {}, "test"};
  std::vector<spmd::Rule> rest;
  for (const spmd::Rule& rule : t.tables.activations) {
    if (rule.axis != ir::Axis::batch) {
      rest.push_back(rule);
      continue;
    }
    for (std::uint8_t axis : rule.mesh_axes) joined.mesh_axes.push_back(axis);
  }
  if (!joined.mesh_axes.empty()) rest.push_back(joined);
  t.tables.activations = rest;
}

}  // namespace

Tiny::Tiny(const Asked& asked) {
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
  join_batch_rules(*this);

  model.name = "tiny";
  model.layers = asked.layers;
  model.blocks = {input_block(asked.tied), layer_block(), head_block(asked.tied)};
  model.uses = {{0, 1}, {1, asked.layers}, {2, 1}};
  for (ir::Program& block : model.blocks) ir::differentiate(block, {});

  schedule.microbatches = asked.microbatches;
  for (std::int64_t s = 0; s <= stages; ++s)
    schedule.first_site.push_back(s == 0 ? 0 : s == stages ? asked.layers + 2 : 1 + s * asked.layers / stages);
  for (std::int64_t s = 0; s < stages; ++s) {
    const Unit forward{ir::Phase::forward, 0}, backward{ir::Phase::backward, 0}, update{ir::Phase::update, 0};
    if (asked.gpipe)
      schedule.stages.push_back({{{forward}, asked.microbatches}, {{backward}, asked.microbatches}, {{update}, 1}});
    else
      schedule.stages.push_back({{{forward, backward}, asked.microbatches}, {{update}, 1}});
  }
  options.optimizer.kind = asked.optimizer;
  options.optimizer.clip_norm = asked.clip;
}

std::string kind_name(const StepProgram& program, std::int32_t kind) {
  if (kind < 0) return "nothing";
  const CallKind& k = program.call_kinds[static_cast<std::size_t>(kind)];
  if (k.block < 0) return "clip";
  std::string name = program.programs[static_cast<std::size_t>(k.block)].local.name;
  if (k.phase == ir::Phase::forward) name += " forward";
  if (k.phase == ir::Phase::backward) name += " backward";
  if (k.phase == ir::Phase::update) name += k.first ? " norm" : " update";
  if (k.phase == ir::Phase::backward && k.first) name += " first";
  if (k.phase == ir::Phase::backward && k.last) name += " last";
  return name;
}

const Template* find(const StepProgram& program, const std::string& kind, const std::string& previous,
                     const std::string& next) {
  for (const Template& t : program.templates)
    if (kind_name(program, t.kind_index) == kind && kind_name(program, t.previous) == previous &&
        kind_name(program, t.next) == next)
      return &t;
  return nullptr;
}

std::vector<std::string> instructions(const StepProgram& program, const Template& t) {
  std::vector<std::string> out;
  for (const Instr& i : t.instrs) {
    std::string text = i.owner < 0 ? "<" : i.owner > 0 ? ">" : "";
    switch (i.kind) {
      case InstrKind::kernel: {
        const Kernel& kernel = program.kernels[static_cast<std::size_t>(i.body)];
        text += "kernel";
        for (ir::OpId op : kernel.ops)
          text += " " + std::string(
                            ir::op_name(program.programs[static_cast<std::size_t>(kernel.program)].local.op(op).kind));
        break;
      }
      case InstrKind::collective: {
        const Collective& c = program.collectives[static_cast<std::size_t>(i.body)];
        text += std::string(name_of(program.plans[static_cast<std::size_t>(c.plan)].kind)) + " x" +
                std::to_string(c.ops.size());
        break;
      }
      case InstrKind::done:
        text += i.body < 0 ? "done" : "wait";
        break;
      case InstrKind::send:
        text += "send";
        break;
      case InstrKind::receive:
        text += "receive";
        break;
      case InstrKind::stage_reduce:
        text += "stage_reduce";
        break;
    }
    out.push_back(text);
  }
  return out;
}

}  // namespace tpusim::plan::testing
