#include "sim/ir/readers.hpp"

namespace tpusim::ir {

ShardingRule rule_op(const Dot&, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  for (Factor& f : rule.factors)
    if (f.result_dim[0] < 0) f.kind = FactorKind::contracted;
  set_linear(rule, 2, {0, 1});
  return rule;
}

}  // namespace tpusim::ir
