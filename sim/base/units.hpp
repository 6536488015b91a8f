// Strong units: bytes, seconds and FLOPs with their algebra, and integer simulated time.
//
// A Quantity<B, S, F> is a double tagged with integer exponents of byte, second and FLOP. Equal kinds add; products and
// quotients combine exponents; a quotient of equal kinds is a plain double. Misuse does not compile.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "sim/base/check.hpp"

namespace tpusim {

template <int B, int S, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(double value) : value_(value) {}
  constexpr double value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value_ / k); }

 private:
  double value_ = 0;
};

template <int B1, int S1, int F1, int B2, int S2, int F2>
constexpr auto operator*(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  if constexpr (B1 + B2 == 0 && S1 + S2 == 0 && F1 + F2 == 0)
    return a.value() * b.value();
  else
    return Quantity<B1 + B2, S1 + S2, F1 + F2>(a.value() * b.value());
}
template <int B1, int S1, int F1, int B2, int S2, int F2>
constexpr auto operator/(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  if constexpr (B1 == B2 && S1 == S2 && F1 == F2)
    return a.value() / b.value();
  else
    return Quantity<B1 - B2, S1 - S2, F1 - F2>(a.value() / b.value());
}

using Bytes = Quantity<1, 0, 0>;
using Seconds = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, -1, 0>;
using FlopsPerSecond = Quantity<0, -1, 1>;
using Intensity = Quantity<-1, 0, 1>;  // FLOPs per byte

[[noreturn]] void time_overflow();

// Simulated time in whole picoseconds, and differences of it. One engine run is at most 2^63 ps, about 106 days.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime from_ps(std::int64_t ps) {
    SimTime t;
    t.ps_ = ps;
    return t;
  }
  // Rounds to the nearest picosecond, once; a positive duration is at least 1 ps. Throws CapacityError beyond 106 days
  // and InternalError for NaN or a negative value.
  static SimTime from(Seconds s);
  constexpr std::int64_t ps() const { return ps_; }
  constexpr Seconds seconds() const { return Seconds(static_cast<double>(ps_) / 1e12); }
  constexpr auto operator<=>(const SimTime&) const = default;
  // All three are overflow-checked: CapacityError.
  friend constexpr SimTime operator+(SimTime a, SimTime b) {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a.ps_, b.ps_, &r)) time_overflow();
    return from_ps(r);
  }
  friend constexpr SimTime operator-(SimTime a, SimTime b) {
    std::int64_t r = 0;
    if (__builtin_sub_overflow(a.ps_, b.ps_, &r)) time_overflow();
    return from_ps(r);
  }
  friend constexpr SimTime operator*(SimTime a, std::int64_t k) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a.ps_, k, &r)) time_overflow();
    return from_ps(r);
  }
  constexpr SimTime& operator+=(SimTime o) { return *this = *this + o; }

 private:
  std::int64_t ps_ = 0;
};

constexpr SimTime max(SimTime a, SimTime b) {
  return a < b ? b : a;
}
constexpr SimTime min(SimTime a, SimTime b) {
  return a < b ? a : b;
}

}  // namespace tpusim
