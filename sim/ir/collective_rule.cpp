// Collectives are put in by the partitioner, after it has read the rules of the ops that they serve; their own rules
// only say which dim they work on.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

ShardingRule whole_dim(DimName dim, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, dim, args).kind = FactorKind::whole;
  set_linear(rule, 1, {0});
  return rule;
}

}  // namespace

ShardingRule rule_op(const AllGather& op, const RuleArgs& args) {
  return whole_dim(op.dim, args);
}
ShardingRule rule_op(const ReduceScatter& op, const RuleArgs& args) {
  return whole_dim(op.dim, args);
}
ShardingRule rule_op(const Slice& op, const RuleArgs& args) {
  return whole_dim(op.dim, args);
}
ShardingRule rule_op(const AllReduce&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  set_linear(rule, 1, {0});
  return rule;
}

}  // namespace tpusim::ir
