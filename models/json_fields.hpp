// Reads the fields of one flat JSON object, collecting every fault. Internal to models.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace tpusim::models {

using Json = nlohmann::ordered_json;

// Text -> JSON object, or nothing and a diagnostic: not JSON (with line and column), no object, longer than 1 MiB,
// nested deeper than 64, the same key twice.
std::optional<Json> parse_object(std::string_view text, const std::string& file, DiagnosticSink& sink);

class Fields {
 public:
  // `pointer`: where the object stands in `file`.
  Fields(const Json& object, std::string pointer, std::string file, DiagnosticSink& sink)
      : object_(object), pointer_(std::move(pointer)), file_(std::move(file)), sink_(sink) {}

  // The value under `key`; nothing where it is missing or null (a diagnostic if `required`) or of another type
  // (always).
  std::optional<std::int64_t> integer(std::string_view key, bool required = false);
  std::optional<double> number(std::string_view key, bool required = false);
  std::optional<bool> flag(std::string_view key, bool required = false);
  std::optional<std::string> text(std::string_view key, bool required = false);
  // One of `names`, as its index.
  std::optional<std::size_t> choice(std::string_view key, const std::vector<std::string>& names, bool required = false);
  bool has(std::string_view key) const;
  // Keys that were never asked for are unknown.
  void refuse_unknown();
  void error(Code code, std::string_view key, std::string message, std::string suggestion = {},
             std::vector<std::string> choices = {});
  void warning(Code code, std::string_view key, std::string message);

 private:
  const Json* find(std::string_view key, bool required);
  void wrong_type(std::string_view key, const char* expected, const Json& found);
  const Json& object_;
  std::string pointer_, file_;
  DiagnosticSink& sink_;
  std::vector<std::string> asked_;
};

}  // namespace tpusim::models
