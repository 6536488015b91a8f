#include <algorithm>

#include "sim/scenario/contract.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

bool holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// "mlp" or "residual.seq". Whether the key may be used in this table.
bool check_key(const ShardingRule& rule, const std::string& where, bool activations, Context& context) {
  const std::string_view axis = rule.axis(), place = rule.place();
  if (is_planned_logical_axis(axis)) {
    context.sink.error(Code::not_in_version, where, fmt::format("the logical axis \"{}\" is not in this version", axis),
                       {}, logical_axes());
    return false;
  }
  if (!holds(logical_axes(), axis)) {
    std::string suggestion(our_name(axis));
    if (!holds(logical_axes(), suggestion)) suggestion = nearest(axis, logical_axes());
    if (!suggestion.empty() && !place.empty()) suggestion = fmt::format("{}.{}", place, suggestion);
    context.sink.error(Code::unknown_key, where, fmt::format("no logical axis is called \"{}\"", shown(axis)),
                       suggestion, nearest_choices(axis, logical_axes()));
    return false;
  }
  if (rule.key.find('.') != rule.key.npos && !holds(places(), place)) {
    const std::string near = nearest(place, places());
    context.sink.error(Code::unknown_key, where, fmt::format("no place is called \"{}\"", shown(place)),
                       near.empty() ? "" : fmt::format("{}.{}", near, axis), nearest_choices(place, places()));
    return false;
  }
  if (!activations && (!place.empty() || axis == "batch" || axis == "seq")) {
    context.sink.error(Code::conflict, where,
                       place.empty()
                           ? fmt::format("no parameter has the axis \"{}\"; it belongs in /sharding/activations", axis)
                           : "a rule for a place belongs in /sharding/activations",
                       pointer_to("/sharding/activations", rule.key));
    return false;
  }
  return true;
}

void read_axes(const Json& value, const std::string& where, const std::vector<MeshAxis>& mesh, Context& context,
               ShardingRule& rule) {
  if (!value.is_array()) {
    context.sink.error(Code::wrong_type, where,
                       fmt::format("a list of mesh axes is expected, {} found", describe(value)),
                       value.is_string() ? fmt::format("[{}]", value.dump()) : "");
    return;
  }
  std::vector<std::string> axes;
  for (const MeshAxis& a : mesh) axes.push_back(a.name);
  const bool mesh_known = context.clean("/mesh") && !mesh.empty();
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string here = pointer_to(where, std::to_string(i));
    if (!value[i].is_string()) {
      context.sink.error(Code::wrong_type, here, fmt::format("a mesh axis is expected, {} found", describe(value[i])),
                         {}, axes);
      continue;
    }
    const std::string name = value[i].get<std::string>();
    if (mesh_known && !holds(axes, name)) {
      context.sink.error(Code::unknown_name, here, fmt::format("the mesh has no axis \"{}\"", shown(name)),
                         nearest(name, axes), axes);
    } else if (holds(rule.mesh_axes, name)) {
      context.sink.error(Code::conflict, here, fmt::format("\"{}\" twice in one rule", shown(name)));
    } else if (name == "pipeline") {
      context.sink.error(Code::conflict, here, "pipeline splits the layers, and no dimension of a tensor");
    } else {
      rule.mesh_axes.push_back(name);
    }
  }
}

void read_table(const Json* value, std::string_view name, const std::vector<MeshAxis>& mesh, Context& context,
                std::vector<ShardingRule>& out) {
  if (value == nullptr) return;
  const std::string where = pointer_to("/sharding", name);
  if (!value->is_object()) {
    context.sink.error(Code::wrong_type, where,
                       fmt::format("rules such as {{\"mlp\": [\"tensor\"]}} are expected, {} found", describe(*value)));
    return;
  }
  for (const auto& member : value->items()) {
    ShardingRule rule;
    rule.key = member.key();
    const std::string here = pointer_to(where, rule.key);
    const bool good = check_key(rule, here, name == "activations", context);
    read_axes(member.value(), here, mesh, context, rule);
    if (good) out.push_back(std::move(rule));
  }
}

}  // namespace

void read_sharding(const Json* value, const std::vector<MeshAxis>& mesh, Context& context, ShardingSpec& out) {
  ObjectReader reader(value, "/sharding", "/sharding", context);
  read_table(reader.find("parameters"), "parameters", mesh, context, out.parameters);
  read_table(reader.find("gradients"), "gradients", mesh, context, out.gradients);
  read_table(reader.find("optimizer"), "optimizer", mesh, context, out.optimizer);
  read_table(reader.find("activations"), "activations", mesh, context, out.activations);
}

}  // namespace tpusim::scenario
