// From a ModelConfig to its blocks: the forward graph with logical axes, ready for ir::differentiate.
//
// transformer: "embedding" x 1, "layer" x layers, "head" x 1 (final norm, logits, loss). mlp: "input" x 1 (features as
// they come), "layer" x layers (x + W_out act(W_in x), no norm), "head" x 1 (squared error against labels). Every
// parameter is cast to the compute dtype at each use, in table parameters, so that it is cast before it is gathered.
// Family fixed has no program: build() refuses it (InternalError).
#pragma once

#include <array>

#include "models/config.hpp"
#include "sim/ir/program.hpp"

namespace tpusim::models {

struct BuildOptions {
  std::int64_t batch = 1;  // examples in one microbatch, over all replicas together
  std::int64_t seq = 1;    // tokens of an example
  ir::DType compute_dtype = ir::DType::bf16;
  ir::DType parameter_dtype = ir::DType::f32;
  double global_tokens = 1;  // tokens of the whole global batch: the loss is their mean
  ir::AttentionKind attention = ir::AttentionKind::flash;
  std::int32_t flash_block = 128;
  // Padded size by logical axis; 0: not padded. At least the true size; heads and head_dim are never padded.
  std::array<std::int64_t, ir::kAxisCount> padded{};
};

ir::Model build(const ModelConfig& config, const BuildOptions& options);

}  // namespace tpusim::models
