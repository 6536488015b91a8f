#include "models/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace tpusim::models {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;
constexpr int kMaxDepth = 64;

void add(DiagnosticSink& sink, const std::string& file, Code code, std::string pointer, std::string message,
         int line = 0, int column = 0) {
  Diagnostic d;
  d.code = code;
  d.file = file;
  d.pointer = std::move(pointer);
  d.message = std::move(message);
  d.line = line;
  d.column = column;
  sink.add(std::move(d));
}

// Nesting by brackets outside strings: the parser below must not be handed what would take it too deep.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!in_string && (c == '}' || c == ']'))
      --depth;
  }
  return deepest;
}

std::pair<int, int> line_and_column(std::string_view text, std::size_t byte) {
  int line = 1, column = 1;
  for (std::size_t i = 0; i < std::min(byte, text.size()); ++i) {
    ++column;
    if (text[i] != '\n') continue;
    ++line;
    column = 1;
  }
  return {line, column};
}

}  // namespace

std::optional<Json> parse_object(std::string_view text, const std::string& file, DiagnosticSink& sink) {
  if (text.size() > kMaxText) {
    add(sink, file, Code::too_large, "", fmt::format("{} bytes; at most {} are read", text.size(), kMaxText));
    return std::nullopt;
  }
  if (depth_of(text) > kMaxDepth) {
    add(sink, file, Code::nesting, "", fmt::format("nested deeper than {} levels", kMaxDepth));
    return std::nullopt;
  }
  std::vector<std::set<std::string>> seen;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end && !seen.empty()) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.empty() && !seen.back().insert(parsed.get<std::string>()).second &&
        twice.empty())
      twice = parsed.get<std::string>();
    return true;
  };
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& e) {
    const auto [line, column] = line_and_column(text, e.byte > 0 ? e.byte - 1 : 0);
    add(sink, file, Code::syntax, "", "not JSON: a value, name, comma or bracket is missing or wrong here", line,
        column);
    return std::nullopt;
  } catch (const Json::exception&) {
    add(sink, file, Code::bad_value, "", "a number beyond the range of a double");
    return std::nullopt;
  }
  if (!twice.empty()) {
    add(sink, file, Code::duplicate_key, "", fmt::format("the key \"{}\" twice in one object", twice));
    return std::nullopt;
  }
  if (!json.is_object()) {
    add(sink, file, Code::wrong_type, "", fmt::format("expected an object, found {}", json.type_name()));
    return std::nullopt;
  }
  return json;
}

void Fields::error(Code code, std::string_view key, std::string message, std::string suggestion,
                   std::vector<std::string> choices) {
  Diagnostic d;
  d.code = code;
  d.file = file_;
  d.pointer = pointer_ + "/" + std::string(key);
  d.message = std::move(message);
  d.suggestion = std::move(suggestion);
  d.choices = std::move(choices);
  sink_.add(std::move(d));
}

void Fields::warning(Code code, std::string_view key, std::string message) {
  Diagnostic d;
  d.code = code;
  d.severity = Severity::warning;
  d.file = file_;
  d.pointer = pointer_ + "/" + std::string(key);
  d.message = std::move(message);
  sink_.add(std::move(d));
}

bool Fields::has(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found != object_.end() && !found->is_null();
}

const Json* Fields::find(std::string_view key, bool required) {
  asked_.emplace_back(key);
  if (has(key)) return &*object_.find(std::string(key));
  if (required) error(Code::missing_key, key, fmt::format("the key \"{}\" is required", key));
  return nullptr;
}

void Fields::wrong_type(std::string_view key, const char* expected, const Json& found) {
  error(Code::wrong_type, key, fmt::format("expected {}, found {}", expected, found.type_name()));
}

std::optional<std::int64_t> Fields::integer(std::string_view key, bool required) {
  const Json* value = find(key, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    error(Code::too_large, key, "beyond 64 bits");
    return std::nullopt;
  }
  if (value->is_number_integer()) return value->get<std::int64_t>();
  // 4096.0 and 1e3 are whole numbers too.
  if (value->is_number_float()) {
    const double d = value->get<double>();
    if (std::floor(d) == d && std::abs(d) <= 0x1p53) return static_cast<std::int64_t>(d);
    error(Code::bad_value, key, fmt::format("expected a whole number, found {}", d));
    return std::nullopt;
  }
  wrong_type(key, "a whole number", *value);
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view key, bool required) {
  const Json* value = find(key, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  wrong_type(key, "a number", *value);
  return std::nullopt;
}

std::optional<bool> Fields::flag(std::string_view key, bool required) {
  const Json* value = find(key, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong_type(key, "true or false", *value);
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view key, bool required) {
  const Json* value = find(key, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong_type(key, "a text", *value);
  return std::nullopt;
}

std::optional<std::size_t> Fields::choice(std::string_view key, const std::vector<std::string>& names, bool required) {
  const std::optional<std::string> name = text(key, required);
  if (!name) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == *name) return i;
  error(Code::unknown_name, key, fmt::format("unknown name \"{}\"", *name), nearest(*name, names),
        nearest_choices(*name, names));
  return std::nullopt;
}

void Fields::refuse_unknown() {
  for (const auto& item : object_.items())
    if (std::find(asked_.begin(), asked_.end(), item.key()) == asked_.end())
      error(Code::unknown_key, item.key(), fmt::format("unknown key \"{}\"", item.key()), nearest(item.key(), asked_),
            nearest_choices(item.key(), asked_));
}

}  // namespace tpusim::models
