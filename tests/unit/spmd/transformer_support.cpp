#include "tests/unit/spmd/transformer_support.hpp"

#include <type_traits>

namespace tpusim::spmd::testing {
namespace {

using ir::Axis;
using ir::DimName;
using ir::Place;
using ir::Table;
using ir::ValueId;

constexpr DimName kBatch{Axis::batch, 0}, kSeq{Axis::seq, 0}, kKeySeq{Axis::seq, 1}, kEmbed{Axis::embed, 0},
    kKv{Axis::kv_heads, 0}, kGroup{Axis::q_group, 0}, kHead{Axis::head_dim, 0}, kMlp{Axis::mlp, 0},
    kVocab{Axis::vocab, 0}, kPosition{Axis::position, 0};

struct Writer {
  Writer(const char* name, const LayerShape& s) : shape(s), b(program) { program.name = name; }
  ir::Dim dim(DimName name) const {
    switch (name.axis) {
      case Axis::batch:
        return {name, shape.batch, shape.batch};
      case Axis::seq:
        return {name, shape.seq, shape.seq};
      case Axis::embed:
        return {name, shape.embed, shape.embed};
      case Axis::kv_heads:
        return {name, shape.kv_heads, shape.kv_heads};
      case Axis::q_group:
        return {name, shape.q_group, shape.q_group};
      case Axis::head_dim:
        return {name, shape.head_dim, shape.head_dim};
      case Axis::mlp:
        return {name, shape.mlp, shape.mlp};
      case Axis::vocab:
        return {name, shape.vocab, shape.valid_vocab};
      case Axis::position:
        return {name, shape.seq, shape.seq};
      case Axis::expert:
      case Axis::height:
      case Axis::width:
      case Axis::channels:
        break;
    }
    return {};
  }
  ir::TensorType type(ir::DType dtype, const ir::DimNames& names, Place place = Place::none) const {
    ir::TensorType t{dtype, {}, place};
    for (const DimName n : names) t.shape.push_back(dim(n));
    return t;
  }
  ValueId parameter(const char* name, const ir::DimNames& dims) {
    ir::Parameter p;
    p.value = b.input(type(ir::DType::f32, dims), name, Table::parameters);
    p.name = name;
    program.parameters.push_back(p);
    return ir::to_dtype(b, p.value, shape.compute, {name, Place::none, Table::parameters});
  }
  ValueId x_in() {
    program.x_in = b.input(type(shape.compute, {kBatch, kSeq, kEmbed}, Place::residual), "x_in");
    return program.x_in;
  }
  ValueId norm(ValueId x, const char* name, const char* bias_name) {
    if (shape.layer_norm)
      return ir::layer_norm(b, x, parameter(name, {kEmbed}), parameter(bias_name, {kEmbed}), kEmbed, 1e-5,
                            Place::residual);
    return ir::rms_norm(b, x, parameter(name, {kEmbed}), kEmbed, 1e-5, Place::residual);
  }
  ValueId project(ValueId x, const char* name, const ir::DimNames& weight, const ir::DimNames& result,
                  const char* label, Place place) {
    return b.dot(x, parameter(name, weight), result, shape.compute, {label, place});
  }
  ValueId project(ValueId x, const char* name, const ir::DimNames& weight, const ir::DimNames& result,
                  const char* label, Place place, const char* bias_name, const ir::DimNames& bias) {
    const ValueId y = project(x, name, weight, result, label, place);
    if (!shape.bias) return y;
    return b.map(ir::Elementwise::add, y, parameter(bias_name, bias), {label, place});
  }
  ValueId attention(ValueId y) {
    const ir::DimNames kv = {kBatch, kSeq, kKv, kHead};
    const ir::Rope rope{kSeq, kHead, 10000, false, {}};
    ValueId q = project(y, "wq", {kEmbed, kKv, kGroup, kHead}, {kBatch, kSeq, kKv, kGroup, kHead}, "q",
                        Place::attention, "bq", {kKv, kGroup, kHead});
    ValueId k = project(y, "wk", {kEmbed, kKv, kHead}, kv, "k", Place::attention, "bk", {kKv, kHead});
    ValueId v = project(y, "wv", {kEmbed, kKv, kHead}, kv, "v", Place::attention, "bv", {kKv, kHead});
    q = b.add(rope, {q}, shape.compute, {"q", Place::attention})[0];
    k = b.add(rope, {k}, shape.compute, {"k", Place::attention})[0];
    k = b.add(ir::Rename{kSeq, kKeySeq}, {k}, shape.compute, {"k", Place::attention})[0];
    v = b.add(ir::Rename{kSeq, kKeySeq}, {v}, shape.compute, {"v", Place::attention})[0];
    const ValueId o = ir::attention(b, q, k, v, {shape.attention, true, 8});
    return project(o, "wo", {kKv, kGroup, kHead, kEmbed}, {kBatch, kSeq, kEmbed}, "attention_proj", Place::residual,
                   "bo", {kEmbed});
  }
  ValueId mlp(ValueId y) {
    const ir::DimNames inner = {kBatch, kSeq, kMlp};
    ValueId hidden;
    if (shape.gated) {
      const ValueId gate = project(y, "w_gate", {kEmbed, kMlp}, inner, "gate", Place::mlp);
      const ValueId up = project(y, "w_in", {kEmbed, kMlp}, inner, "up", Place::mlp);
      hidden = ir::activate(b, ir::Activation::silu, gate, up, Place::mlp);
    } else {
      const ValueId up = project(y, "w_in", {kEmbed, kMlp}, inner, "up", Place::mlp, "b_in", {kMlp});
      hidden = ir::activate(b, ir::Activation::gelu, up, ValueId(), Place::mlp);
    }
    return project(hidden, "w_out", {kMlp, kEmbed}, {kBatch, kSeq, kEmbed}, "mlp_out", Place::residual, "b_out",
                   {kEmbed});
  }
  ValueId plus(ValueId x, ValueId y, const char* label) {
    return b.map(ir::Elementwise::add, x, y, {label, Place::residual});
  }

  LayerShape shape;
  ir::Program program;
  ir::Builder b;
};

}  // namespace

ir::Program embedding_block(const LayerShape& shape) {
  Writer w("embedding", shape);
  const ValueId tokens = w.b.input(w.type(ir::DType::i32, {kBatch, kSeq}), "tokens");
  w.program.data.push_back({tokens, ir::DataKind::tokens});
  const ValueId table = w.parameter("embedding", {kVocab, kEmbed});
  ValueId x = w.b.add(ir::Lookup{kVocab, {}}, {table, tokens}, shape.compute, {"embedded", Place::residual})[0];
  if (shape.learned_positions) {
    const ValueId positions = w.b.input(w.type(ir::DType::i32, {kSeq}), "positions");
    w.program.data.push_back({positions, ir::DataKind::positions});
    const ValueId rows = w.parameter("positions", {kPosition, kEmbed});
    const ValueId p =
        w.b.add(ir::Lookup{kPosition, {}}, {rows, positions}, shape.compute, {"position_rows", Place::residual})[0];
    x = w.plus(x, p, "x_out");
  }
  w.program.x_out = x;
  return w.program;
}

ir::Program layer_block(const LayerShape& shape) {
  Writer w("layer", shape);
  const ValueId x = w.x_in();
  const ValueId y = w.norm(x, "attention_norm", "attention_norm_bias");
  const ValueId attended = w.attention(y);
  if (shape.parallel_block) {
    w.program.x_out = w.plus(x, w.plus(attended, w.mlp(y), "branches"), "x_out");
    return w.program;
  }
  const ValueId middle = w.plus(x, attended, "x_mid");
  w.program.x_out = w.plus(middle, w.mlp(w.norm(middle, "mlp_norm", "mlp_norm_bias")), "x_out");
  return w.program;
}

ir::Program head_block(const LayerShape& shape) {
  Writer w("head", shape);
  const ValueId x = w.x_in();
  const ValueId targets = w.b.input(w.type(ir::DType::i32, {kBatch, kSeq}), "targets");
  w.program.data.push_back({targets, ir::DataKind::targets});
  const ValueId y = w.norm(x, "final_norm", "final_norm_bias");
  const ValueId logits = w.project(y, "unembedding", {kEmbed, kVocab}, {kBatch, kSeq, kVocab}, "logits", Place::logits);
  w.program.loss =
      ir::cross_entropy_from_logits(w.b, logits, targets, kVocab, static_cast<double>(shape.batch * shape.seq));
  return w.program;
}

ir::Program differentiated(ir::Program program, ir::Remat remat) {
  ir::DifferentiateOptions options;
  options.remat = remat;
  ir::differentiate(program, options);
  return program;
}

ShardingTables tables_for(const Mesh& mesh, int zero_stage, bool sequence_parallel) {
  ShardingTables t;
  const auto axes = [&mesh](std::initializer_list<const char*> names) {
    MeshAxes list;
    for (const char* name : names)
      for (const std::uint8_t a : mesh.find(name)) list.push_back(a);
    return list;
  };
  const bool split_heads = mesh.find("tensor").size() == 2;
  for (std::vector<Rule>* table : {&t.activations, &t.parameters, &t.gradients, &t.optimizer}) {
    table->push_back({Axis::kv_heads, Place::none, split_heads ? axes({"tensor.0"}) : axes({"tensor"}), "tensor"});
    if (split_heads) table->push_back({Axis::q_group, Place::none, axes({"tensor.1"}), "tensor"});
    table->push_back({Axis::mlp, Place::none, axes({"tensor"}), "tensor"});
    table->push_back({Axis::vocab, Place::none, axes({"tensor"}), "tensor"});
  }
  if (sequence_parallel) t.activations.push_back({Axis::seq, Place::residual, axes({"tensor"}), "tensor"});
  t.activations.push_back({Axis::batch, Place::none, axes({"data", "fsdp"}), "data, fsdp"});
  if (zero_stage >= 1) t.optimizer.push_back({Axis::embed, Place::none, axes({"fsdp"}), "fsdp"});
  if (zero_stage >= 2) t.gradients.push_back({Axis::embed, Place::none, axes({"fsdp"}), "fsdp"});
  if (zero_stage >= 3) t.parameters.push_back({Axis::embed, Place::none, axes({"fsdp"}), "fsdp"});
  return t;
}

std::vector<Found> collectives(const Partitioned& partitioned, const Mesh& mesh) {
  std::vector<Found> all;
  for (const ir::Op& op : partitioned.local.ops) {
    Found f{"", "", "", "", ir::DType::f32, 0, op.phase};
    std::visit(
        [&](const auto& kind) {
          using Kind = std::decay_t<decltype(kind)>;
          if constexpr (std::is_same_v<Kind, ir::AllGather>) {
            f.kind = "AG", f.axes = mesh.to_string(kind.axes), f.detail = ir::to_string(kind.dim);
          } else if constexpr (std::is_same_v<Kind, ir::ReduceScatter>) {
            f.kind = "RS", f.axes = mesh.to_string(kind.axes), f.detail = ir::to_string(kind.dim);
          } else if constexpr (std::is_same_v<Kind, ir::AllReduce>) {
            f.kind = "AR", f.axes = mesh.to_string(kind.axes);
            f.detail = kind.kind == ir::Reduction::sum ? "sum" : "max";
          }
        },
        op.kind);
    if (f.kind.empty()) continue;
    const ir::Value& x = partitioned.local.value(op.operands[0]);
    f.label = std::string(x.label);
    f.dtype = x.type.dtype;
    f.elements = ir::element_count(x.type.shape);
    all.push_back(f);
  }
  return all;
}

int count(const std::vector<Found>& all, const std::string& kind, const std::string& axes, ir::Phase phase,
          std::int64_t above) {
  int n = 0;
  for (const Found& f : all)
    if (f.kind == kind && (axes.empty() || f.axes == axes) && f.phase == phase && f.elements > above) ++n;
  return n;
}

std::string lines(const std::vector<Found>& all) {
  static const char* const kPhases[] = {"forward", "recompute", "backward", "update"};
  std::string text;
  for (const Found& f : all)
    text += std::string(kPhases[static_cast<int>(f.phase)]) + " " + f.kind + " " + f.axes + " " + f.detail + " " +
            f.label + " " + std::string(ir::name_of(f.dtype)) + " " + std::to_string(f.elements) + "\n";
  return text;
}

}  // namespace tpusim::spmd::testing
