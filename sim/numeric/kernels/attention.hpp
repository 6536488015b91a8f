// What the two passes of blocked attention share: layouts and which blocks and scores count.
#pragma once

#include <Eigen/Core>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// q in the order [batch, kv_heads, q_group, seq, head_dim], k and v [batch, kv_heads, key_seq, head_dim], lse [batch,
// kv_heads, q_group, seq]: one head's rows lie together.
struct AttentionLayout {
  ir::Shape q, k, lse;
  std::int64_t pairs = 1, groups = 1, queries = 1, keys = 1, head_dim = 1;  // pairs: batch x kv_heads
  // Global position of the first query, and where queries and keys are padding.
  std::int64_t offset = 0, valid_queries = 1, valid_keys = 1;
  std::int64_t block = 1;
  bool causal = false, skip = false;

  // Whether a query sees a key (local indices). A padded query sees all valid keys or none; its row counts nowhere.
  bool sees(std::int64_t query, std::int64_t key) const {
    return key < valid_keys && (!causal || key <= offset + query);
  }
  // First key block that need not be computed for queries [first, last]: all its keys lie after all the queries. Only
  // where the queries are whole: where they are split, every device does the same work.
  std::int64_t key_end(std::int64_t last_query) const {
    return skip ? std::min(keys, (last_query / block + 1) * block) : keys;
  }
};

// result = lhs rhs; returns the operations done, from the sizes handed to the GEMM.
template <class T, class Lhs, class Rhs>
std::int64_t multiply(const Lhs& lhs, const Rhs& rhs, Matrix<T>& result) {
  result.noalias() = lhs * rhs;
  return 2 * lhs.rows() * lhs.cols() * rhs.cols();
}

AttentionLayout attention_layout(const Tensor& q, const Tensor& k, bool causal, std::int64_t block,
                                 const ir::MeshAxes& query_axes, const Location& where);

}  // namespace tpusim::numeric::kernels
