#include "sim/scenario/source.hpp"

#include <doctest/doctest.h>

using namespace tpusim;
using namespace tpusim::scenario;

namespace {

struct Where {
  std::string file;
  int line, column;
  bool operator==(const Where&) const = default;
};

Where where(const std::string& pointer, const SourceText& source) {
  std::vector<Diagnostic> d(1);
  d[0].pointer = pointer;
  locate(d, source);
  return {d[0].file, d[0].line, d[0].column};
}

const SourceText kSource{
    "s.json", "{\n  \"mesh\": {\"tensor\": 8,\n           \"data\": [4, 5]}\n}", {{"/mesh/fsdp", "mesh.fsdp=2"}}};

}  // namespace

TEST_CASE("a diagnostic gets the place of its key, of its element, or of its nearest ancestor") {
  CHECK(where("/mesh", kSource) == Where{"s.json", 2, 3});
  CHECK(where("/mesh/tensor", kSource) == Where{"s.json", 2, 12});
  CHECK(where("/mesh/data/1", kSource) == Where{"s.json", 3, 24});
  CHECK(where("/mesh/missing/deep", kSource) == Where{"s.json", 2, 3});
  CHECK(where("/mes", kSource) == Where{"s.json", 1, 1});
  CHECK(where("", kSource) == Where{"s.json", 1, 1});
}

TEST_CASE("what the command line set is placed there") {
  CHECK(where("/mesh/fsdp", kSource) == Where{"--set mesh.fsdp=2", 0, 0});
  CHECK(where("/mesh/fsdp/deeper", kSource) == Where{"--set mesh.fsdp=2", 0, 0});
}

TEST_CASE("a place that is known already is left alone") {
  std::vector<Diagnostic> d(1);
  d[0].file = "other.json";
  d[0].line = 7;
  locate(d, kSource);
  CHECK(d[0].file == "other.json");
  CHECK(d[0].line == 7);
}

TEST_CASE("a text that is no JSON still gives the places before its fault") {
  const SourceText broken{"b.json", "{\"a\": 1,\n \"b\": ]", {}};
  CHECK(where("/a", broken) == Where{"b.json", 1, 2});
}
