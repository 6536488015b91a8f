// Reads the members of one JSON object against the contract: types, ranges, units, names, unknown keys. Private.
//
// Every `read` leaves `out` as it is when the key is missing (and then notes the default) or when something is wrong
// (and then reports it); so a reader is a list of calls, and all faults of an object are found in one pass.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/scenario.hpp"

namespace tpusim::scenario {

using Json = nlohmann::ordered_json;

// What the readers of one scenario share.
struct Context {
  DiagnosticSink& sink;
  std::vector<Default>& defaults;
  // Whether nothing at or under the pointer was reported, so that a check of several values may trust it.
  bool clean(std::string_view pointer) const;
};

std::string describe(const Json& value);   // `the string "x"`, "an array", "12"
std::string shown(std::string_view text);  // clipped for a message
std::string pointer_to(std::string_view parent, std::string_view key);
// "/training" + "remat" -> "training.remat"
std::string dotted(std::string_view parent, std::string_view key);

// Bounds of a number; both ends belong to it unless `above_minimum`.
struct IntRange {
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
};
struct RealRange {
  double minimum = 0;
  double maximum = 1;
  bool above_minimum = true;
};

enum class Unit { bytes, seconds, bytes_per_second, none };

class ObjectReader {
 public:
  // `value` may be null (the object is left out: all defaults). Reports a value that is no object, and unknown keys.
  ObjectReader(const Json* value, std::string pointer, std::string_view section_pointer, Context& context);

  const Json* find(std::string_view key) const;  // null when missing
  std::string at(std::string_view key) const { return pointer_to(pointer_, key); }
  const std::string& pointer() const { return pointer_; }
  bool is_object() const { return object_ != nullptr; }

  void read(std::string_view key, bool& out);
  void read(std::string_view key, std::optional<bool>& out);
  void read(std::string_view key, std::int64_t& out, IntRange range);
  void read(std::string_view key, int& out, IntRange range);
  void read(std::string_view key, std::optional<std::int64_t>& out, IntRange range);
  void read(std::string_view key, std::string& out);
  void read(std::string_view key, double& out, RealRange range, Unit unit = Unit::none);
  void read(std::string_view key, std::optional<double>& out, RealRange range, Unit unit = Unit::none);
  void read(std::string_view key, Seconds& out, RealRange range);
  void read(std::string_view key, std::optional<Seconds>& out, RealRange range);
  void read(std::string_view key, std::optional<BytesPerSecond>& out, RealRange range);
  void read(std::string_view key, std::optional<Bytes>& out, RealRange range);
  // A whole number of bytes.
  void read_bytes(std::string_view key, std::int64_t& out, IntRange range);

  // A closed list of names; `planned` ones are refused as "not in this version".
  template <class E>
  void read_name(std::string_view key, E& out, const std::vector<std::string>& planned = {}) {
    if (const Json* v = present(key, to_string(out))) {
      const int i = name_index(*v, at(key), names_of<E>(), planned);
      if (i >= 0) out = static_cast<E>(i);
    }
  }
  template <class E>
  void read_name(std::string_view key, std::optional<E>& out, const std::vector<std::string>& planned = {}) {
    if (const Json* v = find(key)) {
      const int i = name_index(*v, at(key), names_of<E>(), planned);
      if (i >= 0) out = static_cast<E>(i);
    }
  }

  // Reports a missing required key.
  bool require(std::string_view key, std::string_view what);
  // Reports a key that is given but has no meaning here.
  void refuse(std::string_view key, std::string_view why);

  std::optional<std::int64_t> integer(const Json& value, const std::string& where, IntRange range);
  std::optional<double> real(const Json& value, const std::string& where, RealRange range, Unit unit);

 private:
  // The value, or null after noting the default.
  const Json* present(std::string_view key, std::string_view default_text, Unit unit = Unit::none);
  int name_index(const Json& value, const std::string& where, const std::vector<std::string>& names,
                 const std::vector<std::string>& planned);
  void wrong_type(const std::string& where, std::string_view expected, const Json& found, std::string suggestion = {});
  void report_unknown(const std::string& key, const std::vector<std::string>& valid);

  const Json* object_ = nullptr;
  std::string pointer_;
  Context& context_;
};

}  // namespace tpusim::scenario
