// Walking over named dimensions: strides of one shape in the order of another, and loops over all rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/numeric/tensor.hpp"

namespace tpusim::numeric {

using Strides = InlineVector<std::int64_t, ir::kMaxRank>;

// For each dim of `over` its row-major stride in `of`; 0 where `of` lacks it (it is broadcast).
Strides strides_over(const ir::Shape& over, const ir::Shape& of);

// Calls f(first, count) for each row of `shape` (its last dim), in row-major order: `first[j]` is the offset of the
// row's first entry under strides[j]; the row's entries lie strides[j].back() apart. Rank 0 is one row of one entry.
template <std::size_t N, class F>
void for_each_row(const ir::Shape& shape, const std::array<Strides, N>& strides, F&& f) {
  std::array<std::int64_t, N> first{};
  for (const ir::Dim& dim : shape)
    if (dim.size == 0) return;
  if (shape.empty()) return f(first, std::int64_t{1});
  const std::size_t outer = shape.size() - 1;
  std::array<std::int64_t, ir::kMaxRank> at{};
  for (;;) {
    f(first, shape[outer].size);
    std::size_t d = outer;
    while (d > 0) {
      --d;
      for (std::size_t j = 0; j < N; ++j) first[j] += strides[j][d];
      if (++at[d] < shape[d].size) break;
      for (std::size_t j = 0; j < N; ++j) first[j] -= strides[j][d] * shape[d].size;
      at[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}
inline std::int64_t inner_stride(const Strides& strides) {
  return strides.empty() ? 0 : strides.back();
}

// The entries of a tensor of shape `from`, in row-major order of `to` (same dims, another order).
template <class T>
std::vector<T> permuted(std::span<const T> x, const ir::Shape& from, const ir::Shape& to) {
  std::vector<T> result(x.size());
  std::size_t next = 0;
  const std::array<Strides, 1> strides{strides_over(to, from)};
  const std::int64_t step = inner_stride(strides[0]);
  for_each_row(to, strides, [&](const std::array<std::int64_t, 1>& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) result[next++] = x[static_cast<std::size_t>(first[0] + i * step)];
  });
  return result;
}

// A tensor's entries as T, without a copy where they are held so.
template <class T>
class Read {
 public:
  explicit Read(const Tensor& tensor) {
    const bool same = std::is_same_v<T, double> ? tensor.dtype() == ir::DType::f64
                                                : tensor.dtype() == ir::DType::f32 || tensor.dtype() == ir::DType::bf16;
    if (same) {
      view_ = tensor.data<T>();
      return;
    }
    copy_.reserve(static_cast<std::size_t>(tensor.size()));
    for (std::int64_t i = 0; i < tensor.size(); ++i) copy_.push_back(static_cast<T>(tensor.at(i)));
    view_ = copy_;
  }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;
  std::span<const T> span() const { return view_; }
  const T& operator[](std::int64_t i) const { return view_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<T> copy_;
  std::span<const T> view_;
};

// A tensor of `type` from entries computed as T, rounded once to the dtype.
template <class T>
Tensor make_tensor(const ir::TensorType& type, std::span<const T> values);

// f(T{}) with T = double when any of the types is f64, else float: the type that a kernel computes in.
template <class F>
auto with_compute_type(bool wide, F&& f) {
  return wide ? f(double{}) : f(float{});
}
bool is_wide(const std::vector<const Tensor*>& operands, const std::vector<ir::TensorType>& results);

}  // namespace tpusim::numeric
