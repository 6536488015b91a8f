#include "models/block_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/check.hpp"
#include "sim/ir/flash_dims.hpp"

namespace tpusim::models {
namespace {

std::int64_t true_size(ir::Axis axis, const ModelConfig& c, const BuildOptions& o) {
  switch (axis) {
    case ir::Axis::batch:
      return o.batch;
    case ir::Axis::seq:
      return o.seq;
    case ir::Axis::embed:
      return c.embed;
    case ir::Axis::kv_heads:
      return c.kv_heads;
    case ir::Axis::q_group:
      return c.heads / c.kv_heads;
    case ir::Axis::head_dim:
      return c.head_dim;
    case ir::Axis::mlp:
      return c.mlp;
    case ir::Axis::vocab:
      return c.vocab;
    case ir::Axis::position:
      return c.max_positions;
    case ir::Axis::expert:
    case ir::Axis::height:
    case ir::Axis::width:
    case ir::Axis::channels:
      break;
  }
  internal_error(__FILE__, __LINE__, "axis", "a model without the axis " + std::string(ir::name_of(axis)));
}

}  // namespace

BlockWriter::BlockWriter(std::string name, const ModelConfig& c, const BuildOptions& o)
    : builder(program), config(c), options(o) {
  program.name = std::move(name);
}

ir::Dim BlockWriter::dim(ir::DimName name) const {
  const std::int64_t valid = true_size(name.axis, config, options);
  const std::int64_t padded = options.padded[static_cast<std::size_t>(name.axis)];
  TPUSIM_CHECK(padded == 0 || padded >= valid,
               fmt::format("{} of {} padded to {}", ir::to_string(name), valid, padded));
  return {name, padded == 0 ? valid : padded, valid};
}

ir::ValueId BlockWriter::x_in() {
  const ir::TensorType type{options.compute_dtype, {dim(ir::kBatch), dim(ir::kSeq), dim(kEmbed)}, ir::Place::residual};
  program.x_in = builder.input(type, "x_in");
  return program.x_in;
}

ir::ValueId BlockWriter::data(ir::DataKind kind, const ir::DimNames& dims, ir::DType dtype, std::string_view label) {
  ir::TensorType type;
  type.dtype = dtype;
  for (const ir::DimName name : dims) type.shape.push_back(dim(name));
  const ir::ValueId id = builder.input(type, label);
  program.data.push_back({id, kind});
  return id;
}

// Labels are static text and parameter names come from literals, so a name serves as its value's label too.
ir::ValueId BlockWriter::parameter(std::string_view name, const ir::DimNames& input, const ir::DimNames& output,
                                   ir::Init init, const std::string& tie) {
  ir::TensorType type;
  type.dtype = options.parameter_dtype;
  for (const ir::DimName d : input) type.shape.push_back(dim(d));
  for (const ir::DimName d : output) type.shape.push_back(dim(d));
  ir::Parameter p;
  p.value = builder.input(type, name, ir::Table::parameters);
  p.name = std::string(name);
  p.tie = tie;
  p.init = init;
  p.input_dims = input;
  p.output_dims = output;
  program.parameters.push_back(p);
  return ir::to_dtype(builder, p.value, options.compute_dtype, {name, ir::Place::none, ir::Table::parameters});
}

ir::ValueId BlockWriter::project(ir::ValueId x, std::string_view name, const ir::DimNames& input,
                                 const ir::DimNames& output, const ir::DimNames& result, ir::Builder::As as) {
  const ir::ValueId w = parameter(name, input, output);
  const ir::ValueId y = builder.dot(x, w, result, options.compute_dtype, as);
  if (!config.bias) return y;
  const std::pair<std::string_view, std::string_view> biases[] = {
      {"wq", "bq"},     {"wk", "bk"},         {"wv", "bv"},      {"wo", "bo"},
      {"w_in", "b_in"}, {"w_gate", "b_gate"}, {"w_out", "b_out"}};
  std::string_view bias_name;
  for (const auto& [weight, bias] : biases)
    if (weight == name) bias_name = bias;
  TPUSIM_CHECK(!bias_name.empty(), "a projection without a name for its bias");
  const ir::ValueId bias = parameter(bias_name, {}, output, ir::Init::zeros);
  return builder.map(ir::Elementwise::add, y, bias, as);
}

ir::ValueId BlockWriter::norm(ir::ValueId x, std::string_view name) {
  const bool is_final = name == "final_norm", is_mlp = name == "mlp_norm";
  const std::string_view scale_name = is_final ? "final_norm.scale"
                                      : is_mlp ? "mlp_norm.scale"
                                               : "attention_norm.scale";
  const std::string_view bias_name = is_final ? "final_norm.bias" : is_mlp ? "mlp_norm.bias" : "attention_norm.bias";
  const ir::ValueId scale = parameter(scale_name, {}, {kEmbed}, ir::Init::ones);
  if (config.norm == Norm::rms) return ir::rms_norm(builder, x, scale, kEmbed, config.norm_eps, ir::Place::residual);
  const ir::ValueId bias = parameter(bias_name, {}, {kEmbed}, ir::Init::zeros);
  return ir::layer_norm(builder, x, scale, bias, kEmbed, config.norm_eps, ir::Place::residual);
}

ir::ValueId BlockWriter::mlp(ir::ValueId y) {
  const ir::DimNames inner = {ir::kBatch, ir::kSeq, kMlp};
  const ir::Place place = ir::Place::mlp;
  const ir::ValueId gate =
      config.gated_mlp ? project(y, "w_gate", {kEmbed}, {kMlp}, inner, {"gate", place}) : ir::ValueId();
  const ir::ValueId up = project(y, "w_in", {kEmbed}, {kMlp}, inner, {"up", place});
  const ir::ValueId hidden = config.gated_mlp ? ir::activate(builder, config.activation, gate, up, place)
                                              : ir::activate(builder, config.activation, up, ir::ValueId(), place);
  return project(hidden, "w_out", {kMlp}, {kEmbed}, {ir::kBatch, ir::kSeq, kEmbed}, {"mlp_out", ir::Place::residual});
}

}  // namespace tpusim::models
