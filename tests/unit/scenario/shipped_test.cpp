// The scenarios that ship: each reads without a word, and reads back from its written form as itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "sim/base/random.hpp"
#include "sim/scenario/contract.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"

using namespace tpusim;
using namespace tpusim::scenario;

namespace {

std::set<std::string> shipped() {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TPUSIM_SOURCE_DIR) + "/scenarios"))
    if (entry.path().extension() == ".json") out.insert(entry.path().string());
  return out;
}

}  // namespace

TEST_CASE("each scenario that ships is sound and reads back as itself") {
  const std::set<std::string> files = shipped();
  CHECK(files.size() >= 6);
  for (const std::string& file : files) {
    CAPTURE(file);
    DiagnosticSink sink;
    const Scenario s = load(file, sink);
    std::string all;
    for (const Diagnostic& d : sink.all()) all += format(d) + "\n";
    CHECK(all == "");
    CHECK(s.name != "");
    CHECK(read(to_json(s), "again", sink) == s);
  }
}

TEST_CASE("PaLM's mesh covers both pods") {
  DiagnosticSink sink;
  const Scenario s = load(std::string(TPUSIM_SOURCE_DIR) + "/scenarios/palm-540b.json", sink);
  CHECK(s.cluster.chips() == 6144);  // 2 x 12 x 16 x 16
  CHECK(s.mesh_size("data") * s.mesh_size("fsdp") * s.mesh_size("tensor") == 6144);
}

TEST_CASE("a damaged scenario is refused or read, and never anything else") {
  // Whatever bytes a file holds, reading ends, throws nothing, and a scenario without a fault is one that round-trips.
  Random random(11);
  int refused = 0, sound = 0;
  for (const std::string& file : shipped()) {
    DiagnosticSink good;
    const std::string text = load(file, good).source.text;
    for (int trial = 0; trial < 300; ++trial) {
      std::string bad = text;
      for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
        const std::size_t at = random.below(bad.size());
        const std::size_t n = std::min<std::size_t>(1 + random.below(8), bad.size() - at);
        switch (random.below(4)) {
          case 0:
            bad.erase(at, n);
            break;
          case 1:
            bad.insert(at, bad.substr(random.below(bad.size()), n));
            break;
          case 2:
            bad[at] = static_cast<char>(random.below(256));
            break;
          default:
            bad[at] = "0123456789-{}[]\",:"[random.below(18)];
        }
        if (bad.empty()) bad = " ";
      }
      DiagnosticSink sink;
      const Scenario s = read(bad, "bad.json", sink);
      if (sink.has_errors()) {
        ++refused;
        continue;
      }
      ++sound;
      DiagnosticSink again;
      CAPTURE(bad);
      REQUIRE(read(to_json(s), "again.json", again) == s);
      REQUIRE_FALSE(again.has_errors());
    }
  }
  CHECK(refused > 500);
  CHECK(sound > 100);  // edits inside comments and names
}

TEST_CASE("the reference names every key of the contract") {
  std::ifstream file(std::string(TPUSIM_SOURCE_DIR) + "/scenarios/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(text.size() > 1000);
  for (const Section& s : contract())
    for (const std::string& key : s.keys) {
      CAPTURE(s.pointer);
      CAPTURE(key);
      const bool named =
          text.find("." + key + "`") != std::string::npos || text.find("`" + key + "`") != std::string::npos ||
          text.find("`" + key + ".") != std::string::npos || text.find("." + key + ".") != std::string::npos;
      CHECK(named);
    }
}
