#include "sim/result/timeline.hpp"

#include <doctest/doctest.h>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/result/json.hpp"

using namespace tpusim;
using namespace tpusim::result;

namespace {

Span span(std::int64_t start, std::int64_t end, std::int32_t label, std::int32_t layer, SpanPhase phase,
          SpanKind kind = SpanKind::compute) {
  Span s;
  s.start_ps = start;
  s.end_ps = end;
  s.label = label;
  s.layer = layer;
  s.microbatch = 0;
  s.phase = phase;
  s.kind = kind;
  return s;
}

// `layers` layers of `ops` instructions of 10 ps with 2 ps between them, forward.
Timeline steps(std::size_t budget, int layers, int ops) {
  TimelineBuilder builder(budget);
  const std::size_t c = builder.add_class("chips", 4);
  const std::size_t s = builder.add_stream(c, "compute");
  std::int64_t now = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (int op = 0; op < ops; ++op) {
      builder.add_span(c, s, span(now, now + 10, builder.label("op " + std::to_string(op)), layer, SpanPhase::forward));
      now += 12;
    }
  builder.set_window(0, now);
  return builder.finish();
}

}  // namespace

TEST_CASE("within its budget a timeline holds every span as it was given") {
  const Timeline t = steps(6, 2, 3);
  REQUIRE(t.classes.size() == 1);
  CHECK(t.labels == std::vector<std::string>{"op 0", "op 1", "op 2"});
  CHECK(t.classes[0].device_count == 4);
  const std::vector<Span>& spans = t.classes[0].streams[0].spans;
  REQUIRE(spans.size() == 6);
  CHECK(spans[4].start_ps == 48);
  CHECK(spans[4].busy_ps == 10);
  CHECK(spans[4].label == 1);
  CHECK(t.spans_joined == 0);
  CHECK(t.spans_left_out == 0);
  CHECK(t.end_ps == 72);
}

TEST_CASE("over its budget the spans of one call are joined, and their busy time is kept") {
  const Timeline t = steps(5, 2, 3);  // 6 instructions, budget 5: one span a layer
  const std::vector<Span>& spans = t.classes[0].streams[0].spans;
  REQUIRE(spans.size() == 2);
  Span expected = span(36, 70, 3, 1, SpanPhase::forward);  // layer 1: 36..46, 48..58, 60..70
  expected.busy_ps = 30;
  expected.joined = 3;
  CHECK(spans[1] == expected);
  CHECK(t.labels[3] == "compute");
  CHECK(t.spans_joined == 6);
}

TEST_CASE("joining goes on to whole phases when calls are too many") {
  const Timeline t = steps(3, 10, 3);
  const std::vector<Span>& spans = t.classes[0].streams[0].spans;
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].joined == 30);
  CHECK(spans[0].busy_ps == 300);
  CHECK(spans[0].layer == -1);
  CHECK(spans[0].phase == SpanPhase::forward);
}

TEST_CASE("a wait that can be seen in the window is not joined over, a shorter one is") {
  // 100 ps of work in ten instructions; behind the fifth a gap, in a window of 25,600 ps: 1/256 of it are 100 ps.
  for (const std::int64_t gap : {100, 101}) {
    TimelineBuilder builder(2);
    builder.set_window(0, 25'600);
    const std::size_t c = builder.add_class("stage 0", 1);
    const std::size_t s = builder.add_stream(c, "compute");
    for (int i = 0; i < 10; ++i)
      builder.add_span(c, s,
                       span(10 * i + (i < 5 ? 0 : gap), 10 * i + 10 + (i < 5 ? 0 : gap), builder.label("x"), 0,
                            SpanPhase::backward));
    const Timeline t = builder.finish();
    const std::vector<Span>& spans = t.classes[0].streams[0].spans;
    REQUIRE(spans.size() == (gap == 100 ? 1 : 2));
    CHECK(spans[0].end_ps == (gap == 100 ? 200 : 50));
    CHECK(spans[0].busy_ps == (gap == 100 ? 100 : 50));
    CHECK(spans.back().end_ps == 100 + gap);
  }
}

TEST_CASE("what cannot be joined is left out and counted") {
  TimelineBuilder builder(2);
  const std::size_t c = builder.add_class("chips", 1);
  const std::size_t s = builder.add_stream(c, "ici x");
  for (int i = 0; i < 5; ++i)  // kinds alternate, so nothing can be joined
    builder.add_span(c, s,
                     span(10 * i, 10 * i + 5, builder.label("x"), i, SpanPhase::none,
                          i % 2 == 0 ? SpanKind::communication : SpanKind::wait));
  const Timeline t = builder.finish();
  CHECK(t.classes[0].streams[0].spans.size() == 2);
  CHECK(t.spans_left_out == 3);
}

TEST_CASE("a span of no length is ignored, and a span of no stream is our own fault") {
  TimelineBuilder builder;
  const std::size_t c = builder.add_class("chips", 1);
  const std::size_t s = builder.add_stream(c, "compute");
  builder.add_span(c, s, span(5, 5, builder.label("x"), 0, SpanPhase::none));
  CHECK_THROWS_AS(builder.add_span(c, s + 1, span(5, 6, 0, 0, SpanPhase::none)), InternalError);
  CHECK(builder.finish().classes[0].streams[0].spans.empty());
}

TEST_CASE("memory keeps the highest and the last of one instant, and the peak when it is thinned") {
  TimelineBuilder builder(10, 2);
  builder.add_class("fullest", 1);
  for (const auto& [time, bytes] : std::vector<std::pair<int, int>>{{0, 1}, {5, 3}, {5, 9}, {5, 2}})
    builder.add_memory(0, time, bytes);
  // 0:1 | 5:9 (highest) | 5:2 (last) are three; over the two allowed, neighbours (0:1, 5:9) become 0:9.
  CHECK(builder.finish().memory == std::vector<MemorySample>{{0, 9}, {5, 2}});
  builder.add_class("a", 1);
  builder.add_memory(0, 1, 1);
  CHECK_THROWS_AS(builder.add_memory(1, 2, 2), InternalError);
}

TEST_CASE("memory that is thinned again and again is thinned alike from beginning to end") {
  TimelineBuilder builder(10, 4);
  builder.add_class("fullest", 1);
  for (int i = 0; i < 64; ++i) builder.add_memory(0, i, 100 + i);
  // Budget 4, at most 8 held: 64 changes are 4 samples of 16, each with its highest, the last; and where it ends.
  CHECK(builder.finish().memory == std::vector<MemorySample>{{0, 115}, {16, 131}, {32, 147}, {48, 163}, {63, 163}});
}

TEST_CASE("a timeline reads back as it was written") {
  Timeline t = steps(5, 2, 3);
  t.memory_class = 0;
  t.memory = {{0, 5}, {7, 12}};
  const std::string text = timeline_to_json(t);
  CHECK(timeline_from_json(text) == t);
  CHECK(text ==
        "{\"start_ps\":0,\"end_ps\":72,\"labels\":[\"op 0\",\"op 1\",\"op 2\",\"compute\"],\"classes\":[{\"name\":"
        "\"chips\",\"devices\":4,\"streams\":[{\"name\":\"compute\",\"spans\":[[0,34,30,3,0,1,0,0,3],[36,70,30,3,0,1,1,"
        "0,3]]}]}],\"memory_class\":0,\"memory\":[[0,5],[7,12]],\"spans_joined\":6,\"spans_left_out\":0}\n");
  CHECK_THROWS_AS(timeline_from_json("{}"), ScenarioError);
}
