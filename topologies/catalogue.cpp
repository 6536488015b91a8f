#include "topologies/catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.hpp"
#include "topologies/chip_fields.hpp"
#include "topologies/embedded.hpp"

namespace tpusim::topologies {

namespace {

using nlohmann::json;

// Reads one card. Every fault goes to the sink; a missing part leaves its default.
class CardReader {
 public:
  CardReader(const json& card, const std::string& file) : card_(card), file_(file) {}

  Chip read() {
    Chip chip;
    if (!card_.is_object()) {
      fail(Code::wrong_type, "", "expected an object");
      sink_.throw_if_errors();
    }
    only(card_, "", {"name", "help", "kind", "library", "facts", "slices"});
    chip.name = text(card_, "", "name");
    chip.help = text(card_, "", "help");
    chip.kind = kind(text(card_, "", "kind"));
    if (card_.contains("library")) chip.library = text(card_, "", "library");
    read_facts(chip);
    read_slices(chip.slices);
    sink_.throw_if_errors();
    return chip;
  }

 private:
  void fail(Code code, std::string pointer, std::string message, std::string suggestion = {}) {
    Diagnostic d;
    d.code = code;
    d.pointer = std::move(pointer);
    d.message = std::move(message);
    d.suggestion = std::move(suggestion);
    d.file = file_;
    sink_.add(std::move(d));
  }

  void only(const json& object, const std::string& at, const std::vector<std::string>& keys) {
    for (const auto& item : object.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        fail(Code::unknown_key, at + "/" + item.key(), "unknown key \"" + item.key() + "\"", nearest(item.key(), keys));
  }

  const json* member(const json& object, const std::string& at, const char* key) {
    const auto it = object.find(key);
    if (it == object.end()) {
      fail(Code::missing_key, at, "missing \"" + std::string(key) + "\"");
      return nullptr;
    }
    return &*it;
  }

  // A string that is not empty; "" after a fault.
  std::string text(const json& object, const std::string& at, const char* key) {
    const json* value = member(object, at, key);
    if (value == nullptr) return {};
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      fail(Code::wrong_type, at + "/" + key, "expected a string that is not empty");
      return {};
    }
    return value->get<std::string>();
  }

  double number(const json& object, const std::string& at, const char* key) {
    const json* value = member(object, at, key);
    if (value == nullptr) return 0;
    if (!value->is_number()) {
      fail(Code::wrong_type, at + "/" + key, "expected a number");
      return 0;
    }
    return value->get<double>();
  }

  // A whole number from 0 to 2^31; 0 after a fault.
  std::int64_t whole(const json& object, const std::string& at, const char* key) {
    const double value = number(object, at, key);
    if (value >= 0 && value <= 2147483648.0 && value == std::floor(value)) return static_cast<std::int64_t>(value);
    fail(Code::bad_value, at + "/" + key, "expected a whole number from 0 to 2147483648");
    return 0;
  }

  Confidence confidence(const json& object, const std::string& at) {
    const std::string name = text(object, at, "confidence");
    const std::optional<Confidence> found = confidence_from_name(name);
    if (found && *found != Confidence::scenario) return *found;
    if (!name.empty())
      fail(Code::unknown_name, at + "/confidence",
           "expected measured, vendor, paper, fitted or guess, found \"" + name + "\"");
    return Confidence::guess;
  }

  ChipKind kind(const std::string& name) {
    if (name == "tpu") return ChipKind::tpu;
    if (name == "gpu") return ChipKind::gpu;
    if (name == "cpu") return ChipKind::cpu;
    fail(Code::unknown_name, "/kind", "expected tpu, gpu or cpu, found \"" + name + "\"");
    return ChipKind::tpu;
  }

  void read_facts(Chip& chip) {
    const json* facts = member(card_, "", "facts");
    if (facts == nullptr) return;
    if (!facts->is_object()) return fail(Code::wrong_type, "/facts", "expected an object");
    std::vector<std::string> keys;
    for (const OverrideKey& key : override_keys()) keys.push_back(key.name);
    only(*facts, "/facts", keys);
    for_each_fact(chip, [&](const FieldInfo& info, auto& member_fact) {
      const auto it = facts->find(std::string(info.key));
      const std::string at = "/facts/" + std::string(info.key);
      if (it == facts->end()) {
        if (is_required(member_fact)) fail(Code::missing_key, "/facts", "missing \"" + std::string(info.key) + "\"");
        return;
      }
      if (!it->is_object()) return fail(Code::wrong_type, at, "expected an object");
      only(*it, at, {"value", "unit", "source", "confidence"});
      const double value = number(*it, at, "value");
      const std::string expected = range_error(info.range, value);
      if (!expected.empty()) fail(Code::bad_value, at + "/value", "expected " + expected);
      const std::string unit = text(*it, at, "unit");
      if (!unit.empty() && unit != info.unit)
        fail(Code::bad_unit, at + "/unit", "expected \"" + std::string(info.unit) + "\", found \"" + unit + "\"");
      assign(member_fact, value, unit, text(*it, at, "source"), confidence(*it, at));
    });
    if (chip.host_nic_rate.has_value() == chip.chip_nic_rate.has_value())
      fail(Code::conflict, "/facts", "expected exactly one of host_nic_rate and chip_nic_rate");
  }

  // "" gives an empty shape.
  Shape shape(const json& value, const std::string& at) {
    if (value.is_string()) {
      const std::string& s = value.get_ref<const std::string&>();
      if (s.empty()) return {};
      if (const std::optional<Shape> parsed = parse_shape(s)) return *parsed;
    }
    fail(Code::bad_value, at, "expected a shape like \"4x4x8\"");
    return {};
  }

  void read_slices(SliceRules& rules) {
    const json* slices = member(card_, "", "slices");
    if (slices == nullptr) return;
    if (!slices->is_object()) return fail(Code::wrong_type, "/slices", "expected an object");
    const std::string at = "/slices";
    only(*slices, at, {"dimensions", "wrap", "wrap_length", "pod", "max_chips", "listed", "source", "confidence"});
    rules.dimensions = static_cast<int>(std::min<std::int64_t>(whole(*slices, at, "dimensions"), 8));
    rules.wrap = wrap(text(*slices, at, "wrap"));
    rules.wrap_length = whole(*slices, at, "wrap_length");
    rules.max_chips = whole(*slices, at, "max_chips");
    if (const json* pod = member(*slices, at, "pod")) rules.pod = shape(*pod, at + "/pod");
    if (const json* listed = member(*slices, at, "listed")) {
      if (!listed->is_array()) fail(Code::wrong_type, at + "/listed", "expected a list of shapes");
      for (std::size_t i = 0; listed->is_array() && i < listed->size(); ++i)
        rules.listed.push_back(shape((*listed)[i], at + "/listed/" + std::to_string(i)));
    }
    rules.source = text(*slices, at, "source");
    rules.confidence = confidence(*slices, at);
    if (rules.pod.size() != static_cast<std::size_t>(rules.dimensions))
      fail(Code::conflict, at + "/pod", "expected as many numbers as dimensions");
  }

  WrapRule wrap(const std::string& name) {
    if (name == "none") return WrapRule::none;
    if (name == "multiples_of_four") return WrapRule::multiples_of_four;
    if (name == "axis_of_wrap_length") return WrapRule::axis_of_wrap_length;
    if (name == "every_axis") return WrapRule::every_axis;
    fail(Code::unknown_name, "/slices/wrap",
         "expected none, multiples_of_four, axis_of_wrap_length or every_axis, found \"" + name + "\"");
    return WrapRule::none;
  }

  const json& card_;
  std::string file_;
  DiagnosticSink sink_;
};

}  // namespace

Chip parse_chip(std::string_view text, const std::string& file) {
  const json card =
      json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (card.is_discarded()) {
    Diagnostic d;
    d.code = Code::syntax;
    d.message = "a chip card must be JSON";
    d.file = file;
    throw ScenarioError({d});
  }
  return CardReader(card, file).read();
}

std::vector<std::string> chip_names() {
  std::vector<std::string> names;
  for (const EmbeddedCard& card : embedded_cards()) names.emplace_back(card.name);
  return names;
}

std::optional<Chip> find_chip(std::string_view name) {
  for (const EmbeddedCard& card : embedded_cards())
    if (card.name == name) {
      Chip chip = parse_chip(card.json, "topologies/catalogue/" + std::string(name) + ".json");
      TPUSIM_CHECK(chip.name == name, "the card " + std::string(name) + " calls itself " + chip.name);
      return chip;
    }
  return std::nullopt;
}

void register_builtin(Registry<Chip>& registry) {
  for (const std::string& name : chip_names()) {
    std::optional<Chip> chip = find_chip(name);
    std::string help = chip->help;
    registry.add(name, std::move(help), std::move(*chip));
  }
}

void register_builtin(Registry<ClusterPreset>& registry) {
  registry.add("dgx-a100", "hosts of 8 x A100 80 GB on NVSwitch, one 200 Gbit/s card per chip", {"a100-80gb", 8});
  registry.add("dgx-h100", "hosts of 8 x H100 on NVSwitch, one 400 Gbit/s card per chip", {"h100", 8});
  registry.add("dgx-h200", "hosts of 8 x H200 on NVSwitch, one 400 Gbit/s card per chip", {"h200", 8});
  registry.add("dgx-b200", "hosts of 8 x B200 on NVSwitch, one 400 Gbit/s card per chip", {"b200", 8});
}

}  // namespace tpusim::topologies
