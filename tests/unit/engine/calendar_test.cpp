#include "sim/engine/calendar.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/random.hpp"

using namespace tpusim;
using namespace tpusim::engine;

TEST_CASE("a calendar hands out what is due, as a list does, however members come, go and share instants") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Calendar calendar;
    std::vector<CalendarPlace> places(40);
    std::vector<std::int64_t> at(places.size(), -1);  // -1: not in the calendar
    const auto place = [&](std::int32_t member) -> CalendarPlace& { return places[static_cast<std::size_t>(member)]; };
    std::int64_t now = 0;
    for (int round = 0; round < 2000; ++round) {
      const std::size_t member = random.below(places.size());
      if (at[member] < 0) {
        at[member] = now + static_cast<std::int64_t>(random.below(30));
        calendar.add(static_cast<std::int32_t>(member), SimTime::from_ps(at[member]), place);
      } else if (random.below(3) == 0) {
        at[member] = -1;
        calendar.remove(static_cast<std::int32_t>(member), place);
      }
      std::int64_t first = -1;
      for (std::int64_t t : at)
        if (t >= 0 && (first < 0 || t < first)) first = t;
      REQUIRE(calendar.next_time() == (first < 0 ? std::nullopt : std::optional(SimTime::from_ps(first))));
      if (random.below(4) != 0) continue;
      now += static_cast<std::int64_t>(random.below(10));
      std::vector<std::int32_t> due, expected;
      calendar.take_due(SimTime::from_ps(now), place, [&](std::int32_t m) { due.push_back(m); });
      for (std::size_t m = 0; m < at.size(); ++m)
        if (at[m] >= 0 && at[m] <= now) {
          expected.push_back(static_cast<std::int32_t>(m));
          at[m] = -1;
        }
      std::sort(due.begin(), due.end());
      REQUIRE(due == expected);
    }
  }
}
