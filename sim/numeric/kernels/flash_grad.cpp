// The backward pass of blocked attention: the scores are computed a second time.
//
// With P = exp(scale Q K^T - lse), D the row sums of dO * O:  dV += P^T dO,  dP = dO V^T,  dS = P * (dP - D) scale,
// dQ += dS K,  dK += dS^T Q. Five products a block. Source: Dao 2023, "FlashAttention-2", algorithm 2. Keys and values
// are shared by the q_group, whose gradients add up in the order of the group.
#include <cmath>

#include "sim/numeric/kernels/attention.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
struct Head {
  const T *q, *k, *v, *o, *lse, *grad;
  T *dq, *dk, *dv;
};

template <class T>
std::int64_t block_pair(const AttentionLayout& a, T scale, const Head<T>& head, std::int64_t first, std::int64_t rows,
                        std::int64_t key, std::int64_t columns) {
  const std::int64_t d = a.head_dim;
  using In = Eigen::Map<const Matrix<T>>;
  using Out = Eigen::Map<Matrix<T>>;
  const In q(head.q + first * d, rows, d), o(head.o + first * d, rows, d), grad(head.grad + first * d, rows, d);
  const In k(head.k + key * d, columns, d), v(head.v + key * d, columns, d);
  Out dq(head.dq + first * d, rows, d), dk(head.dk + key * d, columns, d), dv(head.dv + key * d, columns, d);
  Matrix<T> p, dp, part;
  std::int64_t flops = multiply<T>(q, k.transpose(), p);
  flops += multiply<T>(grad, v.transpose(), dp);
  for (std::int64_t row = 0; row < rows; ++row) {
    T delta = 0;
    for (std::int64_t i = 0; i < d; ++i) delta += grad(row, i) * o(row, i);
    const bool counts = first + row < a.valid_queries;
    for (std::int64_t column = 0; column < columns; ++column) {
      T& weight = p(row, column);
      weight = counts && a.sees(first + row, key + column) ? std::exp(scale * weight - head.lse[first + row]) : T(0);
      dp(row, column) = weight * (dp(row, column) - delta) * scale;
    }
  }
  flops += multiply<T>(p.transpose(), grad, part);
  dv += part;
  flops += multiply<T>(dp, k, part);
  dq += part;
  flops += multiply<T>(dp.transpose(), q, part);
  dk += part;
  return flops;
}

template <class T>
Evaluation flash_grad_as(const ir::FlashGrad& op, const Operands& x, const Types& types, const Location& where) {
  const AttentionLayout a = attention_layout(*x[0], *x[1], op.causal, op.block, op.query_axes, where);
  const auto ordered = [&](std::size_t i, const ir::Shape& to) {
    return permuted<T>(Read<T>(*x[i]).span(), x[i]->shape(), to);
  };
  const std::vector<T> q = ordered(0, a.q), k = ordered(1, a.k), v = ordered(2, a.k), o = ordered(3, a.q);
  const std::vector<T> lse = ordered(4, a.lse), grad = ordered(5, a.q);
  std::vector<T> dq(q.size(), T(0)), dk(k.size(), T(0)), dv(v.size(), T(0));
  Evaluation evaluation;
  for (std::int64_t pair = 0; pair < a.pairs; ++pair)
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t line = (pair * a.groups + group) * a.queries;
      const std::int64_t rows = line * a.head_dim, keys = pair * a.keys * a.head_dim;
      const Head<T> head{q.data() + rows,    k.data() + keys,  v.data() + keys,  o.data() + rows, lse.data() + line,
                         grad.data() + rows, dq.data() + rows, dk.data() + keys, dv.data() + keys};
      for (std::int64_t first = 0; first < a.queries; first += a.block) {
        const std::int64_t count = std::min(a.block, a.queries - first), end = a.key_end(first + count - 1);
        for (std::int64_t key = 0; key < end; key += a.block)
          evaluation.flops +=
              block_pair<T>(a, static_cast<T>(op.scale), head, first, count, key, std::min(a.block, a.keys - key));
      }
    }
  const auto result = [&](std::size_t i, const std::vector<T>& values, const ir::Shape& from) {
    evaluation.results.push_back(
        make_tensor<T>(types[i], permuted<T>(std::span<const T>(values), from, types[i].shape)));
  };
  result(0, dq, a.q);
  result(1, dk, a.k);
  result(2, dv, a.k);
  return evaluation;
}

}  // namespace

Evaluation flash_grad(const ir::FlashGrad& op, const Operands& operands, const Types& results, const Location& where) {
  return with_compute_type(is_wide(operands, results),
                           [&](auto zero) { return flash_grad_as<decltype(zero)>(op, operands, results, where); });
}

}  // namespace tpusim::numeric::kernels
