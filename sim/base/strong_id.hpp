// An integer index with a type of its own, so that an op id is never taken for a value id.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tpusim {

template <class Tag>
struct StrongId {
  std::int32_t index = -1;
  constexpr StrongId() = default;
  explicit constexpr StrongId(std::int32_t i) : index(i) {}
  explicit constexpr StrongId(std::size_t i) : index(static_cast<std::int32_t>(i)) {}
  constexpr bool valid() const { return index >= 0; }
  constexpr auto operator<=>(const StrongId&) const = default;
};

}  // namespace tpusim

template <class Tag>
struct std::hash<tpusim::StrongId<Tag>> {
  std::size_t operator()(tpusim::StrongId<Tag> id) const { return std::hash<std::int32_t>()(id.index); }
};
