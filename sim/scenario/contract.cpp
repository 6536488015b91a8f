#include "sim/scenario/contract.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.hpp"

namespace tpusim::scenario {

// Function-local constants: made on first use (thread-safe), never at program start.
const std::vector<Section>& contract() {
  static const std::vector<Section> sections = {
      {"",
       {"version", "name", "model", "cluster", "mesh", "training", "strategies", "sharding", "input", "checkpoint",
        "failures", "price", "sweep", "faults_static", "baseline"}},
      {"/model", {"preset",         "huggingface",   "family",       "layers",       "embed",    "heads",
                  "kv_heads",       "head_dim",      "mlp",          "gated_mlp",    "vocab",    "tied_embeddings",
                  "positions",      "max_positions", "rope_theta",   "norm",         "norm_eps", "activation",
                  "parallel_block", "bias",          "step_compute", "example_bytes"}},
      {"/cluster", {"preset", "chip", "topology", "slices", "hosts", "chips_per_host"}},
      {"/training",
       {"global_batch", "sequence_length", "microbatch", "compute_dtype", "parameter_dtype", "gradient_dtype",
        "optimizer", "learning_rate", "clip_norm", "remat", "attention", "flops_convention"}},
      {"/training/optimizer", {"name", "momentum", "beta1", "beta2", "epsilon", "weight_decay"}},
      {"/strategies", {"data", "fsdp", "tensor", "pipeline", "context", "expert"}},
      {"/strategies/data", {"overlap", "bucket_bytes", "compression"}},
      {"/strategies/fsdp", {"zero_stage", "prefetch"}},
      {"/strategies/tensor", {"sequence_parallel"}},
      {"/strategies/pipeline", {"schedule", "virtual_stages"}},
      {"/sharding", {"parameters", "gradients", "optimizer", "activations"}},
      {"/input", {"storage", "stages", "prefetch", "host_to_chip"}},
      {"/input/storage", {"bandwidth", "latency", "shared_by"}},
      {"/input/stages/*", {"name", "threads", "time_per_example"}},
  };
  return sections;
}

const Section& section(std::string_view pointer) {
  for (const Section& s : contract())
    if (s.pointer == pointer) return s;
  internal_error(__FILE__, __LINE__, "section exists", "no section " + std::string(pointer));
}

namespace {
template <std::size_t N>
bool holds(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}
}  // namespace

bool is_planned_key(std::string_view key) {
  constexpr std::array<std::string_view, 6> kKeys = {"checkpoint", "failures",      "price",
                                                     "sweep",      "faults_static", "baseline"};
  return holds(kKeys, key);
}

bool is_planned_axis(std::string_view axis) {
  constexpr std::array<std::string_view, 2> kAxes = {"context", "expert"};
  return holds(kAxes, axis);
}

const std::vector<std::string>& mesh_axes() {
  static const std::vector<std::string> axes = {"data", "fsdp", "tensor", "pipeline"};
  return axes;
}

const std::vector<std::string>& logical_axes() {
  static const std::vector<std::string> axes = {"batch",    "seq", "embed", "kv_heads", "q_group",
                                                "head_dim", "mlp", "vocab", "position"};
  return axes;
}

const std::vector<std::string>& places() {
  static const std::vector<std::string> names = {"residual", "attention", "mlp", "logits"};
  return names;
}

bool is_planned_logical_axis(std::string_view axis) {
  constexpr std::array<std::string_view, 4> kAxes = {"expert", "height", "width", "channels"};
  return holds(kAxes, axis);
}

std::string_view our_name(std::string_view theirs) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Pair, 38> kNames = {{
      {"dp", "data"},
      {"data_parallel", "data"},
      {"replica", "data"},
      {"ddp", "data"},
      {"zero", "fsdp"},
      {"shard", "fsdp"},
      {"zero3", "fsdp"},
      {"tp", "tensor"},
      {"mp", "tensor"},
      {"model", "tensor"},
      {"tensor_parallel", "tensor"},
      {"pp", "pipeline"},
      {"pipe", "pipeline"},
      {"stage", "pipeline"},
      {"pipeline_parallel", "pipeline"},
      {"bfloat16", "bf16"},
      {"float32", "f32"},
      {"fp32", "f32"},
      {"float", "f32"},
      {"float64", "f64"},
      {"fp64", "f64"},
      {"double", "f64"},
      {"heads", "kv_heads"},
      {"seq_len", "sequence_length"},
      {"lr", "learning_rate"},
      {"batch_size", "global_batch"},
      {"micro_batch_size", "microbatch"},
      {"hidden_size", "embed"},
      {"hidden", "embed"},
      {"d_model", "embed"},
      {"d_ff", "mlp"},
      {"ffn", "mlp"},
      {"intermediate_size", "mlp"},
      {"num_layers", "layers"},
      {"n_layers", "layers"},
      {"vocab_size", "vocab"},
      {"pipedream", "1f1b"},
      {"activation_checkpointing", "remat"},
  }};
  for (const Pair& p : kNames)
    if (p.first == theirs) return p.second;
  return {};
}

}  // namespace tpusim::scenario
