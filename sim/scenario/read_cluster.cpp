#include <algorithm>
#include <cctype>

#include "sim/base/checked.hpp"
#include "sim/scenario/bounds.hpp"
#include "sim/scenario/contract.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t n : shape) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out;
}

// "4x4x8": sizes of one to nine digits joined by x. Empty when the text is none.
std::vector<std::int64_t> parse_topology(const std::string& text) {
  std::vector<std::int64_t> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end == at || end - at > 18) return {};
    out.push_back(std::stoll(text.substr(at, end - at)));
    if (end == text.size()) return out;
    if (text[end] != 'x') return {};
    at = end + 1;
  }
  return {};
}

// What "4X4", "4 x 4", "4*4" or [4, 4] was meant to be.
std::string meant(const Json& value) {
  std::string text;
  if (value.is_array()) {
    for (const Json& v : value) text += (text.empty() ? "" : "x") + (v.is_number_unsigned() ? v.dump() : "?");
  } else if (value.is_string()) {
    for (const char c : value.get_ref<const std::string&>()) {
      if (c == 'X' || c == '*' || c == ',')
        text += 'x';
      else if (c != ' ')
        text += c;
    }
  }
  return text.size() < 60 && !parse_topology(text).empty() ? text : "";
}

void read_topology(const Json& value, Context& context, ClusterSpec& out) {
  const std::string where = "/cluster/topology";
  if (!value.is_string()) {
    context.sink.error(Code::wrong_type, where,
                       fmt::format("a slice shape such as \"4x4x8\" is expected, {} found", describe(value)),
                       meant(value));
    return;
  }
  const std::vector<std::int64_t> shape = parse_topology(value.get_ref<const std::string&>());
  if (shape.empty()) {
    context.sink.error(Code::bad_value, where,
                       fmt::format("a slice shape such as \"4x4x8\" is expected, {} found", describe(value)),
                       meant(value));
    return;
  }
  if (shape.size() > kMaxTopologyAxes) {
    context.sink.error(Code::too_large, where,
                       fmt::format("at most {} axes are possible, {} found", kMaxTopologyAxes, shape.size()));
    return;
  }
  std::int64_t chips = 1;
  for (const std::int64_t n : shape) {
    if (n == 0) {
      context.sink.error(Code::bad_value, where, fmt::format("a slice axis of 0 chips in {}", describe(value)));
      return;
    }
    if (n > kMaxChips || (chips *= n) > kMaxChips) {
      context.sink.error(Code::too_large, where, fmt::format("{} has more than {} chips", describe(value), kMaxChips));
      return;
    }
  }
  out.topology = shape;
}

void read_chip(const Json& value, Context& context, ChipSpec& out) {
  const std::string where = "/cluster/chip";
  if (value.is_string()) {
    out.preset = value.get<std::string>();
    if (out.preset.empty()) context.sink.error(Code::bad_value, where, "the chip's name is empty");
    return;
  }
  if (!value.is_object()) {
    context.sink.error(Code::wrong_type, where,
                       fmt::format("a chip is a name or an object, {} found", describe(value)));
    return;
  }
  if (value.empty())
    context.sink.error(Code::missing_key, where, "a chip has a \"preset\", its own numbers, or both", "preset");
  for (const auto& member : value.items()) {
    const Json& v = member.value();
    const std::string here = pointer_to(where, member.key());
    if (member.key() == "preset") {
      if (v.is_string() && !v.get_ref<const std::string&>().empty())
        out.preset = v.get<std::string>();
      else
        context.sink.error(Code::wrong_type, here, fmt::format("a chip's name is expected, {} found", describe(v)));
    } else if (v.is_number()) {
      out.overrides.push_back({member.key(), v.get<double>()});
    } else if (v.is_boolean()) {
      out.overrides.push_back({member.key(), v.get<bool>()});
    } else if (v.is_string()) {
      out.overrides.push_back({member.key(), v.get<std::string>()});
    } else {
      context.sink.error(Code::wrong_type, here, fmt::format("a number or a text is expected, {} found", describe(v)));
    }
  }
}

// Slice shape or hosts, and not too many chips.
void check_size(ObjectReader& reader, const ClusterSpec& out, Context& context) {
  if (reader.find("topology") != nullptr) {
    for (const char* key : {"hosts", "chips_per_host"})
      reader.refuse(key, "beside \"topology\": a cluster is slices of a shape, or hosts");
  } else if (reader.find("hosts") != nullptr || reader.find("chips_per_host") != nullptr) {
    reader.refuse("slices", "counts slices of a \"topology\"; this cluster has hosts");
  } else if (reader.find("preset") == nullptr) {
    context.sink.error(
        Code::missing_key, "/cluster",
        "the cluster's size is missing: \"topology\" (a slice shape such as \"4x4\") for TPUs, \"hosts\" "
        "for others",
        {}, {"topology", "hosts"});
  }
  const std::int64_t units = out.topology.empty() ? out.hosts.value_or(1) : out.slices;
  std::int64_t each = out.topology.empty() ? out.chips_per_host.value_or(1) : 1;
  for (const std::int64_t n : out.topology) each *= n;  // at most kMaxChips
  if (units > kMaxChips / each)
    context.sink.error(
        Code::too_large, reader.at(out.topology.empty() ? "hosts" : "slices"),
        out.topology.empty()
            ? fmt::format("{} hosts of {} chips are more than {} chips", units, each, kMaxChips)
            : fmt::format("{} slices of {} are more than {} chips", units, shape_text(out.topology), kMaxChips));
}

}  // namespace

void read_cluster(const Json& value, Context& context, ClusterSpec& out) {
  ObjectReader reader(&value, "/cluster", "/cluster", context);
  if (!reader.is_object()) return;
  if (reader.find("preset") == nullptr) reader.require("chip", "a chip's name, or an object with its numbers");
  reader.read("preset", out.preset);
  if (reader.find("preset") != nullptr && context.clean("/cluster/preset") && out.preset.empty())
    context.sink.error(Code::bad_value, "/cluster/preset", "the name is empty");
  if (const Json* chip = reader.find("chip")) read_chip(*chip, context, out.chip);
  if (const Json* topology = reader.find("topology")) read_topology(*topology, context, out);
  if (reader.find("topology") != nullptr || reader.find("slices") != nullptr)
    reader.read("slices", out.slices, {1, kMaxChips});
  reader.read("hosts", out.hosts, {1, kMaxChips});
  reader.read("chips_per_host", out.chips_per_host, {1, kMaxChips});
  if (reader.find("topology") == nullptr && reader.find("hosts") == nullptr) {
    out.hosts = 1;
    context.defaults.push_back({"cluster.hosts", "1", ""});
  }
  check_size(reader, out, context);
}

void read_mesh(const Json& value, Context& context, std::vector<MeshAxis>& out) {
  if (!value.is_object()) {
    context.sink.error(Code::wrong_type, "/mesh",
                       fmt::format("axes and their sizes are expected, as in {{\"fsdp\": 16, \"tensor\": 8}}, {} found",
                                   describe(value)));
    return;
  }
  if (value.empty()) {
    context.sink.error(Code::bad_value, "/mesh", "the mesh has no axis; leave \"mesh\" out for {\"data\": chips}");
    return;
  }
  // Only for its way with integers; a mesh has no fixed keys.
  ObjectReader reader(nullptr, "/mesh", "", context);
  for (const auto& member : value.items()) {
    const std::string& name = member.key();
    const std::string where = pointer_to("/mesh", name);
    if (is_planned_axis(name)) {
      context.sink.error(Code::not_in_version, where, fmt::format("the mesh axis \"{}\" is not in this version", name),
                         {}, mesh_axes());
      continue;
    }
    if (std::find(mesh_axes().begin(), mesh_axes().end(), name) == mesh_axes().end()) {
      std::string suggestion(our_name(name));
      if (std::find(mesh_axes().begin(), mesh_axes().end(), suggestion) == mesh_axes().end())
        suggestion = nearest(name, mesh_axes());
      context.sink.error(Code::unknown_key, where, fmt::format("no mesh axis is called \"{}\"", shown(name)),
                         suggestion, nearest_choices(name, mesh_axes()));
      continue;
    }
    if (const auto size = reader.integer(member.value(), where, {1, kMaxChips})) out.push_back({name, *size});
  }
}

}  // namespace tpusim::scenario
