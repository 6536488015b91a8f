// The decoder-only transformer (Vaswani et al. 2017; GPT-2, Llama, PaLM): embedding, layers, head.
#include "models/block_writer.hpp"
#include "sim/ir/flash_dims.hpp"

namespace tpusim::models {
namespace {

using ir::kBatch;
using ir::kHeadDim;
using ir::kKeySeq;
using ir::kKvHeads;
using ir::kQGroup;
using ir::kSeq;
using ir::Place;

constexpr ir::DimNames kQueryDims = {kKvHeads, kQGroup, kHeadDim};
constexpr ir::DimNames kKeyDims = {kKvHeads, kHeadDim};

ir::ValueId rotate(BlockWriter& w, ir::ValueId x, std::string_view label) {
  if (w.config.positions != Positions::rotary) return x;
  const ir::Rope rope{kSeq, kHeadDim, w.config.rope_theta, false, {}};
  return w.builder.add(rope, {x}, w.options.compute_dtype, {label, Place::attention})[0];
}

// Multi-head (kv_heads = heads), grouped-query and multi-query (kv_heads = 1) attention on y.
ir::ValueId self_attention(BlockWriter& w, ir::ValueId y) {
  const ir::Builder::As as_q{"q", Place::attention}, as_k{"k", Place::attention}, as_v{"v", Place::attention};
  const ir::DimNames q_dims = {kBatch, kSeq, kKvHeads, kQGroup, kHeadDim};
  const ir::DimNames kv_dims = {kBatch, kSeq, kKvHeads, kHeadDim};
  const ir::ValueId q = rotate(w, w.project(y, "wq", {kEmbed}, kQueryDims, q_dims, as_q), "q");
  ir::ValueId k = rotate(w, w.project(y, "wk", {kEmbed}, kKeyDims, kv_dims, as_k), "k");
  ir::ValueId v = w.project(y, "wv", {kEmbed}, kKeyDims, kv_dims, as_v);
  k = w.builder.add(ir::Rename{kSeq, kKeySeq}, {k}, w.options.compute_dtype, as_k)[0];
  v = w.builder.add(ir::Rename{kSeq, kKeySeq}, {v}, w.options.compute_dtype, as_v)[0];
  const ir::ValueId o = ir::attention(w.builder, q, k, v, {w.options.attention, true, w.options.flash_block});
  return w.project(o, "wo", kQueryDims, {kEmbed}, {kBatch, kSeq, kEmbed}, {"attention_proj", Place::residual});
}

}  // namespace

ir::Program embedding_block(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("embedding", config, options);
  const ir::ValueId tokens = w.data(ir::DataKind::tokens, {kBatch, kSeq}, ir::DType::i32, "tokens");
  const ir::ValueId table =
      w.parameter("embedding", {kVocab}, {kEmbed}, ir::Init::normal, config.tied_embeddings ? "embedding" : "");
  const ir::Builder::As as{"embedded", Place::residual};
  ir::ValueId x = w.builder.add(ir::Lookup{kVocab, {}}, {table, tokens}, options.compute_dtype, as)[0];
  if (config.positions == Positions::learned) {
    const ir::ValueId positions = w.data(ir::DataKind::positions, {kSeq}, ir::DType::i32, "positions");
    const ir::ValueId rows = w.parameter("positions", {kPosition}, {kEmbed});
    const ir::ValueId p = w.builder.add(ir::Lookup{kPosition, {}}, {rows, positions}, options.compute_dtype,
                                        {"position_rows", Place::residual})[0];
    x = w.builder.map(ir::Elementwise::add, x, p, {"x_out", Place::residual});
  }
  w.program.x_out = x;
  return w.program;
}

ir::Program transformer_layer(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("layer", config, options);
  const ir::ValueId x = w.x_in();
  const ir::ValueId y = w.norm(x, "attention_norm");
  const ir::ValueId attended = self_attention(w, y);
  if (config.parallel_block) {
    // One sum of the two partial results, so that a split model needs one reduction.
    const ir::ValueId both = w.builder.map(ir::Elementwise::add, attended, w.mlp(y), {"branches", Place::residual});
    w.program.x_out = w.builder.map(ir::Elementwise::add, x, both, {"x_out", Place::residual});
    return w.program;
  }
  const ir::ValueId middle = w.builder.map(ir::Elementwise::add, x, attended, {"x_mid", Place::residual});
  const ir::ValueId out = w.mlp(w.norm(middle, "mlp_norm"));
  w.program.x_out = w.builder.map(ir::Elementwise::add, middle, out, {"x_out", Place::residual});
  return w.program;
}

ir::Program transformer_head(const ModelConfig& config, const BuildOptions& options) {
  BlockWriter w("head", config, options);
  const ir::ValueId x = w.x_in();
  const ir::ValueId targets = w.data(ir::DataKind::targets, {kBatch, kSeq}, ir::DType::i32, "targets");
  const ir::ValueId y = w.norm(x, "final_norm");
  const ir::ValueId table = config.tied_embeddings
                                ? w.parameter("embedding", {kVocab}, {kEmbed}, ir::Init::normal, "embedding")
                                : w.parameter("unembedding", {kEmbed}, {kVocab});
  const ir::ValueId logits =
      w.builder.dot(y, table, {kBatch, kSeq, kVocab}, options.compute_dtype, {"logits", Place::logits});
  w.program.loss = ir::cross_entropy_from_logits(w.builder, logits, targets, kVocab, options.global_tokens);
  return w.program;
}

}  // namespace tpusim::models
