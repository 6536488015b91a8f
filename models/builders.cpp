#include "models/builders.hpp"

#include "models/block_writer.hpp"
#include "sim/base/check.hpp"

namespace tpusim::models {

ir::Model build(const ModelConfig& config, const BuildOptions& options) {
  TPUSIM_CHECK(config.family != Family::fixed, "a model of family fixed has no program");
  TPUSIM_CHECK(config.heads >= 1 && config.kv_heads >= 1 && config.heads % config.kv_heads == 0,
               "a model that check() would refuse");
  const bool transformer = config.family == Family::transformer;
  ir::Model model;
  model.name = config.name;
  model.layers = config.layers;
  model.blocks.push_back(transformer ? embedding_block(config, options) : mlp_input(config, options));
  model.blocks.push_back(transformer ? transformer_layer(config, options) : mlp_layer(config, options));
  model.blocks.push_back(transformer ? transformer_head(config, options) : mlp_head(config, options));
  model.uses = {{0, 1}, {1, config.layers}, {2, 1}};
  return model;
}

}  // namespace tpusim::models
