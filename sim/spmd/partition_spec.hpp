// How one tensor is laid over the mesh: which mesh axes split each dim, and over which axes it is a partial result.
#pragma once

#include <string>

#include "sim/ir/ops.hpp"
#include "sim/spmd/mesh.hpp"

namespace tpusim::spmd {

struct PartitionSpec {
  InlineVector<MeshAxes, ir::kMaxRank> dims;  // one list per dim, major to minor; empty = whole
  MeshAxes partial;                           // ascending; the true value is the reduction over these axes
  ir::Reduction partial_kind = ir::Reduction::sum;
  bool operator==(const PartitionSpec&) const = default;
};
std::string to_string(const PartitionSpec& spec, const ir::Shape& shape,
                      const Mesh& mesh);  // "[batch: fsdp, embed] partial sum over tensor"

// A sharding rule: the dims of a logical axis, perhaps only at one place, are split over these mesh axes.
struct Rule {
  ir::Axis axis = ir::Axis::batch;
  ir::Place place = ir::Place::none;  // none: everywhere (a rule with the value's own place wins over it)
  MeshAxes mesh_axes;
  std::string origin;  // "strategy tensor", "sharding.parameters": for explain
};
// Earlier rules win where two claim the same mesh axis in one tensor; a rule for a place stands before one for
// everywhere.
struct ShardingTables {
  std::vector<Rule> parameters, gradients, optimizer, activations;
  ir::ShardingRuleOf rule_of = &ir::sharding_rule;  // what each op says of itself
  const std::vector<Rule>& of(ir::Table table) const;
};

// What the tables want for a value: per dim the axes of the first rule that fits it, as far as their product divides
// the dim's (padded) size; a mesh axis splits at most one dim. Sub-axes of one parent are tried major first.
PartitionSpec wanted_spec(const ShardingTables& tables, ir::Table table, const ir::TensorType& type, const Mesh& mesh);

// The same in words, a line per dim that a rule speaks of, with what the rule could not have and why:
//   "embed: fsdp (strategy fsdp)", "vocab: tensor (by hand); not fsdp: it splits embed; not data: 7 is no multiple of
//   2".
std::string explain_wanted(const ShardingTables& tables, ir::Table table, const ir::TensorType& type, const Mesh& mesh);

// The tables as a list, a rule a line: "activations  residual.seq -> tensor  (strategy tensor)".
std::string print(const ShardingTables& tables, const Mesh& mesh);

}  // namespace tpusim::spmd
