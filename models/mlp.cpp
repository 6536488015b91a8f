// The plain two-matrix MLP of the TPU scaling book (Austin et al. 2025, "How to Scale Your Model", training chapter).
#include "models/block_writer.hpp"
#include "sim/ir/flash_dims.hpp"

namespace tpusim::models {

using ir::kBatch;
using ir::kSeq;
using ir::Place;

ir::Program mlp_input(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("input", config, options);
  const ir::ValueId features =
      w.data(ir::DataKind::features, {kBatch, kSeq, kEmbed}, options.compute_dtype, "features");
  w.program.x_out = w.builder.map(ir::Elementwise::copy, features, {"x_out", Place::residual});
  return w.program;
}

ir::Program mlp_layer(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("layer", config, options);
  const ir::ValueId x = w.x_in();
  const ir::ValueId out = w.mlp(x);
  w.program.x_out = w.builder.map(ir::Elementwise::add, x, out, {"x_out", Place::residual});
  return w.program;
}

ir::Program mlp_head(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("head", config, options);
  const ir::ValueId x = w.x_in();
  const ir::ValueId labels = w.data(ir::DataKind::labels, {kBatch, kSeq, kEmbed}, options.compute_dtype, "labels");
  w.program.loss = ir::squared_error(w.builder, x, labels, options.global_tokens * static_cast<double>(config.embed));
  return w.program;
}

}  // namespace tpusim::models
