#include "reports/html.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reports/html/assets.hpp"
#include "reports/html/chart_data.hpp"
#include "reports/html/markup.hpp"
#include "reports/json.hpp"
#include "sim/result/json.hpp"
#include "tests/unit/reports/sample_support.hpp"

using namespace tpusim;
using namespace tpusim::reports;
using Tree = nlohmann::json;

namespace {

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// The page without what is embedded in every page.
std::string own_part(const std::string& page) {
  return page.substr(0, page.find("<script>\n"));
}

std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("escaping leaves nothing that markup or an attribute could mistake") {
  CHECK(escape("<b a=\"1\" c='2'>&</b>") == "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;&lt;/b&gt;");
  CHECK(escape(std::string("a\x01"
                           "b\n",
                           4)) ==
        "a\xEF\xBF\xBD"
        "b\n");
}

TEST_CASE("JSON inside a script cannot end it") {
  CHECK(script_json("{\"a\":\"</script><!--\"}") == "{\"a\":\"\\u003c/script>\\u003c!--\"}");
  CHECK(script_json("\"\xE2\x80\xA8\xE2\x80\xA9\"") == "\"\\u2028\\u2029\"");
}

TEST_CASE("names from a scenario appear escaped, and only our own elements are elements") {
  const std::string page = html(samples::hostile());
  CHECK(count(page, "<script") == 4);  // data, library, charts, timeline; the library has none in its text
  CHECK(count(page, "</script>") == 4);
  const std::string own = own_part(page);
  CHECK(count(own, "<img") == 0);
  CHECK(count(own, "<i>") == 0);
  CHECK(count(own, "<a href=\"javascript") == 0);
  CHECK(count(own, "&lt;a href=&quot;javascript:alert(1)&quot;&gt;source&lt;/a&gt;") == 1);
  CHECK(Tree::parse(data_of(page))["timeline"]["labels"][0] == "op <b>\"bold\"</b></script>");
}

TEST_CASE("the page asks for nothing: no address outside the embedded library's licence notes") {
  const std::string page = html(samples::pipeline());
  CHECK(count(page, "default-src 'none'") == 1);
  CHECK(count(own_part(page), "http:") + count(own_part(page), "https:") == 0);
  const Assets a = assets();
  for (const std::string_view& asset : {a.style, a.charts, a.timeline})
    CHECK(asset.find("://") == std::string_view::npos);
  CHECK(a.echarts.find("</script") == std::string_view::npos);
}

TEST_CASE("the chart data of a small result is this document") {
  result::Result r = samples::quickstart();
  r.diagnosis.clear();
  result::TimelineBuilder builder;
  const std::size_t c = builder.add_class("chips", 16);
  const std::size_t s = builder.add_stream(c, "compute");
  result::Span span;
  span.start_ps = 2'000'000'000'010;  // window of 2 s = 2e12 ps: quantum 10^4 ps, since 2e12 / 10^4 = 2e8 < 10^9
  span.end_ps = 2'000'050'000'000;
  span.label = builder.label("dot");
  span.layer = 3;
  span.phase = result::SpanPhase::backward;
  builder.add_span(c, s, span);
  builder.add_memory(c, 3'000'000'000'000, 77);
  builder.set_window(2'000'000'000'000, 4'000'000'000'000);
  r.timeline = builder.finish();
  r.communication.resize(1);
  const Tree data = Tree::parse(chart_data(r));
  CHECK(data["step"]["time"] == 5);
  CHECK(data["step"]["parts"][0] == Tree{{"key", "compute"}, {"name", "compute"}, {"value", 4}, {"share", 0.8}});
  CHECK(data["communication"] == Tree::parse(R"([{"name":"all-gather fsdp","busy":1.5,"exposed":0.5}])"));
  CHECK(data["timeline"] == Tree::parse(R"({"quantum_s":1e-08,"window":200000000,"labels":["dot"],"spans_joined":0,
    "spans_left_out":0,"classes":[{"name":"chips","devices":16,"streams":[{"name":"compute","gap":[0],"length":[5000],
    "label":[0],"code":[2],"layer":[3],"microbatch":[-1]}]}],"memory":{"class":0,"time":[100000000],"bytes":[77]}})"));
}

TEST_CASE("two bars of one collective over the same axes are told apart by their algorithm") {
  result::Result r = samples::quickstart();
  r.communication.push_back(r.communication[0]);
  r.communication.back().algorithm = "line";
  const Tree rows = Tree::parse(chart_data(r))["communication"];
  CHECK(rows[0]["name"] == "all-gather fsdp, two axes, both directions");
  CHECK(rows[1]["name"] == "reduce-scatter fsdp");
  CHECK(rows[2]["name"] == "all-gather fsdp, line");
}

TEST_CASE("timeline data adds up to the window whatever the rounding") {
  const Tree timeline = Tree::parse(chart_data(samples::pipeline()))["timeline"];
  for (const Tree& device_class : timeline["classes"])
    for (const Tree& stream : device_class["streams"]) {
      std::int64_t end = 0;
      for (std::size_t i = 0; i < stream["gap"].size(); ++i) {
        CHECK(stream["gap"][i].get<std::int64_t>() >= 0);
        end += stream["gap"][i].get<std::int64_t>() + stream["length"][i].get<std::int64_t>();
      }
      CHECK(end <= timeline["window"].get<std::int64_t>());
    }
}

TEST_CASE("a section without data says why in place of an empty chart") {
  const std::string own = own_part(html(samples::minimal()));
  CHECK(count(own, "class=\"nothing\"") == 5);
  CHECK(count(own, "class=\"chart\"") == 2);  // the step and the memory at its peak
}

TEST_CASE("the page is below 1.5 MB with 16,000 spans, and the same every time") {
  const std::string page = html(samples::pipeline());
  CHECK(page.size() < 1'500'000);
  CHECK(page == html(samples::pipeline()));
}

TEST_CASE("JSON with the timeline is the contract document and one more key") {
  const result::Result r = samples::quickstart();
  CHECK(reports::json(r) == result::to_json(r));
  Tree with = Tree::parse(reports::json(samples::pipeline(), true));
  CHECK(result::timeline_from_json(with["timeline"].dump()) == samples::pipeline().timeline);
  with.erase("timeline");
  CHECK(with == Tree::parse(result::to_json(samples::pipeline())));
}
