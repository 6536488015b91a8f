#include <algorithm>
#include <array>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

constexpr IntRange kWidth{1, kMaxWidth};
constexpr IntRange kHeads{1, kMaxHeads};

// Exactly one of the three ways to name a model.
void check_source(const ObjectReader& reader, Context& context) {
  std::vector<std::string> given;
  for (const char* key : {"preset", "huggingface", "family"})
    if (reader.find(key) != nullptr) given.emplace_back(key);
  if (given.size() == 1) return;
  if (given.empty())
    context.sink.error(Code::missing_key, reader.pointer(),
                       "a model is a \"preset\", a \"huggingface\" file, or a \"family\" with its sizes", {},
                       {"preset", "huggingface", "family"});
  else
    context.sink.error(Code::conflict, reader.at(given[1]),
                       fmt::format("\"{}\" beside \"{}\": a model comes from one of them", given[1], given[0]));
}

void check_family(ObjectReader& reader, const ModelSpec& model) {
  if (!model.family) return;
  for (const char* key :
       {"layers", "embed", "heads", "kv_heads", "head_dim", "mlp", "gated_mlp", "vocab", "tied_embeddings", "positions",
        "max_positions", "rope_theta", "norm", "norm_eps", "activation", "parallel_block", "bias", "step_compute"})
    if (!model_key_applies(key, model))
      reader.refuse(key, fmt::format("has no meaning for family {}", to_string(*model.family)));
  switch (*model.family) {
    case Family::transformer:
      reader.require("heads", "the number of query heads");
      reader.require("vocab", "the number of tokens");
      [[fallthrough]];
    case Family::mlp:
      reader.require("layers", "the number of blocks");
      reader.require("embed", "the width of the residual stream");
      reader.require("mlp", "the inner width of the MLP");
      break;
    case Family::fixed:
      reader.require("step_compute", "the compute time of one step, such as \"323 ms\"");
      break;
  }
}

void check_shape(const ObjectReader& reader, const ModelSpec& m, Context& context) {
  const auto key = [&reader](const char* name) { return reader.at(name); };
  if (m.heads && m.kv_heads && *m.heads % *m.kv_heads != 0)
    context.sink.error(Code::not_divisible, key("kv_heads"),
                       fmt::format("{} query heads do not divide into {} key and value heads", *m.heads, *m.kv_heads));
  if (m.family == Family::transformer && m.embed && m.heads && !m.head_dim && context.clean(key("head_dim")) &&
      *m.embed % *m.heads != 0)
    context.sink.error(
        Code::not_divisible, key("heads"),
        fmt::format("embed {} does not divide into {} heads; give \"head_dim\" if it is not embed / heads", *m.embed,
                    *m.heads));
  if (m.positions && *m.positions == Positions::rotary && m.head_dim && *m.head_dim % 2 != 0)
    context.sink.error(Code::not_divisible, key("head_dim"),
                       fmt::format("rotary positions turn pairs, and head_dim {} is odd", *m.head_dim));
}

}  // namespace

bool model_key_applies(std::string_view key, const ModelSpec& model) {
  if (key == "preset" || key == "huggingface" || key == "family" || key == "example_bytes") return true;
  const bool fixed = model.family == Family::fixed;
  if (key == "step_compute") return fixed;
  if (fixed) return false;
  if (model.family == Family::mlp) {
    constexpr std::array<std::string_view, 6> kKeys = {"layers", "embed", "mlp", "gated_mlp", "activation", "bias"};
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
  }
  return true;
}

void read_model(const Json& value, Context& context, ModelSpec& out) {
  if (value.is_string()) {
    out.preset = value.get<std::string>();
    if (out.preset.empty()) context.sink.error(Code::bad_value, "/model", "the model's name is empty");
    return;
  }
  if (!value.is_object()) {
    context.sink.error(Code::wrong_type, "/model",
                       fmt::format("a model is a preset's name or an object, {} found", describe(value)));
    return;
  }
  ObjectReader reader(&value, "/model", "/model", context);
  check_source(reader, context);
  reader.read("preset", out.preset);
  reader.read("huggingface", out.huggingface);
  for (const char* key : {"preset", "huggingface"})
    if (const Json* v = reader.find(key); v != nullptr && v->is_string() && v->get_ref<const std::string&>().empty())
      context.sink.error(Code::bad_value, reader.at(key), "the name is empty");
  reader.read_name("family", out.family);
  reader.read("layers", out.layers, {1, kMaxLayers});
  reader.read("embed", out.embed, kWidth);
  reader.read("heads", out.heads, kHeads);
  reader.read("kv_heads", out.kv_heads, kHeads);
  reader.read("head_dim", out.head_dim, kWidth);
  reader.read("mlp", out.mlp, kWidth);
  reader.read("gated_mlp", out.gated_mlp);
  reader.read("vocab", out.vocab, {1, kMaxVocab});
  reader.read("tied_embeddings", out.tied_embeddings);
  reader.read_name("positions", out.positions);
  reader.read("max_positions", out.max_positions, {1, kMaxSequence});
  reader.read("rope_theta", out.rope_theta, {0, 1e15, true});
  reader.read_name("norm", out.norm);
  reader.read("norm_eps", out.norm_eps, {0, 1, true});
  reader.read_name("activation", out.activation);
  reader.read("parallel_block", out.parallel_block);
  reader.read("bias", out.bias);
  reader.read("step_compute", out.step_compute, {0, kMaxSeconds, true});
  reader.read("example_bytes", out.example_bytes, {0, kMaxBytes, true});
  if (!out.family && reader.find("family") == nullptr) reader.refuse("step_compute", "is for family fixed");
  check_family(reader, out);
  check_shape(reader, out, context);
}

}  // namespace tpusim::scenario
