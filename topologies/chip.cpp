#include "topologies/chip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "topologies/chip_fields.hpp"

namespace tpusim::topologies {

namespace {

constexpr std::pair<Confidence, std::string_view> kConfidences[] = {
    {Confidence::measured, "measured"}, {Confidence::vendor, "vendor"}, {Confidence::paper, "paper"},
    {Confidence::fitted, "fitted"},     {Confidence::guess, "guess"},   {Confidence::scenario, "scenario"},
};

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const OverrideKey& key : override_keys()) names.push_back(key.name);
  return names;
}

}  // namespace

std::string_view confidence_name(Confidence confidence) {
  for (const auto& [value, name] : kConfidences)
    if (value == confidence) return name;
  return "guess";
}

std::optional<Confidence> confidence_from_name(std::string_view name) {
  for (const auto& [value, text] : kConfidences)
    if (text == name) return value;
  return std::nullopt;
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (std::int64_t n : shape) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  std::int64_t number = 0;
  bool digits = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : 'x';
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      digits = true;
      if (number >= (std::int64_t{1} << 31)) return std::nullopt;
    } else if (c == 'x' || c == 'X') {
      if (!digits || number == 0) return std::nullopt;
      shape.push_back(number);
      number = 0;
      digits = false;
    } else {
      return std::nullopt;
    }
  }
  return shape;
}

std::optional<FlopsPerSecond> Chip::peak(Precision precision) const {
  const std::optional<Fact<FlopsPerSecond>>* fact = nullptr;
  switch (precision) {
    case Precision::bf16:
      fact = &peak_bf16;
      break;
    case Precision::f32:
      fact = &peak_f32;
      break;
    case Precision::int8:
      fact = &peak_int8;
      break;
    case Precision::fp8:
      fact = &peak_fp8;
      break;
  }
  if (fact == nullptr || !*fact) return std::nullopt;
  return (*fact)->value;
}

BytesPerSecond Chip::nic_share() const {
  if (chip_nic_rate) return chip_nic_rate->value;
  TPUSIM_CHECK(host_nic_rate.has_value(), "chip " + name + " has no network card");
  return host_nic_rate->value / chips_per_host.value;
}

std::string range_error(FactRange range, double value) {
  const bool finite = std::isfinite(value);
  switch (range) {
    case FactRange::positive:
      // Beyond these, products and quotients of a few such numbers leave what a double can hold.
      if (!finite || !(value >= 1e-30) || value > 1e30) return "a number from 1e-30 to 1e30";
      break;
    case FactRange::non_negative:
      if (!finite || !(value >= 0) || value > 1e30 || (value > 0 && value < 1e-30))
        return "0, or a number from 1e-30 to 1e30";
      break;
    case FactRange::fraction:
      if (!finite || !(value >= 1e-9) || value > 1) return "a number from 1e-9 to 1";
      break;
    case FactRange::count:
      if (!finite || value < 1 || value > 1e9 || value != std::floor(value)) return "a whole number from 1 to 1e9";
      break;
  }
  return {};
}

std::vector<FactRow> facts(const Chip& chip) {
  std::vector<FactRow> rows;
  for_each_fact(chip, [&](const FieldInfo& info, const auto& member) {
    if (const auto* fact = get(member))
      rows.push_back({std::string(info.key), raw(fact->value), fact->unit, fact->source, fact->confidence});
  });
  return rows;
}

std::vector<FactRow> facts(const Chip& chip, const std::vector<std::string>& names) {
  const std::vector<FactRow> all = facts(chip);
  std::vector<FactRow> rows;
  for (const std::string& name : names) {
    const auto row = std::find_if(all.begin(), all.end(), [&](const FactRow& r) { return r.name == name; });
    TPUSIM_CHECK(row != all.end(), "chip " + chip.name + " has no fact " + name);
    rows.push_back(*row);
  }
  return rows;
}

std::vector<OverrideKey> override_keys() {
  std::vector<OverrideKey> keys;
  const Chip chip;
  for_each_fact(chip, [&](const FieldInfo& info, const auto&) {
    keys.push_back({std::string(info.key), std::string(info.unit), std::string(info.help)});
  });
  return keys;
}

Chip apply_overrides(Chip chip, const std::vector<Override>& overrides, const std::string& pointer,
                     DiagnosticSink& sink) {
  for (const Override& override : overrides) {
    const std::string at = pointer + "/" + override.key;
    bool known = false;
    for_each_fact(chip, [&](const FieldInfo& info, auto& member) {
      if (info.key != override.key) return;
      known = true;
      const std::string expected = range_error(info.range, override.value);
      if (!expected.empty()) {
        sink.error(Code::bad_value, at,
                   fmt::format("expected {}{}, found {}", expected,
                               info.unit == "1" ? "" : fmt::format(" in {}", info.unit), override.value));
        return;
      }
      assign(member, override.value, std::string(info.unit), "scenario", Confidence::scenario);
    });
    if (!known) {
      const std::vector<std::string> names = key_names();
      sink.error(Code::unknown_key, at, "a chip has no \"" + override.key + "\"", nearest(override.key, names),
                 nearest_choices(override.key, names));
    }
    if (override.key == "chip_nic_rate") chip.host_nic_rate.reset();
    if (override.key == "host_nic_rate") chip.chip_nic_rate.reset();
  }
  if (chip.hbm_reserved.value >= chip.hbm_capacity.value)
    sink.error(Code::conflict, pointer + "/hbm_capacity",
               "the runtime's reserve (hbm_reserved) leaves no device memory");
  return chip;
}

}  // namespace tpusim::topologies
