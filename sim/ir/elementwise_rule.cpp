// Sharding rules of map, reduce, rename, the masks, rope, fill and update.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

// The masks multiply by 0 or 1 when they fill with 0.
ShardingRule mask_rule(double fill, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  if (fill == 0) set_linear(rule, 1, {0});
  return rule;
}

}  // namespace

ShardingRule rule_op(const Map& map, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  switch (map.kind) {
    case Elementwise::copy:
    case Elementwise::cast:
    case Elementwise::neg:
    case Elementwise::scale:
      set_linear(rule, 1, {0});
      break;
    case Elementwise::add:
    case Elementwise::sub:
      set_linear(rule, 2, {0, 1});
      rule.additive = true;
      break;
    case Elementwise::mul:
      set_linear(rule, 2, {0, 1});
      break;
    case Elementwise::div:
      set_linear(rule, 2, {0});
      break;
    // (x, dy): dy times a function of x.
    case Elementwise::relu_grad:
    case Elementwise::silu_grad:
    case Elementwise::gelu_grad:
    case Elementwise::tanh_grad:
      set_linear(rule, 2, {1});
      break;
    case Elementwise::add_scalar:
    case Elementwise::exp:
    case Elementwise::log:
    case Elementwise::sqrt:
    case Elementwise::rsqrt:
    case Elementwise::reciprocal:
    case Elementwise::square:
    case Elementwise::tanh:
    case Elementwise::sigmoid:
    case Elementwise::relu:
    case Elementwise::silu:
    case Elementwise::gelu:
    case Elementwise::minimum_scalar:
    case Elementwise::maximum:
      break;
  }
  return rule;
}

ShardingRule rule_op(const Reduce& reduce, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  const FactorKind kind = reduce.kind == Reduction::sum ? FactorKind::sum : FactorKind::max;
  for (const DimName name : reduce.dims) factor_named(rule, name, args).kind = kind;
  if (reduce.kind == Reduction::sum) set_linear(rule, 1, {0});
  return rule;
}

ShardingRule rule_op(const Rename& rename, const RuleArgs& args) {
  ShardingRule rule;
  for (const Dim& d : args.operands[0].shape) {
    Factor f = factor_of(FactorKind::parallel, d.name, args);
    if (d.name == rename.from) f.result_dim[0] = static_cast<std::int8_t>(find_dim(args.results[0].shape, rename.to));
    rule.factors.push_back(f);
  }
  set_linear(rule, 1, {0});
  return rule;
}

ShardingRule rule_op(const MaskPadding& mask, const RuleArgs& args) {
  return mask_rule(mask.fill, args);
}
ShardingRule rule_op(const MaskCausal& mask, const RuleArgs& args) {
  return mask_rule(mask.fill, args);
}

ShardingRule rule_op(const Rope& rope, const RuleArgs& args) {
  ShardingRule rule = all_parallel(args);
  factor_named(rule, rope.rotated, args).kind = FactorKind::whole;
  set_linear(rule, 1, {0});
  return rule;
}

ShardingRule rule_op(const Fill&, const RuleArgs& args) {
  return all_parallel(args);
}
ShardingRule rule_op(const Update&, const RuleArgs& args) {
  return all_parallel(args);
}

}  // namespace tpusim::ir
