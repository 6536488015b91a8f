#include <fmt/format.h>

#include "models/presets.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/session/session.hpp"
#include "sim/strategies/strategies.hpp"
#include "topologies/builders.hpp"
#include "topologies/catalogue.hpp"

namespace tpusim::session {

namespace {

std::vector<ListEntry> models_list() {
  Registry<models::Preset> registry;
  models::register_builtin(registry);
  std::vector<ListEntry> out;
  for (const auto& e : registry.entries())
    out.push_back({e.name, e.help,
                   fmt::format("{} parameters, {} layers, embed {}, {} heads ({} for keys and values), vocab {}",
                               models::parameter_count(e.value.config), e.value.config.layers, e.value.config.embed,
                               e.value.config.heads, e.value.config.kv_heads, e.value.config.vocab)});
  return out;
}

std::vector<ListEntry> chips_list() {
  Registry<topologies::Chip> registry;
  topologies::register_builtin(registry);
  std::vector<ListEntry> out;
  for (const auto& e : registry.entries()) {
    std::string slices;
    for (const topologies::Shape& shape : e.value.slices.listed)
      slices += (slices.empty() ? "; slices " : " ") + topologies::shape_text(shape);
    out.push_back({e.name, e.help,
                   fmt::format("{} HBM, {} links{}", format_bytes(e.value.hbm_capacity.value),
                               format_rate(e.value.link_rate.value), slices)});
  }
  return out;
}

std::vector<ListEntry> topologies_list() {
  Registry<topologies::TopologyKind> kinds;
  topologies::register_builtin(kinds);
  std::vector<ListEntry> out;
  for (const auto& e : kinds.entries()) out.push_back({e.name, e.help, e.value.request + ": " + e.value.axes});
  Registry<topologies::ClusterPreset> presets;
  topologies::register_builtin(presets);
  for (const auto& e : presets.entries())
    out.push_back({e.name, e.help,
                   fmt::format("{{\"preset\": \"{}\", \"hosts\": 2}}: hosts of {} {}", e.name, e.value.chips_per_host,
                               e.value.chip)});
  return out;
}

std::vector<ListEntry> strategies_list() {
  Registry<strategies::Strategy> registry;
  strategies::register_builtin(registry);
  std::vector<ListEntry> out;
  for (const auto& e : registry.entries()) out.push_back({e.name, e.help, ""});
  return out;
}

std::vector<ListEntry> collectives_list() {
  return {{"ring", "one-way ring; n-1 steps", "(n-1)(a + V/(nW)); on switches and rings"},
          {"bidirectional ring", "both ways round a wrapped axis, shortest way; floor(n/2) steps",
           "floor(n/2) a + V(n-1)/(2nW)"},
          {"line", "both ways along an axis without wrap-around; n-1 steps", "(n-1)(a + V/(nW))"},
          {"in order", "several axes one after the other: two-level over hosts and slices, or over torus axes",
           "sum over the axes, with the data that each has to carry"},
          {"rotated parts", "k axes at once: the data in k parts, part j beginning at axis j",
           "k floor(X/2) a + V(1-1/n)/(2kW) on k wrapped axes of size X"}};
}

}  // namespace

std::vector<std::string> list_kinds() {
  return {"models", "chips", "topologies", "strategies", "collectives"};
}

std::vector<ListEntry> list(std::string_view kind) {
  if (kind == "models") return models_list();
  if (kind == "chips") return chips_list();
  if (kind == "topologies") return topologies_list();
  if (kind == "strategies") return strategies_list();
  if (kind == "collectives") return collectives_list();
  Diagnostic d;
  d.code = Code::unknown_name;
  d.message = fmt::format("there is nothing called \"{}\" to list", kind);
  d.suggestion = nearest(kind, list_kinds());
  d.choices = list_kinds();
  throw ScenarioError({d});
}

}  // namespace tpusim::session
