#include "sim/numeric/walk.hpp"

#include <algorithm>

namespace tpusim::numeric {

Strides strides_over(const ir::Shape& over, const ir::Shape& of) {
  std::array<std::int64_t, ir::kMaxRank> own{};
  std::int64_t stride = 1;
  for (std::size_t d = of.size(); d-- > 0;) {
    own[d] = stride;
    stride *= of[d].size;
  }
  Strides result;
  for (const ir::Dim& dim : over) {
    const int at = ir::find_dim(of, dim.name);
    result.push_back(at < 0 ? 0 : own[static_cast<std::size_t>(at)]);
  }
  return result;
}

template <class T>
Tensor make_tensor(const ir::TensorType& type, std::span<const T> values) {
  Tensor result(type);
  TPUSIM_CHECK(result.size() == static_cast<std::int64_t>(values.size()),
               "a kernel made the wrong number of entries for " + ir::to_string(type));
  const auto fill = [&](auto zero) {
    using Held = decltype(zero);
    std::span<Held> out = result.data<Held>();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<Held>(values[i]);
  };
  switch (type.dtype) {
    case ir::DType::f64:
      fill(double{});
      break;
    case ir::DType::f32:
    case ir::DType::bf16:
      fill(float{});
      break;
    case ir::DType::i32:
      fill(std::int32_t{});
      break;
  }
  result.round();
  return result;
}
template Tensor make_tensor<double>(const ir::TensorType&, std::span<const double>);
template Tensor make_tensor<float>(const ir::TensorType&, std::span<const float>);

bool is_wide(const std::vector<const Tensor*>& operands, const std::vector<ir::TensorType>& results) {
  return std::any_of(operands.begin(), operands.end(), [](const Tensor* t) { return t->dtype() == ir::DType::f64; }) ||
         std::any_of(results.begin(), results.end(), [](const ir::TensorType& t) { return t.dtype == ir::DType::f64; });
}

}  // namespace tpusim::numeric
