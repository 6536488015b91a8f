// What each op computes: the kernels behind the numeric reader.
//
// evaluate() is one std::visit over the closed set of ops; the kernels live in kernels/<family>.cpp. Every sum runs in
// a fixed order on one thread, so a result depends on the operands alone. Results are rounded to their dtype once per
// op; sums of products and reductions of f32 and bf16 operands are kept in f32 inside a kernel, those of f64 in f64.
#pragma once

#include <string>
#include <vector>

#include "sim/numeric/tensor.hpp"
#include "sim/plan/step_program.hpp"

namespace tpusim::numeric {

// Where the shards of a call stand: ops that read a global position (masks, rotary, lookups, slices) ask for the first
// global index of this device's shard. Without a mesh everything is whole and begins at 0.
struct Location {
  const spmd::Mesh* mesh = nullptr;
  std::int64_t device = 0;
  // Global index of the first entry of a dim of `local_size` entries that `axes` split.
  std::int64_t offset(const ir::MeshAxes& axes, std::int64_t local_size) const;
};

struct Evaluation {
  std::vector<Tensor> results;
  // Floating-point operations of matrix products, 2mnk for each product really handed to the GEMM.
  std::int64_t flops = 0;
};

// Results have `result_types` (dtypes and shards). A collective is not a kernel: InternalError, as for operands that do
// not fit.
Evaluation evaluate(const ir::OpKind& kind, const std::vector<const Tensor*>& operands,
                    const std::vector<ir::TensorType>& result_types, const Location& where);

// A dot by three plain loops, which counts every multiplication and addition as it does it. For tests of the FLOP rule.
Evaluation evaluate_naive_dot(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& result);

}  // namespace tpusim::numeric
