#include "models/huggingface.hpp"

#include <fmt/format.h>

#include "models/json_fields.hpp"

namespace tpusim::models {
namespace {

// Names of activations in Transformers (src/transformers/activations.py, ACT2FN). Exact and tanh GELU cost the same and
// are both the tanh form here.
void read_activation(Fields& f, const char* key, Activation fallback, ModelConfig& c) {
  const std::vector<std::string> names = {"silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
                                          "relu"};
  const Activation meaning[] = {Activation::silu, Activation::silu, Activation::gelu, Activation::gelu,
                                Activation::gelu, Activation::gelu, Activation::relu};
  c.activation = fallback;
  if (const auto i = f.choice(key, names)) c.activation = meaning[*i];
}

ModelConfig read_llama(Fields& f) {
  ModelConfig c;
  c.name = "llama";
  c.embed = f.integer("hidden_size").value_or(4096);
  c.mlp = f.integer("intermediate_size").value_or(11008);
  c.layers = f.integer("num_hidden_layers").value_or(32);
  c.heads = f.integer("num_attention_heads").value_or(32);
  c.kv_heads = f.integer("num_key_value_heads").value_or(c.heads);
  const std::int64_t even_share = c.heads > 0 ? c.embed / c.heads : 0;
  c.head_dim = f.integer("head_dim").value_or(even_share);
  if (!f.has("head_dim") && c.heads > 0 && c.embed % c.heads != 0)
    f.error(Code::not_divisible, "num_attention_heads", fmt::format("{} heads do not divide {}", c.heads, c.embed));
  c.vocab = f.integer("vocab_size").value_or(32000);
  c.max_positions = f.integer("max_position_embeddings").value_or(2048);
  c.norm_eps = f.number("rms_norm_eps").value_or(1e-6);
  c.rope_theta = f.number("rope_theta").value_or(10000);
  c.tied_embeddings = f.flag("tie_word_embeddings").value_or(false);
  c.gated_mlp = true;
  c.norm = Norm::rms;
  c.positions = Positions::rotary;
  read_activation(f, "hidden_act", Activation::silu, c);
  const bool attention_bias = f.flag("attention_bias").value_or(false);
  const bool mlp_bias = f.flag("mlp_bias").value_or(false);
  if (attention_bias != mlp_bias)
    f.error(Code::not_in_version, attention_bias ? "attention_bias" : "mlp_bias",
            "biases on attention alone or on the MLP alone are not in this version");
  c.bias = attention_bias && mlp_bias;
  if (f.has("rope_scaling"))
    f.warning(Code::not_in_version, "rope_scaling",
              "scaled rotary angles are taken as plain ones; the cost is the same");
  return c;
}

ModelConfig read_gpt2(Fields& f) {
  ModelConfig c;
  c.name = "gpt2";
  c.embed = f.integer("n_embd").value_or(768);
  c.layers = f.integer("n_layer").value_or(12);
  c.heads = f.integer("n_head").value_or(12);
  c.kv_heads = c.heads;
  c.head_dim = c.heads > 0 ? c.embed / c.heads : 0;
  if (c.heads > 0 && c.embed % c.heads != 0)
    f.error(Code::not_divisible, "n_head", fmt::format("{} heads do not divide {}", c.heads, c.embed));
  c.vocab = f.integer("vocab_size").value_or(50257);
  c.max_positions = f.integer("n_positions").value_or(1024);
  const std::optional<std::int64_t> inner = f.integer("n_inner");
  if (inner)
    c.mlp = *inner;
  else if (c.embed > 0 && c.embed < (std::int64_t{1} << 40))
    c.mlp = 4 * c.embed;
  c.norm_eps = f.number("layer_norm_epsilon").value_or(1e-5);
  c.tied_embeddings = f.flag("tie_word_embeddings").value_or(true);
  c.gated_mlp = false;
  c.bias = true;
  c.norm = Norm::layer;
  c.positions = Positions::learned;
  read_activation(f, "activation_function", Activation::gelu, c);
  return c;
}

// check() speaks of our fields; the user's file has Transformers' names, and no line of ours.
void report(const DiagnosticSink& checked, const std::string& file, bool llama, DiagnosticSink& sink) {
  static constexpr std::string_view kOurs[] = {"layers", "embed", "heads",         "kv_heads", "head_dim",
                                               "mlp",    "vocab", "max_positions", "norm_eps", "rope_theta"};
  static constexpr std::string_view kLlama[] = {
      "num_hidden_layers", "hidden_size", "num_attention_heads",     "num_key_value_heads", "head_dim",
      "intermediate_size", "vocab_size",  "max_position_embeddings", "rms_norm_eps",        "rope_theta"};
  static constexpr std::string_view kGpt2[] = {
      "n_layer", "n_embd", "n_head", "n_head", "n_embd", "n_inner", "vocab_size", "n_positions", "layer_norm_epsilon",
      ""};
  for (Diagnostic d : checked.all()) {
    d.file = file;
    for (std::size_t i = 0; i < std::size(kOurs); ++i) {
      if (d.pointer != "/" + std::string(kOurs[i])) continue;
      d.pointer = "/" + std::string(llama ? kLlama[i] : kGpt2[i]);
      break;
    }
    sink.add(std::move(d));
  }
}

}  // namespace

std::optional<ModelConfig> import_huggingface(std::string_view text, const std::string& file, DiagnosticSink& sink) {
  DiagnosticSink own;
  const auto finish = [&own, &sink] {
    for (const Diagnostic& d : own.all()) sink.add(d);
    return own.has_errors();
  };
  const std::optional<Json> object = parse_object(text, file, own);
  if (!object) {
    finish();
    return std::nullopt;
  }
  Fields f(*object, "", file, own);
  const std::vector<std::string> types = {"llama", "gpt2"};
  const std::optional<std::string> type = f.text("model_type", true);
  if (type && *type != "llama" && *type != "gpt2")
    f.error(Code::not_in_version, "model_type", fmt::format("the architecture \"{}\" is not in this version", *type),
            nearest(*type, types), types);
  if (!type || own.has_errors()) {
    finish();
    return std::nullopt;
  }
  const bool llama = *type == "llama";
  const ModelConfig config = llama ? read_llama(f) : read_gpt2(f);
  if (!own.has_errors()) {
    DiagnosticSink checked;
    check(config, "", checked);
    report(checked, file, llama, own);
  }
  if (finish()) return std::nullopt;
  return config;
}

}  // namespace tpusim::models
