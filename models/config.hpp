// What a model is: the numbers from which builders.hpp makes its blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"
#include "sim/ir/compose.hpp"

namespace tpusim::models {

enum class Family : std::uint8_t { transformer, mlp, fixed };
enum class Positions : std::uint8_t { rotary, learned, none };
enum class Norm : std::uint8_t { rms, layer /* scale and bias */ };
using ir::Activation;

std::string_view to_string(Family family);
std::string_view to_string(Positions positions);
std::string_view to_string(Norm norm);
std::string_view to_string(Activation activation);

struct ModelConfig {
  std::string name;
  Family family = Family::transformer;
  std::int64_t layers = 1;
  std::int64_t embed = 1;     // width of the residual stream
  std::int64_t heads = 1;     // query heads
  std::int64_t kv_heads = 1;  // key and value heads; divides heads. q_group = heads / kv_heads
  std::int64_t head_dim = 1;
  std::int64_t mlp = 1;   // inner width
  bool gated_mlp = true;  // act(gate) * up (Shazeer 2020) instead of act(up)
  std::int64_t vocab = 1;
  bool tied_embeddings = false;
  Positions positions = Positions::rotary;
  std::int64_t max_positions = 2048;  // rows of a learned position table
  double rope_theta = 10000;
  Norm norm = Norm::rms;
  double norm_eps = 1e-5;
  Activation activation = Activation::silu;
  bool parallel_block = false;  // attention and MLP side by side on one norm (PaLM)
  bool bias = false;            // on every projection (GPT-2)
  // Family fixed: a step of known length, no program.
  Seconds step_compute;
  Bytes example_bytes;
  bool operator==(const ModelConfig&) const = default;
};

// Every fault of a config as a diagnostic under `pointer` ("/model"): sizes that are not positive or beyond the bounds
// of config.cpp, kv_heads that do not divide heads, an odd head_dim with rotary positions, numbers that are not finite.
void check(const ModelConfig& config, const std::string& pointer, DiagnosticSink& sink);

// Parameters of the whole model without building it: valid entries, tied embeddings once. Agrees with
// ir::Model::parameter_count() of what build() makes.
std::int64_t parameter_count(const ModelConfig& config);

}  // namespace tpusim::models
