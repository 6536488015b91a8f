#include "sim/scenario/scan.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/scenario/bounds.hpp"

using namespace tpusim;
using namespace tpusim::scenario;

namespace {

std::vector<std::pair<std::string, std::size_t>> visits(const std::string& text) {
  std::vector<std::pair<std::string, std::size_t>> out;
  DiagnosticSink sink;
  scan(
      text, [&out](const std::string& pointer, std::size_t offset) { return out.emplace_back(pointer, offset), true; },
      sink);
  return out;
}

std::string first_fault(const std::string& text) {
  DiagnosticSink sink;
  scan(text, {}, sink);
  return sink.all().empty() ? "" : sink.all().front().message;
}

bool accepts(const std::string& text) {
  DiagnosticSink sink;
  return scan(text, {}, sink) && !sink.has_errors();
}

}  // namespace

TEST_CASE("the scanner calls once for each value, with its pointer and the place of its key") {
  const std::vector<std::pair<std::string, std::size_t>> expected = {{"", 0},      {"/a", 1},    {"/b", 8},
                                                                     {"/b/0", 14}, {"/b/1", 17}, {"/b/1/c~1d~0", 18}};
  //        0         1         2
  //        0123456789012345678901234567
  CHECK(visits(R"({"a": 1,"b": [true{)").size() == 4);  // up to the place where the structure is lost
  CHECK(visits(R"({"a": 1,"b" :[0, {"c/d~":null}]})") == expected);
}

TEST_CASE("a place counts lines and UTF-8 characters from one") {
  const std::string text = "a\n\xC3\xA9x";
  CHECK(place_of(text, 0).line == 1);
  CHECK(place_of(text, 4).line == 2);
  CHECK(place_of(text, 4).column == 2);
}

TEST_CASE("what is not JSON is told in words") {
  CHECK(first_fault("") == "the scenario is empty; a JSON object is expected");
  CHECK(first_fault("{\"a\": 1,}") == "a comma before '}'; leave it out");
  CHECK(first_fault("{\"a\": 'x'}") == "a string is written in double quotes");
  CHECK(first_fault("{a: 1}") == "a key in double quotes is expected, 'a' found");
  CHECK(first_fault("{\"a\": NaN}") == "NaN: a finite number is expected");
  CHECK(first_fault("{\"a\": -Infinity}") == "-Infinity: a finite number is expected");
  CHECK(first_fault("{\"a\": 1e999}") == "1e999 is larger than any number here");
  CHECK(first_fault("{\"a\": True}") == "the word True is not JSON");
  CHECK(first_fault("{\"a\": 012}") == "a number that starts with 0");
  CHECK(first_fault("{\"a\": 1.}") == "a digit is expected after '.', '}' found");
  CHECK(first_fault("{\"a\": 25 MiB}") == "',' or '}' is expected, 'M' found");
  CHECK(first_fault("{\"a\": 25MiB}") == "'M' after a number; a value with a unit is a string, as in \"25 MiB\"");
  CHECK(first_fault("{\"a\": /* x */ 1}") == "a comment starts with //; /* */ is not allowed");
  CHECK(first_fault("{\"a\": 1") == "the text ends before the '}' that closes line 1, column 1");
  CHECK(first_fault("{\"a\": \"x") == "a string that does not end");
  CHECK(first_fault("{\"a\": \"x\n\"}") == "a string that does not end on its line");
  CHECK(first_fault("{} {}") == "'{' after the end of the scenario");
  CHECK(first_fault("{\"a\": \"\\q\"}") == "an escape that JSON does not have: \\q");
  CHECK(first_fault("{\"a\": \"\\ud800\"}") == "half a surrogate pair");
  CHECK(first_fault(std::string("{\"a\": \"\xC3\x28\"}")) == "the byte 0xc3, which is not UTF-8");
  CHECK(first_fault("{\"a\": 1, \"a\": 2}") == "the key \"a\" is in this object twice");
}

TEST_CASE("nesting is bounded, to the deepest that is allowed") {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(accepts(nested(kMaxDepth)));
  CHECK(first_fault(nested(kMaxDepth + 1)) == "nested more than 100 deep");
  CHECK(first_fault(nested(100'000)) == "nested more than 100 deep");
}

TEST_CASE("the number of values is bounded") {
  const auto list = [](int n) {
    std::string out = "[";
    for (int i = 0; i < n; ++i) out += i == 0 ? "1" : ",1";
    return out + "]";
  };
  CHECK(accepts(list(1000)));
  CHECK(first_fault(list(1001)) == "more than 1000 members in one object or array");
  std::string many = "[" + list(1000);
  for (int i = 0; i < 10; ++i) many += "," + list(1000);
  CHECK(first_fault(many + "]") == "more than 10000 values and keys; a scenario has at most that many");
}

TEST_CASE("keys are equal when they are equal after their escapes") {
  CHECK(first_fault("{\"mesh\": 1, \"\\u006desh\": 2}") == "the key \"mesh\" is in this object twice");
}

TEST_CASE("damaged texts are judged as a JSON library judges them") {
  // The library is the oracle: what it accepts, the scanner accepts, but for equal keys, bounds and numbers beyond a
  // double, which the damage below does not make.
  const std::string good = R"({"a": [1, -2.5e3, "x\n\u00e9", true], "b": {"c": null, "d": ""}, "e": 0.125})";
  REQUIRE(accepts(good));
  Random random(7);
  static constexpr std::string_view kBytes = "{}[]\",:\\ue1-+.0tfn \n";
  int agreed_bad = 0, agreed_good = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text = good;
    for (std::uint64_t edits = 1 + random.below(2); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      const char byte = kBytes[random.below(kBytes.size())];
      switch (random.below(4)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1);
          break;
        default:
          text.resize(at + 1);
      }
    }
    const bool library = nlohmann::json::accept(text, false);
    DiagnosticSink sink;
    const bool ours = scan(text, {}, sink);
    INFO(text);
    REQUIRE(ours == library);
    (library ? agreed_good : agreed_bad)++;
  }
  CHECK(agreed_bad > 1000);
  CHECK(agreed_good > 100);
}
