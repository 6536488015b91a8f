#include "sim/run/cursor.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "sim/base/check.hpp"

using namespace tpusim;
using namespace tpusim::run;

namespace {

// A: one call; B: two calls, three times; C: one call. Eight calls a step.
plan::Schedule schedule() {
  return {{plan::Segment{{{7, 0, 0}}, 1}, plan::Segment{{{1, 1, 10}, {2, 2, 20}}, 3}, plan::Segment{{{9, 3, -1}}, 1}}};
}

using Row = std::vector<std::int64_t>;
Row row(const ResolvedCall& c) {
  return c.kind < 0 ? Row{} : Row{c.site, c.kind, c.microbatch, c.number};
}

}  // namespace

TEST_CASE("a cursor walks segments and repeats, adds the repeat to the microbatch and numbers calls over all steps") {
  const plan::Schedule s = schedule();
  Cursor cursor(s);
  std::vector<Row> seen;
  for (int i = 0; i < 9; ++i, cursor.advance()) seen.push_back(row(cursor.current()));
  CHECK(seen == std::vector<Row>{{7, 0, 0, 0},
                                 {1, 1, 10, 1},
                                 {2, 2, 20, 2},
                                 {1, 1, 11, 3},
                                 {2, 2, 21, 4},
                                 {1, 1, 12, 5},
                                 {2, 2, 22, 6},
                                 {9, 3, -1, 7},
                                 {7, 0, 0, 8}});
  CHECK(cursor.step() == 1);
}

TEST_CASE("a cursor's neighbours are those of its own step") {
  const plan::Schedule s = schedule();
  Cursor cursor(s);
  for (int step = 0; step < 2; ++step)
    for (std::int64_t call = 0; call < 8; ++call, cursor.advance()) {
      CHECK(row(cursor.previous()).empty() == (call == 0));
      CHECK(row(cursor.next()).empty() == (call == 7));
      CHECK(cursor.at_step_start() == (call == 0));
      if (call > 0) CHECK(cursor.previous().number == cursor.current().number - 1);
      if (call < 7) CHECK(cursor.next().number == cursor.current().number + 1);
    }
}

TEST_CASE("a cursor knows where a repeat begins and how many come after it") {
  const plan::Schedule s = schedule();
  Cursor cursor(s);
  std::vector<Row> starts;
  for (int i = 0; i < 8; ++i, cursor.advance())
    if (cursor.at_repeat_start()) starts.push_back({i, cursor.segment(), cursor.repeats_left()});
  CHECK(starts == std::vector<Row>{{0, 0, 0}, {1, 1, 2}, {3, 1, 1}, {5, 1, 0}, {7, 2, 0}});
}

TEST_CASE("skipping repeats leaves a cursor where walking them does") {
  const plan::Schedule s = {
      {plan::Segment{{{7, 0, 0}}, 1}, plan::Segment{{{1, 1, 10}, {2, 2, 20}}, 100}, plan::Segment{{{9, 3, -1}}, 1}}};
  for (std::int64_t skipped : {0, 1, 57, 96}) {
    Cursor walked(s), skipping(s);
    for (int i = 0; i < 5; ++i) walked.advance(), skipping.advance();  // at the third repeat
    skipping.skip(skipped);
    for (std::int64_t i = 0; i < 2 * skipped; ++i) walked.advance();
    for (int i = 0; i < 6; ++i, walked.advance(), skipping.advance()) {
      CHECK(row(skipping.previous()) == row(walked.previous()));
      CHECK(row(skipping.current()) == row(walked.current()));
      CHECK(row(skipping.next()) == row(walked.next()));
      CHECK(skipping.step() == walked.step());
    }
  }
}

TEST_CASE("a cursor refuses a skip beyond its segment, in the middle of a repeat, and an empty schedule") {
  const plan::Schedule s = schedule();
  Cursor cursor(s);
  CHECK_THROWS_AS(cursor.skip(1), InternalError);  // the first segment has one repeat
  cursor.advance();
  CHECK_THROWS_AS(cursor.skip(3), InternalError);  // two are left after this one
  cursor.advance();
  CHECK_THROWS_AS(cursor.skip(0), InternalError);  // second call of the body
  CHECK_THROWS_AS(Cursor(plan::Schedule{}), InternalError);
  CHECK_THROWS_AS(Cursor(plan::Schedule{{plan::Segment{{}, 1}}}), InternalError);
}
