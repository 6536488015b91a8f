#include "sim/base/checked.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "sim/base/check.hpp"

using namespace tpusim;

namespace {
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
static_assert(checked_mul(6, 7) == 42 && round_up(9, 8) == 16);
}  // namespace

TEST_CASE("products and sums of sizes are exact up to the last representable one") {
  CHECK(checked_mul(std::int64_t{1} << 31, std::int64_t{1} << 31) == std::int64_t{1} << 62);
  CHECK(checked_mul(kMost, 1) == kMost);
  CHECK(checked_mul(kMost, 0) == 0);
  CHECK(checked_add(kMost - 1, 1) == kMost);
}

TEST_CASE("a size that leaves 64 bits is refused with its name") {
  CHECK_THROWS_AS(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), CapacityError);
  CHECK_THROWS_AS(checked_add(kMost, 1), CapacityError);
  CHECK_THROWS_WITH(checked_mul(kMost, 2, "the size of tensor w"), "the size of tensor w does not fit in 64 bits");
}

TEST_CASE("division rounds up and is right next to the bounds") {
  CHECK(ceil_div(0, 8) == 0);
  CHECK(ceil_div(1, 8) == 1);
  CHECK(ceil_div(8, 8) == 1);
  CHECK(ceil_div(9, 8) == 2);
  // The familiar (a + b - 1) / b would overflow here. 2^63 - 1 = 2 * (2^62 - 1) + 1.
  CHECK(ceil_div(kMost, 2) == std::int64_t{1} << 62);
  CHECK(round_up(50257, 128) == 50304);  // 393 * 128
  CHECK_THROWS_AS(round_up(kMost, 1000), CapacityError);
}

TEST_CASE("a failed check names place, condition and message, and evaluates the message only then") {
  int evaluated = 0;
  const auto message = [&evaluated] {
    ++evaluated;
    return std::string("two is not three");
  };
  TPUSIM_CHECK(2 == 2, message());
  CHECK(evaluated == 0);
  std::string what;
  try {
    TPUSIM_CHECK(2 == 3, message());
  } catch (const InternalError& e) {
    what = e.what();
  }
  CHECK(evaluated == 1);
  CHECK(what.find("checked_test.cpp:") != std::string::npos);
  CHECK(what.find(": two is not three (2 == 3); this is a fault of tpusim, please report it") != std::string::npos);
}
