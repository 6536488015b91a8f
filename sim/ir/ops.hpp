// What each op means to each reader. Every function is one std::visit over the closed variant; the parts live in
// sim/ir/<family>_<reader>.cpp. A missing op does not compile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/program.hpp"

namespace tpusim::ir {

std::string_view phase_name(Phase phase);      // "forward", "recompute", "backward", "update"
std::string_view op_name(const OpKind& kind);  // "dot", "map.silu", "all_gather"

// --- shape inference -------------------------------------------------------------------------------------------------
struct Inferred {
  InlineVector<TensorType, 4> results;
  std::string error;  // "" or what rule is broken, beginning with its number ("dot.c2: ...")
};
// `dtype`: result dtype of dot, cast, fill, reduce, lookup_grad; other ops take their operand's. `like`: the result's
// shape for fill; the names and order of the result's dims for dot (sizes come from the operands); the result's shape
// for collectives and slices (the ir does not know the mesh: they are checked, not inferred). Places of results are
// none.
Inferred infer(const OpKind& kind, const std::vector<TensorType>& operands, DType dtype, const Shape& like);
Inferred infer(const OpKind& kind, const std::vector<TensorType>& operands, DType dtype);

// --- sharding rule (read by sim/spmd) --------------------------------------------------------------------------------
enum class FactorKind : std::uint8_t {
  parallel,    // in operands and results, or in the result alone (each device makes its own entries)
  contracted,  // in both operands of a product, not in the result: split on both => partial sum
  sum,   // in operands, reducible: split => partial sum in every result whose result_dim is -1 (FlashGrad's q_group
         // is in dq, where it stays split, and not in dk and dv, which become partial)
  max,   // likewise, partial max
  whole  // must not be split
};
struct Factor {
  FactorKind kind = FactorKind::parallel;
  // Position of the factor's dim in each operand and each result, -1 where it has none.
  InlineVector<std::int8_t, 8> operand_dim;
  InlineVector<std::int8_t, 4> result_dim;
};
struct ShardingRule {
  InlineVector<Factor, 16> factors;
  // Linear in operand i alone, the others held: a partial sum of it passes to the result unreduced when the others are
  // whole over those axes (add/sub: when all operands are partial over the same axes).
  InlineVector<bool, 8> linear;
  bool additive = false;  // add, sub: partial only if every operand is partial over the same axes
};
ShardingRule sharding_rule(const OpKind& kind, const std::vector<TensorType>& operands,
                           const std::vector<TensorType>& results);

// How an op may be split; `sharding_rule` unless a test puts another in its place, to see that verification notices.
using ShardingRuleOf = ShardingRule (*)(const OpKind& kind, const std::vector<TensorType>& operands,
                                        const std::vector<TensorType>& results);

// --- cost ------------------------------------------------------------------------------------------------------------
struct MatrixProduct {  // batch x [m,k] x [k,n]
  std::int64_t batch = 1, m = 1, n = 1, k = 1, count = 1;
};
struct OpCost {
  double model_flops = 0;  // matrix products only, attention in full, padding and recomputation excluded by the caller
  double executed_flops = 0;                 // what a kernel really does on the matrix unit; integral
  double vector_flops = 0;                   // elementwise operations on the vector unit
  InlineVector<MatrixProduct, 12> products;  // sum of 2*count*batch*m*n*k = executed_flops
};
// From the sizes of the types as given (global or per device).
OpCost cost(const OpKind& kind, const std::vector<TensorType>& operands, const std::vector<TensorType>& results);

// --- reverse mode ----------------------------------------------------------------------------------------------------
// Appends the backward ops of `op` to the builder's program: given the gradients of its results (invalid = zero),
// returns the gradient of each operand (invalid = none). A gradient may lack dims of its value: it is then the same
// along them (spread by differentiate where it must be whole). Gradients of table parameters have dtype gradient_dtype.
// Maxima (reduce.max) are constants: they only shift softmax, whose gradient does not depend on the shift. `again` maps
// a forward value to the one to use in backward (itself when saved, else its recomputed copy).
struct VjpContext {
  Builder& builder;
  const Program& program;
  const std::vector<ValueId>& again;  // by forward value index
  DType gradient_dtype;               // of parameter gradients
};
InlineVector<ValueId, 8> vjp(const Op& op, const InlineVector<ValueId, 4>& result_gradients, VjpContext& context);

// --- whole programs --------------------------------------------------------------------------------------------------
enum class Remat : std::uint8_t { none, selective, full };
// How one op is differentiated; `vjp` unless a test puts another in its place, to see that verification notices.
using Vjp = InlineVector<ValueId, 8> (*)(const Op& op, const InlineVector<ValueId, 4>& result_gradients,
                                         VjpContext& context);
struct DifferentiateOptions {
  Remat remat = Remat::none;  // none: save what backward reads (of elementwise chains the cheapest cut);
                              // selective: attention's score part is recomputed; full: only x_in is kept
  DType gradient_dtype = DType::f32;
  Vjp vjp = &ir::vjp;
};
// Appends phases recompute and backward; sets dx_out, dx_in, Parameter::gradient. Parameters are never "saved": they
// are read (and cast, and gathered) again.
void differentiate(Program& program, const DifferentiateOptions& options);
// Forward values that backward reads: kept per (layer, microbatch).
std::vector<ValueId> saved_values(const Program& program);

// Every numbered rule that the program breaks, each as "rule: op path: what was expected and found"; empty when it is
// sound.
std::vector<std::string> verify(const Program& program);

// --- optimizer -------------------------------------------------------------------------------------------------------
struct OptimizerSettings {
  Optimizer kind = Optimizer::adamw;
  double learning_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8 /* adafactor: added to the squared gradient */,
         weight_decay = 0.1, momentum = 0.9;
  double clip_norm = 0;  // 0: no clipping
};
struct StateSlot {         // one optimizer slot of a parameter
  std::string_view label;  // "m", "v", "row", "column", "master"
  TensorType type;
  bool factored = false;  // lacks some dims of the parameter
};
std::vector<StateSlot> optimizer_slots(const OptimizerSettings& settings, const Parameter& parameter,
                                       const TensorType& type, DType master_dtype);
// A program of one parameter's update: inputs p (table parameters), g (gradients), slots (optimizer), scalars gscale,
// step; outputs new p and new slots. All ops in phase update.
struct UpdateProgram {
  Program program;
  ValueId parameter, gradient, gscale, step;
  std::vector<ValueId> slots;  // old values
  ValueId new_parameter;
  std::vector<ValueId> new_slots;
};
UpdateProgram update_program(const OptimizerSettings& settings, const Parameter& parameter, const TensorType& type,
                             DType gradient_dtype, DType master_dtype);

}  // namespace tpusim::ir
