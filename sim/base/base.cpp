#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
#include "sim/base/units.hpp"

namespace tpusim {

void internal_error(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(
      fmt::format("{}:{}: {} ({}); this is a fault of tpusim, please report it", file, line, message, condition));
}

void capacity_error(std::string_view what) {
  throw CapacityError(fmt::format("{} does not fit in 64 bits", what));
}

SimTime SimTime::from(Seconds s) {
  const double ps = s.value() * 1e12;
  TPUSIM_CHECK(ps >= 0, fmt::format("a duration of {} s", s.value()));
  if (ps >= 9.2e18)
    throw CapacityError(fmt::format("{} s is beyond the 106 days that one engine run can last", s.value()));
  if (ps > 0 && ps < 1) return from_ps(1);
  return from_ps(static_cast<std::int64_t>(std::llround(ps)));
}

void time_overflow() {
  throw CapacityError("simulated time is beyond the 106 days that one engine run can last");
}

}  // namespace tpusim
