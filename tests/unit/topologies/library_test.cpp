#include "topologies/libraries/library.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/diagnostic.hpp"
#include "topologies/builders.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

TEST_CASE("every chip's library is embedded, and every card of a library in the folder is") {
  for (const std::string& name : chip_names())
    if (const std::string library = find_chip(name)->library; !library.empty())
      CHECK(find_library(library).has_value());
  for (const auto& file : std::filesystem::directory_iterator(TPUSIM_SOURCE_DIR "/topologies/libraries"))
    if (file.path().extension() == ".json") CHECK(find_library(file.path().stem().string()).has_value());
  CHECK_FALSE(find_library("rccl").has_value());
}

TEST_CASE(
    "an offer's rate is its part of the link's, capped for LL inside a host, and the switch's own where it reduces") {
  const Chip h200 = *find_chip("h200");
  const BytesPerSecond beta(360e9);
  for (const fabric::Offer& offer : offers_of(h200, fabric::Level::chip, beta)) {
    if (offer.algorithm == fabric::Algorithm::in_network) CHECK(offer.beta.value() == doctest::Approx(0.85 * 360e9));
    // NCCL's bound for one host of this generation, 141 GB/s, is below half of the link.
    if (offer.protocol == fabric::Protocol::ll) CHECK(offer.beta.value() == 141e9);
    if (offer.protocol == fabric::Protocol::ll128) CHECK(offer.beta.value() == doctest::Approx(0.92 * 360e9));
  }
  for (const fabric::Offer& offer : offers_of(h200, fabric::Level::host, BytesPerSecond(37e9)))
    if (offer.protocol == fabric::Protocol::ll && offer.algorithm == fabric::Algorithm::ring)
      CHECK(offer.beta.value() == 18.5e9);
}

TEST_CASE(
    "a switch that cannot reduce, slices, chips without a library and a latency of the user's own have no such "
    "offers") {
  const auto in_network = [](const std::vector<fabric::Offer>& offers) {
    return std::any_of(offers.begin(), offers.end(),
                       [](const auto& o) { return o.algorithm == fabric::Algorithm::in_network; });
  };
  const BytesPerSecond beta(1e11);
  CHECK(in_network(offers_of(*find_chip("h100"), fabric::Level::chip, beta)));
  CHECK_FALSE(in_network(offers_of(*find_chip("a100-80gb"), fabric::Level::chip, beta)));
  CHECK_FALSE(in_network(offers_of(*find_chip("h100"), fabric::Level::host, beta)));
  CHECK(offers_of(*find_chip("h100"), fabric::Level::slice, beta).empty());
  CHECK(offers_of(*find_chip("tpu-v5p"), fabric::Level::chip, beta).empty());
  DiagnosticSink sink;
  const Chip own = apply_overrides(*find_chip("h100"), {{"link_latency", 1e-6}}, "/cluster/chip", sink);
  CHECK(offers_of(own, fabric::Level::chip, beta).empty());
  CHECK_FALSE(offers_of(own, fabric::Level::host, beta).empty());
  CHECK(library_facts(own, fabric::Level::chip).empty());
}

TEST_CASE("a library's faults are all told, each with its place") {
  try {
    parse_library(R"({"name": "x", "help": "y", "offers": [
      {"level": "chips", "algorithm": "rings", "protocol": "ll", "base": -1, "step": 1e-6, "rate": 2, "sorce": "z",
       "confidence": "scenario"}, 3]})",
                  "x.json");
    FAIL("not refused");
  } catch (const ScenarioError& e) {
    std::vector<std::string> pointers;
    for (const Diagnostic& d : e.diagnostics) pointers.push_back(d.pointer);
    CHECK(pointers == std::vector<std::string>{"/offers/0/sorce", "/offers/0/level", "/offers/0/algorithm",
                                               "/offers/0/base", "/offers/0/rate", "/offers/0/source",
                                               "/offers/0/confidence", "/offers/1"});
  }
  CHECK_THROWS_AS(parse_library("{", "x.json"), ScenarioError);
  CHECK_THROWS_AS(parse_library("[]", "x.json"), ScenarioError);
}
