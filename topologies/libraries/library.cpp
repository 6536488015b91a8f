#include "topologies/libraries/library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.hpp"
#include "topologies/embedded.hpp"

namespace tpusim::topologies {

namespace {

using fabric::Algorithm;
using fabric::Level;
using fabric::Protocol;
using nlohmann::json;

template <class T>
struct Named {
  std::string_view key;   // in the file
  std::string_view text;  // for people
  T value;
};
constexpr Named<Level> kLevels[] = {{"chip", "inside a host", Level::chip}, {"host", "between hosts", Level::host}};
constexpr Named<Algorithm> kAlgorithms[] = {{"ring", "ring", Algorithm::ring},
                                            {"halving_doubling", "halving-doubling", Algorithm::halving_doubling},
                                            {"direct", "direct exchange", Algorithm::direct},
                                            {"double_tree", "double tree", Algorithm::double_tree},
                                            {"in_network", "in-network reduction", Algorithm::in_network}};
constexpr Named<Protocol> kProtocols[] = {{"none", "", Protocol::none},
                                          {"ll", " (LL)", Protocol::ll},
                                          {"ll128", " (LL128)", Protocol::ll128},
                                          {"simple", " (Simple)", Protocol::simple}};

template <class T, std::size_t N>
std::string_view text_of(const Named<T> (&names)[N], T value) {
  for (const Named<T>& n : names)
    if (n.value == value) return n.text;
  return "";
}

class LibraryReader {
 public:
  explicit LibraryReader(std::string file) : file_(std::move(file)) {}

  Library read(const json& card) {
    Library out;
    if (!card.is_object() || !card.contains("offers") || !card["offers"].is_array()) {
      fail("", "expected an object with \"name\", \"help\" and a list of \"offers\"");
      sink_.throw_if_errors();
    }
    out.name = text(card, "", "name");
    out.help = text(card, "", "help");
    for (std::size_t i = 0; i < card["offers"].size(); ++i)
      out.offers.push_back(offer(card["offers"][i], fmt::format("/offers/{}", i)));
    sink_.throw_if_errors();
    return out;
  }

 private:
  LibraryOffer offer(const json& from, const std::string& at) {
    LibraryOffer out;
    if (!from.is_object()) {
      fail(at, "expected an object");
      return out;
    }
    const std::vector<std::string> keys = {"level", "algorithm", "protocol", "base",
                                           "step",  "rate",      "source",   "confidence"};
    for (const auto& item : from.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        fail(at + "/" + item.key(), "unknown key", nearest(item.key(), keys));
    out.level = name(kLevels, from, at, "level");
    out.algorithm = name(kAlgorithms, from, at, "algorithm");
    out.protocol = name(kProtocols, from, at, "protocol");
    out.base = Seconds(number(from, at, "base", 0, 1));
    out.step = Seconds(number(from, at, "step", 0, 1));
    out.rate = number(from, at, "rate", 1e-6, 1);
    out.source = text(from, at, "source");
    const std::optional<Confidence> confidence = confidence_from_name(text(from, at, "confidence"));
    if (confidence && *confidence != Confidence::scenario)
      out.confidence = *confidence;
    else
      fail(at + "/confidence", "expected measured, vendor, paper, fitted or guess");
    return out;
  }

  template <class T, std::size_t N>
  T name(const Named<T> (&names)[N], const json& from, const std::string& at, const char* key) {
    const std::string wanted = text(from, at, key);
    std::vector<std::string> all;
    for (const Named<T>& n : names) {
      if (n.key == wanted) return n.value;
      all.emplace_back(n.key);
    }
    fail(at + "/" + key, "there is no \"" + wanted + "\"", nearest(wanted, all));
    return names[0].value;
  }

  double number(const json& from, const std::string& at, const char* key, double least, double most) {
    if (from.contains(key) && from[key].is_number()) {
      const double value = from[key].get<double>();
      if (value >= least && value <= most) return value;
    }
    fail(at + "/" + key, fmt::format("expected a number from {} to {}", least, most));
    return most;
  }

  std::string text(const json& from, const std::string& at, const char* key) {
    if (from.contains(key) && from[key].is_string() && !from[key].get_ref<const std::string&>().empty())
      return from[key].get<std::string>();
    fail(at + "/" + key, "expected a string that is not empty");
    return {};
  }

  void fail(std::string pointer, std::string message, std::string suggestion = {}) {
    Diagnostic d;
    d.code = Code::bad_value;
    d.pointer = std::move(pointer);
    d.message = std::move(message);
    d.suggestion = std::move(suggestion);
    d.file = file_;
    sink_.add(std::move(d));
  }

  std::string file_;
  DiagnosticSink sink_;
};

// The offers of a chip's library that hold for it along a level.
std::vector<LibraryOffer> usable(const Chip& chip, Level level) {
  std::vector<LibraryOffer> out;
  const Confidence latency = level == Level::chip ? chip.link_latency.confidence : chip.nic_latency.confidence;
  if (chip.library.empty() || level == Level::slice || latency == Confidence::scenario) return out;
  const std::optional<Library> library = find_library(chip.library);
  TPUSIM_CHECK(library.has_value(), "chip " + chip.name + " has an unknown library, " + chip.library);
  for (const LibraryOffer& offer : library->offers)
    if (offer.level == level && (offer.algorithm != Algorithm::in_network || chip.in_network_efficiency))
      out.push_back(offer);
  return out;
}

}  // namespace

Library parse_library(std::string_view text, const std::string& file) {
  const json card = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (card.is_discarded()) {
    Diagnostic d;
    d.code = Code::syntax;
    d.message = "a library's card must be JSON";
    d.file = file;
    throw ScenarioError({d});
  }
  return LibraryReader(file).read(card);
}

std::optional<Library> find_library(std::string_view name) {
  for (const EmbeddedCard& card : embedded_libraries())
    if (card.name == name) return parse_library(card.json, "topologies/libraries/" + std::string(name) + ".json");
  return std::nullopt;
}

std::vector<fabric::Offer> offers_of(const Chip& chip, Level level, BytesPerSecond beta) {
  std::vector<fabric::Offer> out;
  for (const LibraryOffer& offer : usable(chip, level)) {
    BytesPerSecond rate = beta * offer.rate;
    if (offer.algorithm == Algorithm::in_network) rate = rate * chip.in_network_efficiency->value;
    if (offer.protocol == Protocol::ll && level == Level::chip && chip.ll_rate)
      rate = std::min(rate, chip.ll_rate->value);
    out.push_back({offer.algorithm, offer.protocol, offer.base, offer.step, rate});
  }
  return out;
}

std::vector<FactRow> library_facts(const Chip& chip, Level level) {
  std::vector<FactRow> rows;
  for (const LibraryOffer& offer : usable(chip, level)) {
    const std::string what = fmt::format("{}: {}{} {}", chip.library, text_of(kAlgorithms, offer.algorithm),
                                         text_of(kProtocols, offer.protocol), text_of(kLevels, level));
    rows.push_back({what + ", base", offer.base.value(), "s", offer.source, offer.confidence});
    rows.push_back({what + ", step", offer.step.value(), "s", offer.source, offer.confidence});
    rows.push_back({what + ", part of the rate", offer.rate, "1", offer.source, offer.confidence});
  }
  return rows;
}

}  // namespace tpusim::topologies
