#include "sim/numeric/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tpusim::numeric {
namespace {

// The size is checked before anything is allocated, so that a shape beyond all memory is a named refusal.
std::size_t entries(const ir::TensorType& type) {
  const std::int64_t count = ir::element_count(type.shape);
  TPUSIM_CHECK(count >= 0, "a tensor of negative size");
  if (count > (std::int64_t{1} << 33)) capacity_error("the entries of a tensor that is really computed");
  return static_cast<std::size_t>(count);
}

}  // namespace

float round_to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return x;  // NaN: adding could turn it into infinity
  return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

Tensor::Tensor(const ir::TensorType& type) : type_(type) {
  switch (type.dtype) {
    case ir::DType::f64:
      data_ = std::vector<double>(entries(type));
      break;
    case ir::DType::f32:
    case ir::DType::bf16:
      data_ = std::vector<float>(entries(type));
      break;
    case ir::DType::i32:
      data_ = std::vector<std::int32_t>(entries(type));
      break;
  }
}

Tensor::Tensor(const ir::TensorType& type, const std::vector<double>& values) : Tensor(type) {
  TPUSIM_CHECK(static_cast<std::int64_t>(values.size()) == size(), "a tensor needs one value for each entry");
  for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
}

std::int64_t Tensor::size() const {
  return std::visit([](const auto& v) { return static_cast<std::int64_t>(v.size()); }, data_);
}

double Tensor::at(std::int64_t i) const {
  return std::visit([i](const auto& v) { return static_cast<double>(v.at(static_cast<std::size_t>(i))); }, data_);
}

void Tensor::set(std::int64_t i, double value) {
  const std::size_t at = static_cast<std::size_t>(i);
  switch (type_.dtype) {
    case ir::DType::f64:
      std::get<std::vector<double>>(data_).at(at) = value;
      break;
    case ir::DType::f32:
      std::get<std::vector<float>>(data_).at(at) = static_cast<float>(value);
      break;
    case ir::DType::bf16:
      std::get<std::vector<float>>(data_).at(at) = round_to_bf16(static_cast<float>(value));
      break;
    case ir::DType::i32:
      std::get<std::vector<std::int32_t>>(data_).at(at) = static_cast<std::int32_t>(value);
      break;
  }
}

std::vector<double> Tensor::to_doubles() const {
  return std::visit([](const auto& v) { return std::vector<double>(v.begin(), v.end()); }, data_);
}

template <class T>
std::span<T> Tensor::data() {
  auto* held = std::get_if<std::vector<T>>(&data_);
  TPUSIM_CHECK(held != nullptr, "a tensor is not held as this type: " + ir::to_string(type_));
  return {held->data(), held->size()};
}
template <class T>
std::span<const T> Tensor::data() const {
  const auto* held = std::get_if<std::vector<T>>(&data_);
  TPUSIM_CHECK(held != nullptr, "a tensor is not held as this type: " + ir::to_string(type_));
  return {held->data(), held->size()};
}
template std::span<double> Tensor::data<double>();
template std::span<float> Tensor::data<float>();
template std::span<std::int32_t> Tensor::data<std::int32_t>();
template std::span<const double> Tensor::data<double>() const;
template std::span<const float> Tensor::data<float>() const;
template std::span<const std::int32_t> Tensor::data<std::int32_t>() const;

Tensor Tensor::relabelled(const ir::TensorType& type) const {
  TPUSIM_CHECK(type.dtype == type_.dtype && ir::element_count(type.shape) == size(),
               "cannot relabel " + ir::to_string(type_) + " as " + ir::to_string(type));
  Tensor result = *this;
  result.type_ = type;
  return result;
}

void Tensor::round() {
  if (type_.dtype != ir::DType::bf16) return;
  for (float& x : std::get<std::vector<float>>(data_)) x = round_to_bf16(x);
}

double max_difference(const Tensor& a, const Tensor& b) {
  TPUSIM_CHECK(a.size() == b.size(), "tensors of different size are compared");
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    if (!(difference <= largest))
      largest = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return largest;
}

double max_magnitude(const Tensor& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.at(i)));
  return largest;
}

}  // namespace tpusim::numeric
