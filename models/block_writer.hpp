// What the builders of blocks share: dims by logical axis, parameters with their casts. Internal to models.
#pragma once

#include <string>

#include "models/builders.hpp"
#include "sim/ir/ops.hpp"

namespace tpusim::models {

inline constexpr ir::DimName kEmbed{ir::Axis::embed, 0};
inline constexpr ir::DimName kMlp{ir::Axis::mlp, 0};
inline constexpr ir::DimName kVocab{ir::Axis::vocab, 0};
inline constexpr ir::DimName kPosition{ir::Axis::position, 0};

class BlockWriter {
 public:
  BlockWriter(std::string name, const ModelConfig& config, const BuildOptions& options);

  ir::Dim dim(ir::DimName name) const;  // valid size of the config or options, padded size of the options
  // The port x_in [batch, seq, embed] at place residual.
  ir::ValueId x_in();
  ir::ValueId data(ir::DataKind kind, const ir::DimNames& dims, ir::DType dtype, std::string_view label);
  // A parameter over `input` then `output` dims, as the compute dtype sees it.
  ir::ValueId parameter(std::string_view name, const ir::DimNames& input, const ir::DimNames& output,
                        ir::Init init = ir::Init::normal, const std::string& tie = "");
  // x . parameter -> result dims, and + bias where the config has biases (named b + the rest of the parameter's name).
  ir::ValueId project(ir::ValueId x, std::string_view name, const ir::DimNames& input, const ir::DimNames& output,
                      const ir::DimNames& result, ir::Builder::As as);
  // The config's norm over embed, with parameters name.scale (and name.bias).
  ir::ValueId norm(ir::ValueId x, std::string_view name);
  // The two- or three-matrix MLP on y [batch, seq, embed].
  ir::ValueId mlp(ir::ValueId y);

  ir::Program program;
  ir::Builder builder;
  const ModelConfig& config;
  const BuildOptions& options;
};

ir::Program embedding_block(const ModelConfig& config, const BuildOptions& options);
ir::Program transformer_layer(const ModelConfig& config, const BuildOptions& options);
ir::Program transformer_head(const ModelConfig& config, const BuildOptions& options);
ir::Program mlp_input(const ModelConfig& config, const BuildOptions& options);
ir::Program mlp_layer(const ModelConfig& config, const BuildOptions& options);
ir::Program mlp_head(const ModelConfig& config, const BuildOptions& options);

}  // namespace tpusim::models
