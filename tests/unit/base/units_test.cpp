#include "sim/base/units.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <limits>
#include <type_traits>

using namespace tpusim;

namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept CanMultiply = requires(A a, B b) {
  a* b;
};

// What must compile, and to which type; what must not (tests/compile_fail drives the compiler over such a line too).
static_assert(std::is_same_v<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::is_same_v<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Flops(1) / Bytes(1)), Intensity>);
static_assert(std::is_same_v<decltype(Intensity(1) * BytesPerSecond(1)), FlopsPerSecond>);
static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);
static_assert(std::is_same_v<decltype(Seconds(1) * (Bytes(1) / Seconds(1)) / Bytes(1)), double>);
static_assert(CanAdd<Bytes, Bytes>);
static_assert(!CanAdd<Bytes, Seconds>);
static_assert(!CanAdd<Bytes, double>);
static_assert(!CanAdd<BytesPerSecond, FlopsPerSecond>);
static_assert(!CanCompare<Bytes, Seconds>);
static_assert(!CanCompare<Bytes, double>);
static_assert(!std::is_convertible_v<double, Bytes>);
static_assert(!std::is_convertible_v<Bytes, double>);
static_assert(!CanAdd<SimTime, Seconds>);
static_assert(!CanMultiply<SimTime, SimTime>);
static_assert(sizeof(Bytes) == sizeof(double) && sizeof(SimTime) == sizeof(std::int64_t));

}  // namespace

TEST_CASE("a size over a rate is the time it takes") {
  // 16 GiB at 819 GB/s: 17179869184 / 819e9.
  CHECK((Bytes(0x1p34) / BytesPerSecond(819e9)).value() == 17179869184.0 / 819e9);
}

TEST_CASE("equal kinds add, subtract, scale and compare") {
  Bytes b(3);
  b += Bytes(4);
  b -= Bytes(2);
  CHECK(b == Bytes(5));
  CHECK(b + Bytes(1) == Bytes(6));
  CHECK(b - Bytes(1) == Bytes(4));
  CHECK(2 * b == Bytes(10));
  CHECK(b * 2 == Bytes(10));
  CHECK(b / 2 == Bytes(2.5));
  CHECK(Bytes(1) < Bytes(2));
  CHECK(Bytes(10) / Bytes(4) == 2.5);
}

TEST_CASE("seconds become the nearest whole picosecond") {
  CHECK(SimTime::from(Seconds(0)).ps() == 0);
  CHECK(SimTime::from(Seconds(1e-12)).ps() == 1);
  CHECK(SimTime::from(Seconds(2.4e-12)).ps() == 2);
  CHECK(SimTime::from(Seconds(2.6e-12)).ps() == 3);
  // 0.323 is not a binary fraction; 0.323e12 rounds to the whole number all the same.
  CHECK(SimTime::from(Seconds(0.323)).ps() == 323'000'000'000);
  CHECK(SimTime::from(Seconds(3000)).ps() == 3'000'000'000'000'000);
}

TEST_CASE("a positive duration is at least one picosecond") {
  CHECK(SimTime::from(Seconds(1e-30)).ps() == 1);
  CHECK(SimTime::from(Seconds(0.4e-12)).ps() == 1);
  CHECK(SimTime::from(Seconds(std::numeric_limits<double>::denorm_min())).ps() == 1);
}

TEST_CASE("picoseconds give back the double nearest to the same decimal time") {
  CHECK(SimTime::from_ps(323'000'000'000).seconds().value() == 0.323);
  CHECK(SimTime::from_ps(10'000'000).seconds().value() == 1e-5);
  CHECK(SimTime::from_ps(1).seconds().value() == 1e-12);
}

TEST_CASE("a time beyond 106 days is refused and never wraps around") {
  // 2^63 ps = 9223372.04 s = 106.75 days.
  CHECK(SimTime::from(Seconds(9.1e6)).ps() == 9'100'000'000'000'000'000);
  CHECK_THROWS_AS(SimTime::from(Seconds(9.3e6)), CapacityError);
  CHECK_THROWS_AS(SimTime::from(Seconds(1e300)), CapacityError);
  CHECK_THROWS_AS(SimTime::from(Seconds(std::numeric_limits<double>::infinity())), CapacityError);
  const SimTime most = SimTime::from_ps(std::numeric_limits<std::int64_t>::max());
  CHECK(most + SimTime() == most);
  CHECK_THROWS_AS(most + SimTime::from_ps(1), CapacityError);
  CHECK_THROWS_AS(SimTime::from_ps(std::numeric_limits<std::int64_t>::min()) - SimTime::from_ps(1), CapacityError);
  CHECK_THROWS_AS(SimTime::from_ps(std::int64_t{1} << 62) * 2, CapacityError);
  SimTime sum = most;
  CHECK_THROWS_AS(sum += SimTime::from_ps(1), CapacityError);
  CHECK(sum == most);
}

TEST_CASE("a negative duration and not-a-number are faults of tpusim") {
  CHECK_THROWS_AS(SimTime::from(Seconds(-1e-12)), InternalError);
  CHECK_THROWS_AS(SimTime::from(Seconds(std::numeric_limits<double>::quiet_NaN())), InternalError);
}

TEST_CASE("times order, add, subtract and repeat in whole picoseconds") {
  const SimTime a = SimTime::from_ps(5);
  const SimTime b = SimTime::from_ps(7);
  CHECK(a < b);
  CHECK((a + b).ps() == 12);
  CHECK((a - b).ps() == -2);
  CHECK((a * 1'000'000'007).ps() == 5'000'000'035);
  CHECK(max(a, b) == b);
  CHECK(min(a, b) == a);
}
