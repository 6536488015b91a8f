// A dense tensor in the memory of one simulated device: real numbers, row-major in the order of its shape's dims.
//
// f64 is stored as double, f32 as float, bf16 as float that is rounded to the nearest bf16 (ties to even) after every
// op, i32 as int32. A bf16 entry counts as two bytes, as on the machine, though it is held in four here.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "sim/ir/types.hpp"

namespace tpusim::numeric {

// The bf16 nearest to x, ties to even; infinities and NaN stay. Source: bfloat16 is the upper half of IEEE binary32.
float round_to_bf16(float x);

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const ir::TensorType& type);                            // zeros
  Tensor(const ir::TensorType& type, const std::vector<double>& values);  // each rounded to the dtype

  const ir::TensorType& type() const { return type_; }
  const ir::Shape& shape() const { return type_.shape; }
  ir::DType dtype() const { return type_.dtype; }
  std::int64_t size() const;                                                 // entries
  std::int64_t bytes() const { return size() * ir::bytes_of(type_.dtype); }  // of the real array

  // Entry `i` in row-major order, whatever the dtype. set() rounds to the dtype.
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  std::vector<double> to_doubles() const;

  // The array itself; T is double (f64), float (f32, bf16) or int32_t (i32), else InternalError.
  template <class T>
  std::span<T> data();
  template <class T>
  std::span<const T> data() const;

  // Same entries under another type of equal dtype and size (a rename, another place).
  Tensor relabelled(const ir::TensorType& type) const;
  // Rounds every entry to the dtype again; only bf16 changes. Kernels call it on what they wrote.
  void round();

  bool operator==(const Tensor&) const = default;

 private:
  ir::TensorType type_;
  std::variant<std::vector<double>, std::vector<float>, std::vector<std::int32_t>> data_;
};

// Largest |a - b| over all entries; infinite where one of two unequal entries is not a number. Sizes must agree.
double max_difference(const Tensor& a, const Tensor& b);
// Largest |entry|; 0 for an empty tensor.
double max_magnitude(const Tensor& a);

}  // namespace tpusim::numeric
