#include "sim/result/json_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "sim/result/json.hpp"

namespace tpusim::result {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0) return "0";  // -0 too: the sign of a zero is no information here
  std::array<char, 32> buffer;
  const double magnitude = std::abs(value);
  // Below 1e16 the shortest fixed form is exact digit by digit; to_chars alone would write 100000 as 1e+05.
  const bool fixed = magnitude >= 1e-5 && magnitude < 1e16;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(buffer.data(), end.ptr);
}

namespace {

std::string scalar(const Json& json) {
  if (json.is_number_float()) return number_text(json.get<double>());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_scalar_array(const Json& json) {
  if (!json.is_array()) return false;
  for (const Json& item : json)
    if (item.is_structured()) return false;
  return true;
}

// `depth` < 0: compact.
void write(const Json& json, int depth, std::string& out) {
  if (!json.is_structured()) {
    out += scalar(json);
    return;
  }
  const bool array = json.is_array();
  const bool one_line = depth < 0 || json.empty() || is_scalar_array(json);
  const int inner = depth < 0 ? depth : depth + 1;
  out += array ? '[' : '{';
  bool first = true;
  for (auto it = json.begin(); it != json.end(); ++it) {
    if (!first) out += depth >= 0 && one_line ? ", " : ",";
    first = false;
    if (!one_line) out.append(1, '\n').append(2 * static_cast<std::size_t>(inner), ' ');
    if (!array) out += scalar(Json(it.key())) + (depth < 0 ? ":" : ": ");
    write(it.value(), inner, out);
  }
  if (!one_line) out.append(1, '\n').append(2 * static_cast<std::size_t>(depth), ' ');
  out += array ? ']' : '}';
}

}  // namespace

std::string pretty(const Json& json) {
  std::string out;
  write(json, 0, out);
  return out;
}

std::string compact(const Json& json) {
  std::string out;
  write(json, -1, out);
  return out;
}

}  // namespace tpusim::result
