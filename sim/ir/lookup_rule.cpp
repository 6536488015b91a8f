// Sharding rules of lookup, pick and their gradients. A device that lacks an entry contributes 0, so a split table or
// split classes give a partial sum.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

ShardingRule rule_op(const Lookup& lookup, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, lookup.rows, args).kind = FactorKind::sum;
  set_linear(rule, 2, {0});
  return rule;
}

ShardingRule rule_op(const LookupGrad&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  for (Factor& f : rule.factors)
    if (f.result_dim[0] < 0) f.kind = FactorKind::sum;  // the dims of the ids
  set_linear(rule, 2, {1});
  return rule;
}

ShardingRule rule_op(const Pick& pick, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, pick.classes, args).kind = FactorKind::sum;
  set_linear(rule, 2, {0});
  return rule;
}

ShardingRule rule_op(const PickGrad&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  set_linear(rule, 2, {1});
  return rule;
}

}  // namespace tpusim::ir
