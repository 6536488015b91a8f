#include "sim/spmd/partition_spec.hpp"

#include <array>
#include <utility>

#include "sim/base/check.hpp"

namespace tpusim::spmd {

std::string to_string(const PartitionSpec& spec, const ir::Shape& shape, const Mesh& mesh) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d > 0) text += ", ";
    text += ir::to_string(shape[d].name);
    if (!spec.dims[d].empty()) text += ": " + mesh.to_string(spec.dims[d]);
  }
  text += "]";
  if (!spec.partial.empty())
    text += (spec.partial_kind == ir::Reduction::sum ? " partial sum over " : " partial max over ") +
            mesh.to_string(spec.partial);
  return text;
}

const std::vector<Rule>& ShardingTables::of(ir::Table table) const {
  switch (table) {
    case ir::Table::activations:
      return activations;
    case ir::Table::parameters:
      return parameters;
    case ir::Table::gradients:
      return gradients;
    case ir::Table::optimizer:
      return optimizer;
  }
  internal_error(__FILE__, __LINE__, "table", "no such sharding table");
}

namespace {

struct Assignment {
  PartitionSpec spec;
  MeshAxes used;
  std::array<const Rule*, ir::kMaxRank> decided{};  // by dim: the rule that spoke of it first
};

void apply(const Rule& rule, const ir::Shape& shape, const Mesh& mesh, Assignment& out) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].name.axis != rule.axis || out.decided[d] != nullptr) continue;
    out.decided[d] = &rule;
    std::int64_t parts = 1;
    for (const std::uint8_t axis : rule.mesh_axes) {
      const std::int64_t size = mesh.axes[axis].size;
      if (size == 1 || out.used.contains(axis) || shape[d].size % (parts * size) != 0) continue;
      parts *= size;
      out.spec.dims[d].push_back(axis);
      out.used.push_back(axis);
    }
  }
}

Assignment assign(const ShardingTables& tables, ir::Table table, const ir::TensorType& type, const Mesh& mesh) {
  Assignment out;
  for (std::size_t d = 0; d < type.shape.size(); ++d) out.spec.dims.push_back({});
  const std::vector<Rule>& rules = tables.of(table);
  if (type.place != ir::Place::none)
    for (const Rule& rule : rules)
      if (rule.place == type.place) apply(rule, type.shape, mesh, out);
  for (const Rule& rule : rules)
    if (rule.place == ir::Place::none) apply(rule, type.shape, mesh, out);
  return out;
}

// Why a rule's axis does not split dim d.
std::string refusal(const Assignment& a, const ir::Shape& shape, std::size_t d, std::uint8_t axis, const Mesh& mesh) {
  for (std::size_t e = 0; e < shape.size(); ++e)
    if (e != d && a.spec.dims[e].contains(axis)) return "it splits " + ir::to_string(shape[e].name);
  const std::int64_t size = mesh.axes[axis].size;
  if (size == 1) return "it has one device";
  return std::to_string(shape[d].size / mesh.size(a.spec.dims[d])) + " is no multiple of " + std::to_string(size);
}

}  // namespace

PartitionSpec wanted_spec(const ShardingTables& tables, ir::Table table, const ir::TensorType& type, const Mesh& mesh) {
  return assign(tables, table, type, mesh).spec;
}

std::string explain_wanted(const ShardingTables& tables, ir::Table table, const ir::TensorType& type,
                           const Mesh& mesh) {
  const Assignment a = assign(tables, table, type, mesh);
  std::string text;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (a.decided[d] == nullptr) continue;
    const MeshAxes& split = a.spec.dims[d];
    text += ir::to_string(type.shape[d].name) + ": " + (split.empty() ? "whole" : mesh.to_string(split)) + " (" +
            a.decided[d]->origin + ")";
    for (const std::uint8_t axis : a.decided[d]->mesh_axes)
      if (!split.contains(axis)) text += "; not " + mesh.axes[axis].name + ": " + refusal(a, type.shape, d, axis, mesh);
    text += "\n";
  }
  return text;
}

std::string print(const ShardingTables& tables, const Mesh& mesh) {
  std::string text;
  const std::pair<const char*, ir::Table> all[] = {{"parameters ", ir::Table::parameters},
                                                   {"gradients  ", ir::Table::gradients},
                                                   {"optimizer  ", ir::Table::optimizer},
                                                   {"activations", ir::Table::activations}};
  for (const auto& [name, table] : all)
    for (const Rule& rule : tables.of(table)) {
      text += std::string(name) + "  ";
      if (rule.place != ir::Place::none) text += std::string(ir::name_of(rule.place)) + ".";
      text += std::string(ir::name_of(rule.axis)) + " -> " +
              (rule.mesh_axes.empty() ? "whole" : mesh.to_string(rule.mesh_axes)) + "  (" + rule.origin + ")\n";
    }
  return text;
}

}  // namespace tpusim::spmd
