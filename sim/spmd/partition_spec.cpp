#include "sim/spmd/partition_spec.hpp"

#include <array>

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
    case ir::Table::activations: return activations;
    case ir::Table::parameters: return parameters;
    case ir::Table::gradients: return gradients;
    case ir::Table::optimizer: return optimizer;
  }
  internal_error(__FILE__, __LINE__, "table", "no such sharding table");
}

namespace {

struct Assignment {
  PartitionSpec spec;
  MeshAxes used;
  std::array<bool, ir::kMaxRank> decided{};
};

void apply(const Rule& rule, const ir::Shape& shape, const Mesh& mesh, Assignment& out) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].name.axis != rule.axis || out.decided[d]) continue;
    out.decided[d] = true;
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

}  // namespace

PartitionSpec wanted_spec(const ShardingTables& tables, ir::Table table, const ir::TensorType& type, const Mesh& mesh) {
  Assignment out;
  for (std::size_t d = 0; d < type.shape.size(); ++d) out.spec.dims.push_back({});
  const std::vector<Rule>& rules = tables.of(table);
  if (type.place != ir::Place::none)
    for (const Rule& rule : rules)
      if (rule.place == type.place) apply(rule, type.shape, mesh, out);
  for (const Rule& rule : rules)
    if (rule.place == ir::Place::none) apply(rule, type.shape, mesh, out);
  return out.spec;
}

}  // namespace tpusim::spmd
