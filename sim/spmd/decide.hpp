// What rules 1, 2 and 4 say about one op, as functions of types and specs alone. Internal to sim/spmd.
#pragma once

#include <vector>

#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd {

struct OpView {
  const ir::Op& op;
  const ir::ShardingRule& rule;
  const std::vector<ir::TensorType>& operands;  // global types
  const std::vector<ir::TensorType>& results;
  InlineVector<const PartitionSpec*, 8> have;  // how the operands are laid out now
  InlineVector<bool, 8> several_users;         // by operand: whether other ops or places read it too
  InlineVector<PartitionSpec, 4> target;       // what the results should become (rule 2)
};

struct Decision {
  InlineVector<MeshAxes, 16> split;  // by factor of the sharding rule
  MeshAxes passed;                   // partial axes that the op passes from operands to results
};

// Rule 4: over which of its partial axes operand i may stay partial and the results be partial in its stead.
MeshAxes may_pass(const OpView& view, std::size_t i);
// Rule 4 for sums: the axes over which all operands are partial sums.
MeshAxes shared_partials(const OpView& view);
// Rules 1 and 2, once the operands are partial over `passed` at most.
Decision decide(const OpView& view, const MeshAxes& passed);
PartitionSpec needed_spec(const OpView& view, const Decision& decision, std::size_t operand);
PartitionSpec result_spec(const OpView& view, const Decision& decision, std::size_t result);

}  // namespace tpusim::spmd
