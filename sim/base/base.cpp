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

SimTime operator+(SimTime a, SimTime b) {
  std::int64_t r;
  if (__builtin_add_overflow(a.ps_, b.ps_, &r))
    throw CapacityError("simulated time is beyond the 106 days that one engine run can last");
  return SimTime::from_ps(r);
}

SimTime operator-(SimTime a, SimTime b) {
  return SimTime::from_ps(a.ps_ - b.ps_);
}

SimTime operator*(SimTime a, std::int64_t k) {
  std::int64_t r;
  if (__builtin_mul_overflow(a.ps_, k, &r))
    throw CapacityError("simulated time is beyond the 106 days that one engine run can last");
  return SimTime::from_ps(r);
}

}  // namespace tpusim
