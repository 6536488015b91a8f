// Overflow-checked integer arithmetic for sizes. All throw CapacityError naming `what` when the result leaves int64.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpusim {

[[noreturn]] void capacity_error(std::string_view what);

constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what = "a size") {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) capacity_error(what);
  return r;
}
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what = "a size") {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) capacity_error(what);
  return r;
}
// a / b rounded up, for b > 0; right for a near the bounds too.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b > 0 ? 1 : 0);
}
// The least multiple of `multiple` that is not below a.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return checked_mul(ceil_div(a, multiple), multiple, "a padded size");
}

}  // namespace tpusim
