// Data types, logical axes, named dimensions and tensor types.
//
// Every dimension carries a logical axis (what it means) and a name that is unique in its tensor: the axis plus a
// variant, so that keys can have `key_seq` beside `seq`. Layout does not exist: two tensors with the same named
// dimensions are the same tensor, and einsum, broadcast and reduction go by names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/checked.hpp"
#include "sim/base/inline_vector.hpp"

namespace tpusim::ir {

enum class DType : std::uint8_t { f64, f32, bf16, i32 };
std::int64_t bytes_of(DType dtype);
std::string_view name_of(DType dtype);

enum class Axis : std::uint8_t {
  batch,
  seq,
  embed,
  kv_heads,
  q_group,
  head_dim,
  mlp,
  vocab,
  expert,
  height,
  width,
  channels,
  position,  // rows of a learned position table
};
constexpr int kAxisCount = 13;
std::string_view name_of(Axis axis);

// Where in the model a value stands; a sharding rule may name the place as well as the axis ("residual.seq").
enum class Place : std::uint8_t { none, residual, attention, mlp, logits };
constexpr int kPlaceCount = 5;
std::string_view name_of(Place place);

struct DimName {
  Axis axis = Axis::batch;
  std::uint8_t variant = 0;  // 0 plain, 1 "key_", 2 "alt_"
  constexpr auto operator<=>(const DimName&) const = default;
};
std::string to_string(DimName name);

struct Dim {
  DimName name;
  std::int64_t size = 1;   // padded size (global program) or the shard's size (per-device program)
  std::int64_t valid = 1;  // global size without padding; entries of global index >= valid are 0 in parameters and
                           // activations, and count nowhere
  constexpr bool operator==(const Dim&) const = default;
};

constexpr std::size_t kMaxRank = 6;
using Shape = InlineVector<Dim, kMaxRank>;
using DimNames = InlineVector<DimName, kMaxRank>;

// Index of the dimension called `name`, or -1.
int find_dim(const Shape& shape, DimName name);
std::int64_t element_count(const Shape& shape);  // overflow-checked

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Place place = Place::none;
  bool operator==(const TensorType&) const = default;
  std::int64_t bytes() const { return checked_mul(element_count(shape), bytes_of(dtype), "the bytes of a tensor"); }
};
std::string to_string(const TensorType& type);  // "bf16[batch 4, seq 128, embed 64]@residual"

}  // namespace tpusim::ir
