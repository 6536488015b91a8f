// What the tests of every op share: tensors by hand, evaluation with inferred types, FLOP counts, and gradients by
// finite differences.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/ir/ops.hpp"
#include "sim/numeric/kernels.hpp"

namespace tpusim::ops_test {

constexpr ir::DimName kBatch{ir::Axis::batch, 0}, kSeq{ir::Axis::seq, 0}, kKeySeq{ir::Axis::seq, 1};
constexpr ir::DimName kEmbed{ir::Axis::embed, 0}, kMlp{ir::Axis::mlp, 0}, kVocab{ir::Axis::vocab, 0};
constexpr ir::DimName kHeads{ir::Axis::kv_heads, 0}, kGroup{ir::Axis::q_group, 0}, kWidth{ir::Axis::head_dim, 0};

ir::Dim dim(ir::DimName name, std::int64_t size);
ir::Dim padded(ir::DimName name, std::int64_t size, std::int64_t valid);
ir::TensorType type(ir::DType dtype, const ir::Shape& shape);
numeric::Tensor tensor(const ir::Shape& shape, const std::vector<double>& values, ir::DType dtype = ir::DType::f64);
// Uniform in [-1, 1), or integers in [-4, 4].
numeric::Tensor uniform(const ir::Shape& shape, std::uint64_t seed, ir::DType dtype = ir::DType::f64);
numeric::Tensor integers(const ir::Shape& shape, std::uint64_t seed, ir::DType dtype = ir::DType::f64);

// Result types by shape inference (fails the test on an error), then the kernel; also checks that the FLOPs counted by
// the kernel are the executed FLOPs of ir::cost, and that cost's products sum to them.
std::vector<numeric::Tensor> evaluate(const ir::OpKind& kind, const std::vector<numeric::Tensor>& operands,
                                      ir::DType dtype = ir::DType::f64, const ir::Shape& like = {},
                                      const numeric::Location& where = {});

// The vector-Jacobian product of `operand` against central differences of sum(weight * result 0), weights random. In
// f64 with step h = 1e-5 the truncation error is about h^2 = 1e-10 and rounding eps/h = 1e-11, both relative to values
// near 1: the tolerance 1e-7 is far above both, and far below any wrong derivative.
void check_gradient(const ir::OpKind& kind, const std::vector<numeric::Tensor>& operands, std::size_t operand,
                    const ir::Shape& like = {});

// Compares within `tolerance`, absolute.
void check_close(const numeric::Tensor& a, const std::vector<double>& expected, double tolerance);

}  // namespace tpusim::ops_test
