#include "sim/ir/types.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/check.hpp"

namespace tpusim::ir {

std::int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::i32:
      return 4;
  }
  internal_error(__FILE__, __LINE__, "dtype", "a data type without a size");
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
  }
  internal_error(__FILE__, __LINE__, "dtype", "a data type without a name");
}

std::string_view name_of(Axis axis) {
  static constexpr std::array<std::string_view, kAxisCount> kNames = {
      "batch", "seq",    "embed",  "kv_heads", "q_group",  "head_dim", "mlp",
      "vocab", "expert", "height", "width",    "channels", "position"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Place place) {
  static constexpr std::array<std::string_view, kPlaceCount> kNames = {"none", "residual", "attention", "mlp",
                                                                       "logits"};
  return kNames[static_cast<std::size_t>(place)];
}

std::string to_string(DimName name) {
  static constexpr std::array<std::string_view, 3> kVariants = {"", "key_", "alt_"};
  TPUSIM_CHECK(name.variant < kVariants.size(), fmt::format("dimension variant {}", name.variant));
  return fmt::format("{}{}", kVariants[name.variant], name_of(name.axis));
}

int find_dim(const Shape& shape, DimName name) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i].name == name) return static_cast<int>(i);
  return -1;
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t n = 1;
  for (const Dim& d : shape) n = checked_mul(n, d.size, "the number of entries of a tensor");
  return n;
}

std::string to_string(const TensorType& type) {
  std::string out = fmt::format("{}[", name_of(type.dtype));
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const Dim& d = type.shape[i];
    if (i > 0) out += ", ";
    out += fmt::format("{} {}", to_string(d.name), d.size);
    if (d.valid != d.size) out += fmt::format(" of valid {}", d.valid);
  }
  out += "]";
  if (type.place != Place::none) out += fmt::format("@{}", name_of(type.place));
  return out;
}

}  // namespace tpusim::ir
