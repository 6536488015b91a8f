#include "reports/trace.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/sample_support.hpp"

using namespace tpusim;
using namespace tpusim::reports;
using nlohmann::json;

TEST_CASE("a small trace is, event by event, this one") {
  result::TimelineBuilder builder;
  const std::size_t c = builder.add_class("stage \"0\"", 4);
  const std::size_t s = builder.add_stream(c, "compute");
  result::Span span;
  span.start_ps = 1'000'000;
  span.end_ps = 3'500'001;
  span.label = builder.label("dot");
  span.layer = 7;
  span.microbatch = 2;
  span.phase = result::SpanPhase::backward;
  builder.add_span(c, s, span);
  builder.add_memory(c, 1'000'000, 5);
  builder.set_window(1'000'000, 4'000'000);
  result::Result r;
  r.scenario_json = R"({"name":"small"})";
  r.timeline = builder.finish();
  // Times are relative to the window: 0 us, and 2,500,001 ps = 2.500001 us.
  CHECK(
      trace(r) ==
      R"JSON({"displayTimeUnit":"ms","otherData":{"scenario":"small","spans_joined":0,"spans_left_out":0},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"stage \"0\" (4 chips)"}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":0}},
{"ph":"X","name":"dot","cat":"compute","pid":1,"tid":1,"ts":0,"dur":2.500001,"args":{"phase":"backward","layer":7,"microbatch":2}},
{"ph":"C","name":"memory in use","pid":1,"ts":0,"args":{"bytes":5}}
]}
)JSON");
}

TEST_CASE("a trace of many spans is JSON whose lanes never run backwards or overlap") {
  const result::Result r = samples::pipeline();
  const json document = json::parse(trace(r));
  std::map<std::pair<int, int>, double> ends;
  std::map<std::string, int> phases;
  double last_counter = -1;
  for (const json& event : document["traceEvents"]) {
    const std::string phase = event["ph"];
    ++phases[phase];
    if (phase == "X") {
      double& end = ends[{event["pid"], event["tid"]}];
      // Decimal microseconds read back as doubles: 1e-6 us is a picosecond, and 4e6 us times 2^-52 is far below it.
      CHECK(event["ts"].get<double>() >= end - 1e-6);
      end = event["ts"].get<double>() + event["dur"].get<double>();
    } else if (phase == "C") {
      CHECK(event["ts"].get<double>() > last_counter);
      last_counter = event["ts"];
    }
  }
  std::size_t spans = 0;
  for (const result::DeviceClass& c : r.timeline.classes)
    for (const result::Stream& s : c.streams) spans += s.spans.size();
  CHECK(phases["X"] == static_cast<int>(spans));
  CHECK(phases["C"] == 600);
  CHECK(phases["M"] == 8 * (2 + 3 * 2));  // 8 classes: a name and an order each, and for each of 3 streams
  CHECK(ends.size() == 24);
}

TEST_CASE("a result without a timeline gives an empty trace, and odd names a valid one") {
  CHECK(json::parse(trace(samples::minimal()))["traceEvents"] == json::array());
  CHECK(json::parse(trace(samples::hostile()))["traceEvents"].size() == 5);
}

TEST_CASE("a span of several instructions is named by what they have in common") {
  result::TimelineBuilder builder(1);  // room for one span: what comes second is joined to the first
  const std::size_t c = builder.add_class("chips", 1);
  const std::size_t s = builder.add_stream(c, "compute");
  for (int i = 0; i < 2; ++i) {
    result::Span span;
    span.start_ps = 10'000'000 * i;
    span.end_ps = span.start_ps + 4'000'000;
    span.label = builder.label("op " + std::to_string(i));
    span.layer = 5;
    span.microbatch = 1;
    span.phase = result::SpanPhase::forward;
    builder.add_span(c, s, span);
  }
  builder.set_window(0, 14'000'000);
  result::Result r;
  r.timeline = builder.finish();
  // Two instructions of 4 us each, from 0 to 14 us.
  CHECK(json::parse(trace(r))["traceEvents"].back() ==
        json::parse(R"({"ph":"X","name":"layer 5 forward","cat":"compute",
    "pid":1,"tid":1,"ts":0,"dur":14,"args":{"phase":"forward","layer":5,"microbatch":1,"instructions":2,"busy_us":8}})"));
}
