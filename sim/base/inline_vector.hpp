// A vector with a fixed capacity and no heap: for dimension lists, operand lists and axis lists.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "sim/base/check.hpp"

namespace tpusim {

template <class T, std::size_t Capacity>
class InlineVector {
 public:
  constexpr InlineVector() = default;
  constexpr InlineVector(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  constexpr void push_back(const T& item) {
    TPUSIM_CHECK(size_ < Capacity, "an inline vector is full");
    items_[size_++] = item;
  }
  constexpr void erase_at(std::size_t i) {
    TPUSIM_CHECK(i < size_, "erase beyond the end");
    std::move(items_.begin() + i + 1, items_.begin() + size_, items_.begin() + i);
    --size_;
  }
  constexpr void clear() { size_ = 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr T* begin() { return items_.data(); }
  constexpr T* end() { return items_.data() + size_; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }
  constexpr T& back() { return items_[size_ - 1]; }
  constexpr const T& back() const { return items_[size_ - 1]; }
  constexpr bool contains(const T& item) const { return std::find(begin(), end(), item) != end(); }
  friend constexpr bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<T, Capacity> items_{};
  std::uint32_t size_ = 0;
};

}  // namespace tpusim
