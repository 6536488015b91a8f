// Sharding rules of attention: keys and head dims whole; a split of the queries is parallel, but the gradients of the
// keys and values, which all queries share, become partial sums.
#include "sim/ir/flash_dims.hpp"
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

ShardingRule rule_op(const Flash&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, kKeySeq, args).kind = FactorKind::whole;
  factor_named(rule, kHeadDim, args).kind = FactorKind::whole;
  return rule;
}

ShardingRule rule_op(const FlashGrad&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, kKeySeq, args).kind = FactorKind::whole;
  factor_named(rule, kHeadDim, args).kind = FactorKind::whole;
  factor_named(rule, kSeq, args).kind = FactorKind::sum;
  factor_named(rule, kQGroup, args).kind = FactorKind::sum;
  return rule;
}

}  // namespace tpusim::ir
