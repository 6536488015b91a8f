#include "sim/scenario/object_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/scenario/bounds.hpp"
#include "sim/scenario/contract.hpp"
#include "sim/scenario/scan.hpp"

namespace tpusim::scenario {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: above it a double skips integers

std::string unit_words(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "a size (a number of bytes, or text such as \"25 MiB\")";
    case Unit::seconds:
      return "a time (a number of seconds, or text such as \"10 us\")";
    case Unit::bytes_per_second:
      return "a rate (a number of bytes a second, or text such as \"2 GB/s\")";
    case Unit::none:
      break;
  }
  return "a number";
}

std::string_view unit_symbol(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "bytes";
    case Unit::seconds:
      return "s";
    case Unit::bytes_per_second:
      return "bytes/s";
    case Unit::none:
      break;
  }
  return "";
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

// The parser of a unit, brought to one type.
ParsedQuantity<Bytes> parse(std::string_view text, Unit unit) {
  ParsedQuantity<Bytes> out;
  const auto take = [&out](auto parsed) {
    if (parsed.value) out.value = Bytes(parsed.value->value());
    out.code = parsed.code;
    out.message = std::move(parsed.message);
    out.suggestion = std::move(parsed.suggestion);
    out.choices = std::move(parsed.choices);
  };
  switch (unit) {
    case Unit::bytes:
      take(parse_bytes(text));
      break;
    case Unit::seconds:
      take(parse_seconds(text));
      break;
    case Unit::bytes_per_second:
      take(parse_bytes_per_second(text));
      break;
    case Unit::none:
      internal_error(__FILE__, __LINE__, "unit != none", "no text for a number without unit");
  }
  return out;
}

}  // namespace

bool Context::clean(std::string_view pointer) const {
  for (const Diagnostic& d : sink.all())
    if (d.severity == Severity::error && std::string_view(d.pointer).substr(0, pointer.size()) == pointer &&
        (d.pointer.size() == pointer.size() || d.pointer[pointer.size()] == '/'))
      return false;
  return true;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 60;
  if (text.size() <= kShown) return std::string(text);
  std::size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not inside a UTF-8 sequence
  return std::string(text.substr(0, cut)) + "...";
}

std::string describe(const Json& value) {
  if (value.is_string()) return fmt::format("the string \"{}\"", shown(value.get_ref<const std::string&>()));
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_null()) return "null";
  return value.dump();
}

std::string pointer_to(std::string_view parent, std::string_view key) {
  return std::string(parent) + "/" + escape_pointer(key);
}

std::string dotted(std::string_view parent, std::string_view key) {
  std::string out(parent.empty() ? parent : parent.substr(1));
  std::replace(out.begin(), out.end(), '/', '.');
  if (!out.empty()) out += '.';
  return out + std::string(key);
}

ObjectReader::ObjectReader(const Json* value, std::string pointer, std::string_view section_pointer, Context& context)
    : pointer_(std::move(pointer)), context_(context) {
  if (value == nullptr) return;
  if (!value->is_object()) {
    wrong_type(pointer_, "an object", *value);
    return;
  }
  object_ = value;
  const std::vector<std::string>& valid = section(section_pointer).keys;
  for (const auto& member : value->items())
    if (std::find(valid.begin(), valid.end(), member.key()) == valid.end()) report_unknown(member.key(), valid);
}

// In this order: the contract has the key elsewhere; it is another tool's word; it is nearly one of ours, here or
// there.
void ObjectReader::report_unknown(const std::string& key, const std::vector<std::string>& valid) {
  const std::string name = shown(key);
  std::string message = fmt::format("unknown key \"{}\"", name);
  std::string suggestion = nearest(key, valid);
  const std::string_view ours = our_name(key);
  if (!ours.empty() && std::find(valid.begin(), valid.end(), ours) != valid.end()) suggestion = std::string(ours);
  // The start of a longer key: "zero" for "zero_stage".
  for (const std::string& v : valid)
    if (suggestion.empty() && key.size() >= 3 && v.substr(0, key.size()) == key) suggestion = v;
  const bool close = !suggestion.empty() && (ours == suggestion || key.size() > 3);
  for (const bool exact : {true, false}) {
    if (close && !exact) break;
    for (const Section& s : contract()) {
      const std::string match = exact ? key : nearest(ours.empty() ? std::string_view(key) : ours, s.keys);
      if (match.empty() || std::find(s.keys.begin(), s.keys.end(), match) == s.keys.end()) continue;
      const std::string where = pointer_to(s.pointer, match);
      message += exact ? fmt::format("; it belongs in {}", s.pointer.empty() ? "the top level" : s.pointer)
                       : fmt::format("; {} has \"{}\"", s.pointer.empty() ? "the top level" : s.pointer, match);
      context_.sink.error(Code::unknown_key, at(key), message, where, nearest_choices(key, valid));
      return;
    }
  }
  context_.sink.error(Code::unknown_key, at(key), message, suggestion, nearest_choices(key, valid));
}

const Json* ObjectReader::find(std::string_view key) const {
  if (object_ == nullptr) return nullptr;
  const auto it = object_->find(std::string(key));
  return it == object_->end() ? nullptr : &*it;
}

const Json* ObjectReader::present(std::string_view key, std::string_view default_text, Unit unit) {
  if (const Json* v = find(key)) return v;
  context_.defaults.push_back({dotted(pointer_, key), std::string(default_text), std::string(unit_symbol(unit))});
  return nullptr;
}

void ObjectReader::wrong_type(const std::string& where, std::string_view expected, const Json& found,
                              std::string suggestion) {
  context_.sink.error(Code::wrong_type, where, fmt::format("{} is expected, {} found", expected, describe(found)),
                      std::move(suggestion));
}

std::optional<std::int64_t> ObjectReader::integer(const Json& value, const std::string& where, IntRange range) {
  if (!value.is_number()) {
    // A number in quotes is meant as that number.
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const bool digits = !text.empty() && text.size() < 16 && text.find_first_not_of("0123456789") == text.npos;
    wrong_type(where, digits ? "an integer, without quotes," : "an integer", value, digits ? text : "");
    return std::nullopt;
  }
  const double real_value = value.get<double>();
  if (value.is_number_float() && real_value != std::floor(real_value)) {
    context_.sink.error(Code::wrong_type, where, fmt::format("an integer is expected, {} found", value.dump()),
                        number_text(std::max(static_cast<double>(range.minimum), std::round(real_value))));
    return std::nullopt;
  }
  if (real_value < static_cast<double>(range.minimum)) {
    context_.sink.error(Code::bad_value, where,
                        fmt::format("at least {} is expected, {} found", range.minimum, value.dump()),
                        std::to_string(range.minimum));
    return std::nullopt;
  }
  if (real_value > static_cast<double>(range.maximum) || (value.is_number_float() && real_value > kExactIntegers)) {
    context_.sink.error(Code::too_large, where,
                        fmt::format("at most {} is possible, {} found", range.maximum, value.dump()));
    return std::nullopt;
  }
  return value.is_number_float() ? static_cast<std::int64_t>(real_value) : value.get<std::int64_t>();
}

std::optional<double> ObjectReader::real(const Json& value, const std::string& where, RealRange range, Unit unit) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string() && unit != Unit::none) {
    ParsedQuantity<Bytes> parsed = parse(value.get_ref<const std::string&>(), unit);
    if (!parsed) {
      context_.sink.error(parsed.code, where, parsed.message, parsed.suggestion, parsed.choices);
      return std::nullopt;
    }
    number = parsed.value->value();
  } else {
    wrong_type(where, unit_words(unit), value);
    return std::nullopt;
  }
  const bool low = range.above_minimum ? !(number > range.minimum) : !(number >= range.minimum);
  if (low) {
    context_.sink.error(Code::bad_value, where,
                        fmt::format("{} {} is expected, {} found", range.above_minimum ? "more than" : "at least",
                                    number_text(range.minimum), describe(value)));
    return std::nullopt;
  }
  if (number > range.maximum) {
    context_.sink.error(Code::too_large, where,
                        fmt::format("at most {} is possible, {} found", number_text(range.maximum), describe(value)));
    return std::nullopt;
  }
  return number;
}

int ObjectReader::name_index(const Json& value, const std::string& where, const std::vector<std::string>& names,
                             const std::vector<std::string>& planned) {
  if (!value.is_string()) {
    context_.sink.error(Code::wrong_type, where, fmt::format("a name is expected, {} found", describe(value)), {},
                        names);
    return -1;
  }
  const std::string& text = value.get_ref<const std::string&>();
  const auto it = std::find(names.begin(), names.end(), text);
  if (it != names.end()) return static_cast<int>(it - names.begin());
  if (std::find(planned.begin(), planned.end(), text) != planned.end()) {
    context_.sink.error(Code::not_in_version, where, fmt::format("\"{}\" is not in this version", text), {}, names);
    return -1;
  }
  std::string suggestion(our_name(text));
  if (std::find(names.begin(), names.end(), suggestion) == names.end()) suggestion = nearest(text, names);
  context_.sink.error(Code::unknown_name, where, fmt::format("unknown name \"{}\"", shown(text)), suggestion,
                      nearest_choices(text, names));
  return -1;
}

void ObjectReader::read(std::string_view key, bool& out) {
  const Json* v = present(key, out ? "true" : "false");
  if (v == nullptr) return;
  if (v->is_boolean())
    out = v->get<bool>();
  else
    wrong_type(at(key), "true or false", *v);
}

void ObjectReader::read(std::string_view key, std::optional<bool>& out) {
  const Json* v = find(key);
  if (v == nullptr) return;
  if (v->is_boolean())
    out = v->get<bool>();
  else
    wrong_type(at(key), "true or false", *v);
}

void ObjectReader::read(std::string_view key, std::int64_t& out, IntRange range) {
  if (const Json* v = present(key, std::to_string(out)))
    if (const auto n = integer(*v, at(key), range)) out = *n;
}

void ObjectReader::read(std::string_view key, int& out, IntRange range) {
  std::int64_t wide = out;
  read(key, wide, range);
  out = static_cast<int>(wide);
}

void ObjectReader::read(std::string_view key, std::optional<std::int64_t>& out, IntRange range) {
  if (const Json* v = find(key))
    if (const auto n = integer(*v, at(key), range)) out = *n;
}

void ObjectReader::read(std::string_view key, std::string& out) {
  const Json* v = find(key);
  if (v == nullptr) return;
  if (v->is_string())
    out = v->get<std::string>();
  else
    wrong_type(at(key), "a string", *v);
}

void ObjectReader::read(std::string_view key, double& out, RealRange range, Unit unit) {
  if (const Json* v = present(key, number_text(out), unit))
    if (const auto n = real(*v, at(key), range, unit)) out = *n;
}

void ObjectReader::read(std::string_view key, std::optional<double>& out, RealRange range, Unit unit) {
  if (const Json* v = find(key))
    if (const auto n = real(*v, at(key), range, unit)) out = *n;
}

void ObjectReader::read(std::string_view key, Seconds& out, RealRange range) {
  double value = out.value();
  read(key, value, range, Unit::seconds);
  out = Seconds(value);
}

void ObjectReader::read(std::string_view key, std::optional<Seconds>& out, RealRange range) {
  std::optional<double> value;
  read(key, value, range, Unit::seconds);
  if (value) out = Seconds(*value);
}

void ObjectReader::read(std::string_view key, std::optional<BytesPerSecond>& out, RealRange range) {
  std::optional<double> value;
  read(key, value, range, Unit::bytes_per_second);
  if (value) out = BytesPerSecond(*value);
}

void ObjectReader::read(std::string_view key, std::optional<Bytes>& out, RealRange range) {
  std::optional<double> value;
  read(key, value, range, Unit::bytes);
  if (value) out = Bytes(*value);
}

void ObjectReader::read_bytes(std::string_view key, std::int64_t& out, IntRange range) {
  double value = static_cast<double>(out);
  // Sizes of the contract stay below 2^53, so the double is exact.
  read(key, value, {static_cast<double>(range.minimum), static_cast<double>(range.maximum), false}, Unit::bytes);
  if (value != std::floor(value)) {
    context_.sink.error(Code::bad_value, at(key), fmt::format("a whole number of bytes is expected, {} found", value),
                        number_text(std::ceil(value)));
    return;
  }
  out = static_cast<std::int64_t>(value);
}

bool ObjectReader::require(std::string_view key, std::string_view what) {
  if (object_ == nullptr || find(key) != nullptr) return object_ != nullptr;
  context_.sink.error(Code::missing_key, pointer_, fmt::format("\"{}\" is missing: {}", key, what), std::string(key));
  return false;
}

void ObjectReader::refuse(std::string_view key, std::string_view why) {
  if (find(key) != nullptr) context_.sink.error(Code::conflict, at(key), fmt::format("\"{}\" {}", key, why));
}

}  // namespace tpusim::scenario
