// The same einsum by three loops; it counts what it does, so that the FLOP rule is checked by counting.
#include "sim/numeric/kernels/einsum.hpp"
#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric {
namespace {

template <class T>
Evaluation naive(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& type) {
  const kernels::Einsum e = kernels::make_einsum(lhs.shape(), rhs.shape(), type.shape);
  const std::vector<T> a = permuted<T>(Read<T>(lhs).span(), lhs.shape(), e.lhs);
  const std::vector<T> b = permuted<T>(Read<T>(rhs).span(), rhs.shape(), e.rhs);
  std::vector<T> c(static_cast<std::size_t>(e.batch * e.m * e.n));
  Evaluation evaluation;
  for (std::int64_t i = 0; i < e.batch; ++i)
    for (std::int64_t row = 0; row < e.m; ++row)
      for (std::int64_t column = 0; column < e.n; ++column) {
        T sum = 0;
        for (std::int64_t term = 0; term < e.k; ++term) {
          sum += a[static_cast<std::size_t>((i * e.m + row) * e.k + term)] *
                 b[static_cast<std::size_t>((i * e.k + term) * e.n + column)];
          evaluation.flops += 2;
        }
        c[static_cast<std::size_t>((i * e.m + row) * e.n + column)] = sum;
      }
  evaluation.results.push_back(make_tensor<T>(type, permuted<T>(std::span<const T>(c), e.result, type.shape)));
  return evaluation;
}

}  // namespace

Evaluation evaluate_naive_dot(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& result) {
  return with_compute_type(is_wide({&lhs, &rhs}, {result}),
                           [&](auto zero) { return naive<decltype(zero)>(lhs, rhs, result); });
}

}  // namespace tpusim::numeric
