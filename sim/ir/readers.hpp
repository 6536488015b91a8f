// The parts of the readers, one overload per op: internal to sim/ir. Each lives in <family>_<reader>.cpp.
#pragma once

#include "sim/ir/ops.hpp"

namespace tpusim::ir {

// --- shape inference: what ops.hpp's infer() does for one op ---------------------------------------------------------
struct InferArgs {
  const std::vector<TensorType>& operands;
  DType dtype;
  const Shape& like;
};
Inferred infer_op(const Dot&, const InferArgs&);
Inferred infer_op(const Map&, const InferArgs&);
Inferred infer_op(const Reduce&, const InferArgs&);
Inferred infer_op(const Rename&, const InferArgs&);
Inferred infer_op(const MaskPadding&, const InferArgs&);
Inferred infer_op(const MaskCausal&, const InferArgs&);
Inferred infer_op(const Rope&, const InferArgs&);
Inferred infer_op(const Lookup&, const InferArgs&);
Inferred infer_op(const LookupGrad&, const InferArgs&);
Inferred infer_op(const Pick&, const InferArgs&);
Inferred infer_op(const PickGrad&, const InferArgs&);
Inferred infer_op(const Flash&, const InferArgs&);
Inferred infer_op(const FlashGrad&, const InferArgs&);
Inferred infer_op(const Fill&, const InferArgs&);
Inferred infer_op(const Update&, const InferArgs&);
Inferred infer_op(const AllGather&, const InferArgs&);
Inferred infer_op(const ReduceScatter&, const InferArgs&);
Inferred infer_op(const AllReduce&, const InferArgs&);
Inferred infer_op(const Slice&, const InferArgs&);

Inferred failed(std::string error);
Inferred one_result(DType dtype, const Shape& shape);
bool is_float(DType dtype);
int map_operands(Elementwise kind);  // 1 or 2

// --- sharding rules --------------------------------------------------------------------------------------------------
struct RuleArgs {
  const std::vector<TensorType>& operands;
  const std::vector<TensorType>& results;
};
ShardingRule rule_op(const Dot&, const RuleArgs&);
ShardingRule rule_op(const Map&, const RuleArgs&);
ShardingRule rule_op(const Reduce&, const RuleArgs&);
ShardingRule rule_op(const Rename&, const RuleArgs&);
ShardingRule rule_op(const MaskPadding&, const RuleArgs&);
ShardingRule rule_op(const MaskCausal&, const RuleArgs&);
ShardingRule rule_op(const Rope&, const RuleArgs&);
ShardingRule rule_op(const Lookup&, const RuleArgs&);
ShardingRule rule_op(const LookupGrad&, const RuleArgs&);
ShardingRule rule_op(const Pick&, const RuleArgs&);
ShardingRule rule_op(const PickGrad&, const RuleArgs&);
ShardingRule rule_op(const Flash&, const RuleArgs&);
ShardingRule rule_op(const FlashGrad&, const RuleArgs&);
ShardingRule rule_op(const Fill&, const RuleArgs&);
ShardingRule rule_op(const Update&, const RuleArgs&);
ShardingRule rule_op(const AllGather&, const RuleArgs&);
ShardingRule rule_op(const ReduceScatter&, const RuleArgs&);
ShardingRule rule_op(const AllReduce&, const RuleArgs&);
ShardingRule rule_op(const Slice&, const RuleArgs&);

// A factor for the dim `name`, found by name in every operand and result.
Factor factor_of(FactorKind kind, DimName name, const RuleArgs& args);
// Every distinct dim of operands and results, operands first, each as `parallel`.
ShardingRule all_parallel(const RuleArgs& args);
// The factor of all_parallel's rule that stands for `name`; rule must have come from the same args.
Factor& factor_named(ShardingRule& rule, DimName name, const RuleArgs& args);
void set_linear(ShardingRule& rule, std::size_t operands, std::initializer_list<std::size_t> linear);

// --- cost ------------------------------------------------------------------------------------------------------------
OpCost dot_cost(const std::vector<TensorType>& operands, const TensorType& result);
OpCost flash_cost(const Flash& flash, const std::vector<TensorType>& operands);
OpCost flash_grad_cost(const FlashGrad& flash, const std::vector<TensorType>& operands);
double map_flops_per_entry(Elementwise kind);

// --- reverse mode ----------------------------------------------------------------------------------------------------
// What a vjp part sees of one op.
struct VjpArgs {
  const Op& op;
  const InlineVector<ValueId, 4>& dy;  // gradients of the results; the first is valid
  VjpContext& context;
  Builder& builder() const { return context.builder; }
  // Operand i and result i as backward reads them.
  ValueId x(std::size_t i) const { return context.again[static_cast<std::size_t>(op.operands[i].index)]; }
  ValueId y(std::size_t i) const { return context.again[static_cast<std::size_t>(op.results[i].index)]; }
  const Value& operand(std::size_t i) const { return context.program.value(op.operands[i]); }
  const Value& result(std::size_t i) const { return context.program.value(op.results[i]); }
};
using Gradients = InlineVector<ValueId, 8>;
Gradients vjp_op(const Dot&, const VjpArgs&);
Gradients vjp_op(const Map&, const VjpArgs&);
Gradients vjp_op(const Reduce&, const VjpArgs&);
Gradients vjp_op(const Rename&, const VjpArgs&);
Gradients vjp_op(const MaskPadding&, const VjpArgs&);
Gradients vjp_op(const MaskCausal&, const VjpArgs&);
Gradients vjp_op(const Rope&, const VjpArgs&);
Gradients vjp_op(const Lookup&, const VjpArgs&);
Gradients vjp_op(const Pick&, const VjpArgs&);
Gradients vjp_op(const Flash&, const VjpArgs&);

// Name, place and table that the gradient of `value` carries: those of the value, or "gradient" in table gradients.
Builder::As gradient_as(const Value& value);
// dtype of the gradient of `value`.
DType gradient_dtype(const Value& value, const VjpContext& context);
// dy with exactly the dims of `shape`, in its order: spread along the missing ones.
ValueId spread(Builder& builder, ValueId dy, const Shape& shape, Builder::As as);
// dy summed over the dims that `value` lacks, in its gradient's dtype.
ValueId fold_to(const VjpArgs& args, ValueId dy, const Value& value, const Shape& result_shape);
// a * b with the dims in the order of the operand that has more of them.
ValueId product(Builder& builder, ValueId a, ValueId b, Builder::As as);

}  // namespace tpusim::ir
