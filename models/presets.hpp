// The built-in models. Their numbers are the JSON cards in models/cards/, each with its source, embedded in the library
// when it is built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.hpp"
#include "sim/base/registry.hpp"

namespace tpusim::models {

struct Preset {
  ModelConfig config;
  std::string help;    // one line for `list models`
  std::string source;  // where the numbers come from
};

// A card as text. Throws ScenarioError naming `file` with every fault: not JSON, unknown or missing key, wrong type, no
// source, a config that check() refuses.
Preset parse_card(std::string_view json, const std::string& file);

// Names in the order of `list models`: "gpt2", ..., "palm-540b".
std::vector<std::string> preset_names();
// Reads that one card. nullopt for an unknown name; nearest(name, preset_names()) helps with the message.
std::optional<Preset> find_preset(std::string_view name);
// All of them.
void register_builtin(Registry<Preset>& registry);

}  // namespace tpusim::models
