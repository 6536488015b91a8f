#include "models/presets.hpp"

#include "models/embedded.hpp"
#include "models/json_fields.hpp"

namespace tpusim::models {
namespace {

std::vector<std::string> activation_names() {
  return {"silu", "gelu", "relu"};
}

// Cards hold every field of a transformer, so that none of them has a hidden default.
void read_config(const Json& object, const std::string& file, DiagnosticSink& sink, ModelConfig& c) {
  Fields f(object, "/config", file, sink);
  const auto size = [&f](const char* key, std::int64_t& field) {
    if (const auto value = f.integer(key, true)) field = *value;
  };
  const auto flag = [&f](const char* key, bool& field) {
    if (const auto value = f.flag(key, true)) field = *value;
  };
  const auto number = [&f](const char* key, double& field) {
    if (const auto value = f.number(key, true)) field = *value;
  };
  f.choice("family", {"transformer"}, true);
  size("layers", c.layers);
  size("embed", c.embed);
  size("heads", c.heads);
  size("kv_heads", c.kv_heads);
  size("head_dim", c.head_dim);
  size("mlp", c.mlp);
  flag("gated_mlp", c.gated_mlp);
  size("vocab", c.vocab);
  flag("tied_embeddings", c.tied_embeddings);
  if (const auto i = f.choice("positions", {"rotary", "learned", "none"}, true))
    c.positions = static_cast<Positions>(*i);
  size("max_positions", c.max_positions);
  number("rope_theta", c.rope_theta);
  if (const auto i = f.choice("norm", {"rms", "layer"}, true)) c.norm = static_cast<Norm>(*i);
  number("norm_eps", c.norm_eps);
  if (const auto i = f.choice("activation", activation_names(), true)) c.activation = static_cast<Activation>(*i);
  flag("parallel_block", c.parallel_block);
  flag("bias", c.bias);
  f.refuse_unknown();
  check(c, "/config", sink);
}

}  // namespace

Preset parse_card(std::string_view json, const std::string& file) {
  DiagnosticSink sink;
  Preset out;
  const std::optional<Json> card = parse_object(json, file, sink);
  sink.throw_if_errors();
  Fields f(*card, "", file, sink);
  out.config.name = f.text("name", true).value_or("");
  out.help = f.text("help", true).value_or("");
  out.source = f.text("source", true).value_or("");
  if (f.has("source") && out.source.empty())
    f.error(Code::bad_value, "source", "a preset names where its numbers come from");
  const auto config = card->find("config");
  if (config == card->end() || !config->is_object())
    f.error(Code::missing_key, "config", "the key \"config\" is required and holds an object");
  else
    read_config(*config, file, sink, out.config);
  sink.throw_if_errors();
  return out;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> out;
  for (const EmbeddedCard& card : embedded_cards()) out.emplace_back(card.name);
  return out;
}

std::optional<Preset> find_preset(std::string_view name) {
  for (const EmbeddedCard& card : embedded_cards())
    if (card.name == name) return parse_card(card.json, std::string(card.name) + ".json");
  return std::nullopt;
}

void register_builtin(Registry<Preset>& registry) {
  for (const EmbeddedCard& card : embedded_cards()) {
    Preset preset = parse_card(card.json, std::string(card.name) + ".json");
    std::string help = preset.help;
    registry.add(std::string(card.name), std::move(help), std::move(preset));
  }
}

}  // namespace tpusim::models
