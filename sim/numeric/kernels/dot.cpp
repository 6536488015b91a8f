// Named einsum on Eigen's matrix product (GEMM), one call per batch entry.
#include <Eigen/Core>

#include "sim/numeric/kernels/einsum.hpp"
#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// result [m,n] = lhs [m,k] rhs [k,n]; returns the operations done, 2mnk (one multiplication and one addition a term).
template <class T>
std::int64_t gemm(const T* lhs, const T* rhs, T* result, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Eigen::Map<const Matrix<T>> a(lhs, m, k);
  const Eigen::Map<const Matrix<T>> b(rhs, k, n);
  Eigen::Map<Matrix<T>> c(result, m, n);
  c.noalias() = a * b;
  return 2 * m * n * k;
}

template <class T>
Evaluation dot_as(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& type) {
  const Einsum e = make_einsum(lhs.shape(), rhs.shape(), type.shape);
  const std::vector<T> a = permuted<T>(Read<T>(lhs).span(), lhs.shape(), e.lhs);
  const std::vector<T> b = permuted<T>(Read<T>(rhs).span(), rhs.shape(), e.rhs);
  std::vector<T> c(static_cast<std::size_t>(e.batch * e.m * e.n));
  Evaluation evaluation;
  for (std::int64_t i = 0; i < e.batch; ++i)
    evaluation.flops +=
        gemm<T>(a.data() + i * e.m * e.k, b.data() + i * e.k * e.n, c.data() + i * e.m * e.n, e.m, e.n, e.k);
  evaluation.results.push_back(make_tensor<T>(type, permuted<T>(std::span<const T>(c), e.result, type.shape)));
  return evaluation;
}

}  // namespace

Evaluation dot(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& type) {
  return with_compute_type(is_wide({&lhs, &rhs}, {type}),
                           [&](auto zero) { return dot_as<decltype(zero)>(lhs, rhs, type); });
}

}  // namespace tpusim::numeric::kernels
