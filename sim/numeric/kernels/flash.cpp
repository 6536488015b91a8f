// Attention in blocks with an online softmax.
//
// For a block of queries, key blocks come one after the other; m is the running row maximum of the scores S = scale Q
// K^T, l the running sum of exp(S - m) and A the running sum of exp(S - m) V. A new block with maximum m' rescales l
// and A by exp(m - m'). In the end o = A / l and lse = m + log l. Source: Dao 2023, "FlashAttention-2", algorithm 1.
// Accumulators stay in f32 (f64 for f64); o is rounded once.
#include <cmath>
#include <limits>

#include "sim/numeric/kernels/attention.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
struct Head {
  const T *q, *k, *v;
  T *o, *lse;
};

// One block of `rows` queries beginning at `first`. Returns the operations of its matrix products.
template <class T>
std::int64_t query_block(const AttentionLayout& a, T scale, const Head<T>& head, std::int64_t first,
                         std::int64_t rows) {
  const std::int64_t d = a.head_dim;
  const T lowest = -std::numeric_limits<T>::infinity();
  const Eigen::Map<const Matrix<T>> q(head.q + first * d, rows, d);
  Matrix<T> sum = Matrix<T>::Zero(rows, d), scores, weighted;
  std::vector<T> maximum(static_cast<std::size_t>(rows), lowest), total(static_cast<std::size_t>(rows), T(0));
  std::int64_t flops = 0;
  const std::int64_t end = a.key_end(first + rows - 1);
  for (std::int64_t key = 0; key < end; key += a.block) {
    const std::int64_t columns = std::min(a.block, a.keys - key);
    const Eigen::Map<const Matrix<T>> k(head.k + key * d, columns, d), v(head.v + key * d, columns, d);
    flops += multiply<T>(q, k.transpose(), scores);
    for (std::int64_t row = 0; row < rows; ++row) {
      T top = maximum[static_cast<std::size_t>(row)];
      for (std::int64_t column = 0; column < columns; ++column) {
        T& s = scores(row, column);
        s = a.sees(first + row, key + column) ? scale * s : lowest;
        if (s > top) top = s;
      }
      if (top == lowest) {  // nothing seen yet: exp(-inf + inf) would be NaN
        scores.row(row).setZero();
        continue;
      }
      const T keep = std::exp(maximum[static_cast<std::size_t>(row)] - top);
      T& l = total[static_cast<std::size_t>(row)];
      l *= keep;
      sum.row(row) *= keep;
      for (std::int64_t column = 0; column < columns; ++column) {
        T& s = scores(row, column);
        s = std::exp(s - top);
        l += s;
      }
      maximum[static_cast<std::size_t>(row)] = top;
    }
    flops += multiply<T>(scores, v, weighted);
    sum += weighted;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const T l = total[static_cast<std::size_t>(row)];
    const bool counts = l > 0 && first + row < a.valid_queries;  // padded rows stay 0
    for (std::int64_t i = 0; i < d; ++i) head.o[(first + row) * d + i] = counts ? sum(row, i) / l : T(0);
    head.lse[first + row] = counts ? maximum[static_cast<std::size_t>(row)] + std::log(l) : T(0);
  }
  return flops;
}

template <class T>
Evaluation flash_as(const ir::Flash& op, const Operands& x, const Types& types, const Location& where) {
  const AttentionLayout a = attention_layout(*x[0], *x[1], op.causal, op.block, op.query_axes, where);
  const std::vector<T> q = permuted<T>(Read<T>(*x[0]).span(), x[0]->shape(), a.q);
  const std::vector<T> k = permuted<T>(Read<T>(*x[1]).span(), x[1]->shape(), a.k);
  const std::vector<T> v = permuted<T>(Read<T>(*x[2]).span(), x[2]->shape(), a.k);
  std::vector<T> o(q.size()), lse(static_cast<std::size_t>(a.pairs * a.groups * a.queries));
  Evaluation evaluation;
  for (std::int64_t pair = 0; pair < a.pairs; ++pair)
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t row = (pair * a.groups + group) * a.queries, keys = pair * a.keys * a.head_dim;
      const Head<T> head{q.data() + row * a.head_dim, k.data() + keys, v.data() + keys, o.data() + row * a.head_dim,
                         lse.data() + row};
      for (std::int64_t first = 0; first < a.queries; first += a.block)
        evaluation.flops +=
            query_block<T>(a, static_cast<T>(op.scale), head, first, std::min(a.block, a.queries - first));
    }
  evaluation.results.push_back(make_tensor<T>(types[0], permuted<T>(std::span<const T>(o), a.q, types[0].shape)));
  evaluation.results.push_back(make_tensor<T>(types[1], permuted<T>(std::span<const T>(lse), a.lse, types[1].shape)));
  return evaluation;
}

}  // namespace

Evaluation flash(const ir::Flash& op, const Operands& operands, const Types& results, const Location& where) {
  return with_compute_type(is_wide(operands, results),
                           [&](auto zero) { return flash_as<decltype(zero)>(op, operands, results, where); });
}

}  // namespace tpusim::numeric::kernels
