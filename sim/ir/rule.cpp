// Dispatch of sharding rules and what its parts share.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

std::int8_t position(const TensorType& type, DimName name) {
  return static_cast<std::int8_t>(find_dim(type.shape, name));
}

// Index of the factor that all_parallel made for `name`: the factors follow first appearance.
std::size_t index_of(DimName name, const RuleArgs& args) {
  InlineVector<DimName, 16> seen;
  for (const auto* list : {&args.operands, &args.results})
    for (const TensorType& type : *list)
      for (const Dim& d : type.shape) {
        if (seen.contains(d.name)) continue;
        if (d.name == name) return seen.size();
        seen.push_back(d.name);
      }
  TPUSIM_CHECK(false, "a sharding rule names the dim " + to_string(name) + " that the op lacks");
  return 0;
}

}  // namespace

Factor factor_of(FactorKind kind, DimName name, const RuleArgs& args) {
  Factor factor;
  factor.kind = kind;
  for (const TensorType& type : args.operands) factor.operand_dim.push_back(position(type, name));
  for (const TensorType& type : args.results) factor.result_dim.push_back(position(type, name));
  return factor;
}

ShardingRule all_parallel(const RuleArgs& args) {
  ShardingRule rule;
  InlineVector<DimName, 16> seen;
  for (const auto* list : {&args.operands, &args.results})
    for (const TensorType& type : *list)
      for (const Dim& d : type.shape) {
        if (seen.contains(d.name)) continue;
        seen.push_back(d.name);
        rule.factors.push_back(factor_of(FactorKind::parallel, d.name, args));
      }
  set_linear(rule, args.operands.size(), {});
  return rule;
}

Factor& factor_named(ShardingRule& rule, DimName name, const RuleArgs& args) {
  return rule.factors[index_of(name, args)];
}

void set_linear(ShardingRule& rule, std::size_t operands, std::initializer_list<std::size_t> linear) {
  rule.linear.clear();
  for (std::size_t i = 0; i < operands; ++i) rule.linear.push_back(false);
  for (const std::size_t i : linear) rule.linear[i] = true;
}

ShardingRule sharding_rule(const OpKind& kind, const std::vector<TensorType>& operands,
                           const std::vector<TensorType>& results) {
  const RuleArgs args{operands, results};
  return std::visit([&args](const auto& op) { return rule_op(op, args); }, kind);
}

}  // namespace tpusim::ir
