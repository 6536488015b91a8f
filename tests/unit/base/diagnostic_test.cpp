#include "sim/base/diagnostic.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>

using namespace tpusim;
using Names = std::vector<std::string>;

TEST_CASE("a diagnostic shows place, severity, pointer, code, message, suggestion and choices") {
  Diagnostic d;
  d.code = Code::unknown_key;
  d.pointer = "/cluster/topologi";
  d.message = "unknown key \"topologi\"";
  d.suggestion = "topology";
  d.choices = {"chip", "topology", "slices"};
  d.file = "scenario.json";
  d.line = 14;
  d.column = 7;
  CHECK(format(d) ==
        "scenario.json:14:7: error: /cluster/topologi [unknown-key]\n"
        "  unknown key \"topologi\"; did you mean \"topology\"?\n"
        "  valid keys: chip, topology, slices");
}

TEST_CASE("what is not known is left out of a diagnostic") {
  Diagnostic d;
  d.code = Code::io;
  d.message = "cannot read";
  CHECK(format(d) == "error: [io]\n  cannot read");
  d.file = "a.json";
  CHECK(format(d) == "a.json: error: [io]\n  cannot read");
  d.file = "";
  d.line = 3;
  d.severity = Severity::warning;
  CHECK(format(d) == "<input>:3: warning: [io]\n  cannot read");
}

TEST_CASE("text from a file cannot drive the terminal nor flood it") {
  Diagnostic d;
  d.code = Code::unknown_key;
  d.pointer = "/a\nb";
  d.message = "unknown key \"\x1b[2J\"";
  CHECK(format(d) == "error: /a\\u000ab [unknown-key]\n  unknown key \"\\u001b[2J\"");
  d.pointer = "";
  // 599 letters and one two-byte character that straddles the limit of 600 bytes: it is dropped whole.
  d.message = std::string(599, 'x') + "\u00b5" + std::string(1000, 'y');
  CHECK(format(d) == "error: [unknown-key]\n  " + std::string(599, 'x') + "... (1601 bytes)");
}

TEST_CASE("at most twelve choices are shown and the rest is counted") {
  Diagnostic d;
  d.code = Code::unknown_name;
  d.message = "no such chip";
  for (int i = 0; i < 15; ++i) d.choices.push_back(std::to_string(i));
  CHECK(format(d) ==
        "error: [unknown-name]\n  no such chip\n  valid names: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more");
}

TEST_CASE("every code has a name of its own in lower case with dashes") {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Code::unlisted); ++i) {
    const std::string name(code_name(static_cast<Code>(i)));
    CHECK(!name.empty());
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
    names.insert(name);
  }
  CHECK(names.size() == static_cast<std::size_t>(Code::unlisted) + 1);
}

TEST_CASE("the README of the room explains every code") {
  std::ifstream file(TPUSIM_SOURCE_DIR "/sim/base/README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  REQUIRE(!readme.empty());
  for (int i = 0; i <= static_cast<int>(Code::unlisted); ++i) {
    const std::string row = "\n| `" + std::string(code_name(static_cast<Code>(i))) + "` | ";
    CAPTURE(row);
    CHECK(readme.find(row) != std::string::npos);
  }
}

TEST_CASE("a sink keeps all faults in order and throws them together") {
  DiagnosticSink sink;
  sink.warning(Code::unlisted, "/cluster/topology", "4x5 is not listed");
  CHECK(!sink.has_errors());
  CHECK_NOTHROW(sink.throw_if_errors());
  sink.error(Code::bad_value, "/mesh/data", "must be positive");
  sink.error(Code::unknown_name, "/model", "no such model", "llama2-7b", {"llama2-7b", "gpt2"});
  CHECK(sink.has_errors());
  Names seen;
  std::string what;
  try {
    sink.throw_if_errors();
  } catch (const ScenarioError& e) {
    CHECK(e.diagnostics == sink.all());
    what = e.what();
  }
  CHECK(what ==
        "warning: /cluster/topology [unlisted]\n  4x5 is not listed\n"
        "error: /mesh/data [bad-value]\n  must be positive\n"
        "error: /model [unknown-name]\n  no such model; did you mean \"llama2-7b\"?\n  valid names: llama2-7b, gpt2");
}

TEST_CASE("a sink stops growing at twenty errors and the last one says so once") {
  DiagnosticSink sink;
  for (int i = 0; i < 10; ++i) sink.error(Code::bad_value, "/e", "error " + std::to_string(i));
  sink.warning(Code::unlisted, "/w", "between");
  for (int i = 10; i < 50; ++i) sink.error(Code::bad_value, "/e", "error " + std::to_string(i));
  sink.warning(Code::unlisted, "/w", "after");
  REQUIRE(sink.all().size() == 22);  // 20 errors and 2 warnings
  CHECK(sink.all()[10].message == "between");
  CHECK(sink.all()[20].message == "error 19 (only the first 20 faults are listed; there are more)");
  CHECK(sink.all()[21].message == "after");
  for (int i = 0; i < 50; ++i) sink.warning(Code::unlisted, "/w", "many");
  CHECK(sink.all().size() == 40);  // warnings are bounded too
}

TEST_CASE("exactly twenty errors are listed without a remark") {
  DiagnosticSink sink;
  for (int i = 0; i < 20; ++i) sink.error(Code::bad_value, "/e", "error");
  REQUIRE(sink.all().size() == 20);
  CHECK(sink.all()[19].message == "error");
}

TEST_CASE("the nearest name forgives case, dashes and the usual slips") {
  const Names chips = {"tpu-v4", "tpu-v5e", "tpu-v5p", "a100-80gb"};
  CHECK(nearest("TPU_V5P", chips) == "tpu-v5p");                            // 0 edits after folding
  CHECK(nearest("tpu-5vp", chips) == "tpu-v5p");                            // a swap is one edit
  CHECK(nearest("tpuv5e", chips) == "tpu-v5e");                             // one insertion
  CHECK(nearest("tpu-v5", {"tpu-v2", "tpu-v5e", "tpu-v5p"}) == "tpu-v5e");  // all one edit away; two begin as it does
  CHECK(nearest("a100-80g", chips) == "a100-80gb");
}

TEST_CASE("no name is suggested that is too far away") {
  CHECK(nearest("zebra", {"tpu-v4", "a100"}) == "");
  CHECK(nearest("abcd", {"abxy"}) == "");            // 2 edits, max(1, 4 / 3) = 1 allowed
  CHECK(nearest("abcdef", {"abcdxy"}) == "abcdxy");  // 2 edits, 6 / 3 = 2 allowed
  CHECK(nearest("anything", {}) == "");
  CHECK(nearest(std::string(1'000'000, 'a'), {"a"}) == "");
}

TEST_CASE("choices come nearest first, at most twelve, ties in the order of the registry") {
  CHECK(nearest_choices("seq", {"batch", "seq", "set"}) == Names{"seq", "set", "batch"});
  CHECK(nearest_choices("x", {"b", "a", "c"}) == Names{"b", "a", "c"});
  CHECK(nearest_choices("x", Names(30, "y")).size() == 30);  // all: format() says how many it leaves out
}

TEST_CASE("of what is missing nobody asks whether it was meant") {
  Diagnostic d;
  d.code = Code::missing_key;
  d.pointer = "/training";
  d.message = "\"global_batch\" is missing";
  d.suggestion = "global_batch";
  CHECK(format(d) == "error: /training [missing-key]\n  \"global_batch\" is missing");
}
