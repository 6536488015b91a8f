// A named einsum as a batch of matrix products: which dims are batch, rows, columns and contracted.
#pragma once

#include "sim/numeric/walk.hpp"

namespace tpusim::numeric::kernels {

// lhs in the order [batch, rows, contracted], rhs [batch, contracted, columns], result [batch, rows, columns].
struct Einsum {
  ir::Shape lhs, rhs, result;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};
// Batch, row and column dims in the order of `result`, contracted ones in the order of lhs. InternalError when a dim of
// one operand alone is missing in the result, or sizes disagree.
Einsum make_einsum(const ir::Shape& lhs, const ir::Shape& rhs, const ir::Shape& result);

}  // namespace tpusim::numeric::kernels
