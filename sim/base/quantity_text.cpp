#include "sim/base/quantity_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace tpusim {
namespace {

constexpr std::size_t kMaxTextBytes = 64;

enum class Kind { size, time, rate, compute };

// value = digits x 10^exponent x multiplier, in B, s, B/s or FLOP/s.
struct Unit {
  std::string symbol;
  int exponent;
  double multiplier;
};

struct Prefix {
  const char* symbol;
  int exponent;
  double multiplier;
};

constexpr std::array<Prefix, 14> kPrefixes = {{{"", 0, 1},
                                               {"k", 3, 1},
                                               {"K", 3, 1},
                                               {"M", 6, 1},
                                               {"G", 9, 1},
                                               {"T", 12, 1},
                                               {"P", 15, 1},
                                               {"E", 18, 1},
                                               {"Ki", 0, 0x1p10},
                                               {"Mi", 0, 0x1p20},
                                               {"Gi", 0, 0x1p30},
                                               {"Ti", 0, 0x1p40},
                                               {"Pi", 0, 0x1p50},
                                               {"Ei", 0, 0x1p60}}};

void add_prefixed(std::vector<Unit>& units, const std::string& stem, double multiplier, bool binary) {
  for (const Prefix& p : kPrefixes) {
    if (p.multiplier != 1 && !binary) continue;
    units.push_back({p.symbol + stem, p.exponent, p.multiplier * multiplier});
  }
}

// Every accepted spelling; the customary one of each unit comes first, since the nearest name prefers earlier entries.
std::vector<Unit> units_of(Kind kind) {
  std::vector<Unit> units;
  switch (kind) {
    case Kind::size:
      add_prefixed(units, "B", 1, true);
      for (const char* stem : {"b", "bit"}) add_prefixed(units, stem, 0.125, true);
      units.insert(units.end(), {{"byte", 0, 1}, {"bytes", 0, 1}, {"bits", 0, 0.125}});
      break;
    case Kind::rate:
      add_prefixed(units, "B/s", 1, true);
      for (const char* stem : {"b/s", "bit/s", "bps"}) add_prefixed(units, stem, 0.125, true);
      break;
    case Kind::time:
      units = {{"s", 0, 1},        {"ms", -3, 1},      {"us", -6, 1},  {"ns", -9, 1},  {"ps", -12, 1},
               {"\u00b5s", -6, 1}, {"\u03bcs", -6, 1}, {"min", 0, 60}, {"h", 0, 3600}, {"d", 0, 86400}};
      break;
    case Kind::compute:
      for (const char* stem : {"FLOP/s", "FLOPs/s", "FLOPS"}) add_prefixed(units, stem, 1, false);
      break;
  }
  return units;
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::size:
      return "a size";
    case Kind::time:
      return "a time";
    case Kind::rate:
      return "a rate of bytes";
    case Kind::compute:
      return "a rate of FLOPs";
  }
  return "a quantity";
}

std::vector<std::string> customary_units(Kind kind) {
  switch (kind) {
    case Kind::size:
      return {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"};
    case Kind::time:
      return {"ps", "ns", "us", "ms", "s", "min", "h", "d"};
    case Kind::rate:
      return {"B/s", "MB/s", "GB/s", "TB/s", "MiB/s", "GiB/s", "Mb/s", "Gb/s"};
    case Kind::compute:
      return {"FLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"};
  }
  return {};
}

const Unit* find_unit(const std::vector<Unit>& units, std::string_view symbol) {
  for (const Unit& u : units)
    if (u.symbol == symbol) return &u;
  return nullptr;
}

// The unit that was probably meant: words people write, a size where a rate belongs, else the nearest spelling.
std::string likely_unit(Kind kind, std::string_view wrong) {
  struct Word {
    Kind kind;
    const char* wrong;
    const char* right;
  };
  static constexpr std::array<Word, 17> kWords = {{{Kind::time, "sec", "s"},
                                                   {Kind::time, "secs", "s"},
                                                   {Kind::time, "second", "s"},
                                                   {Kind::time, "seconds", "s"},
                                                   {Kind::time, "msec", "ms"},
                                                   {Kind::time, "usec", "us"},
                                                   {Kind::time, "m", "min"},
                                                   {Kind::time, "minute", "min"},
                                                   {Kind::time, "minutes", "min"},
                                                   {Kind::time, "hr", "h"},
                                                   {Kind::time, "hour", "h"},
                                                   {Kind::time, "hours", "h"},
                                                   {Kind::time, "day", "d"},
                                                   {Kind::time, "days", "d"},
                                                   {Kind::compute, "TOPS", "TFLOP/s"},
                                                   {Kind::compute, "TOP/s", "TFLOP/s"},
                                                   {Kind::compute, "TF", "TFLOP/s"}}};
  for (const Word& w : kWords)
    if (w.kind == kind && wrong == w.wrong) return w.right;
  const std::vector<Unit> units = units_of(kind);
  const std::string text(wrong);
  if (kind == Kind::rate && find_unit(units, text + "/s") != nullptr) return text + "/s";
  if (kind == Kind::rate && text.size() > 2 && text.substr(text.size() - 2) == "ps") {
    const std::string slashed = text.substr(0, text.size() - 2) + "/s";  // GBps
    if (find_unit(units, slashed) != nullptr) return slashed;
  }
  if (kind == Kind::size && text.size() > 2 && text.substr(text.size() - 2) == "/s") {
    const std::string size = text.substr(0, text.size() - 2);
    if (find_unit(units, size) != nullptr) return size;
  }
  if (kind == Kind::size || kind == Kind::rate) {
    const std::string bytes = text + (kind == Kind::size ? "B" : "B/s");  // "16 Gi", "16 G"
    if (find_unit(units, bytes) != nullptr) return bytes;
  }
  std::vector<std::string> symbols;
  for (const Unit& u : units) symbols.push_back(u.symbol);
  return nearest(wrong, symbols);
}

struct Split {
  std::string mantissa;
  std::string_view exponent;  // digits after 'e' with their sign, or empty
  std::string_view unit;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Splits "1.5e3 GB" into "1.5", "3", "GB". Nothing when the text does not begin with a number.
std::optional<Split> split(std::string_view text) {
  Split out;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '+') ++i;
  const std::size_t begin = i;
  if (i < text.size() && text[i] == '-') ++i;
  std::size_t digits = 0;
  bool point = false;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.')
      point = true;
    else
      ++digits;
  }
  if (digits == 0) return std::nullopt;
  out.mantissa = std::string(text.substr(begin, i - begin));
  // An 'e' or 'E' with no digits behind it is a unit: "5 EB".
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
    if (j < text.size() && is_digit(text[j])) {
      const std::size_t from = text[i + 1] == '+' ? i + 2 : i + 1;
      while (j < text.size() && is_digit(text[j])) ++j;
      out.exponent = text.substr(from, j - from);
      i = j;
    }
  }
  while (i < text.size() && text[i] == ' ') ++i;
  out.unit = text.substr(i);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string example_of(Kind kind) {
  switch (kind) {
    case Kind::size:
      return "25 MiB";
    case Kind::time:
      return "10 us";
    case Kind::rate:
      return "2 GB/s";
    case Kind::compute:
      return "312 TFLOP/s";
  }
  return "";
}

template <class Q>
ParsedQuantity<Q> refuse(Kind kind, Code code, std::string message, std::string suggestion = {}) {
  ParsedQuantity<Q> out;
  out.code = code;
  out.message = std::move(message);
  out.suggestion = std::move(suggestion);
  if (code == Code::bad_unit) out.choices = customary_units(kind);
  return out;
}

// The unit is none of this kind: says what it is instead, if it is a unit at all.
template <class Q>
ParsedQuantity<Q> refuse_unit(Kind kind, std::string_view text, const Split& parts) {
  std::string message;
  for (const Kind other : {Kind::size, Kind::time, Kind::rate, Kind::compute}) {
    if (find_unit(units_of(other), parts.unit) == nullptr) continue;
    message = fmt::format("\"{}\" is {}, but {} such as \"{}\" is expected here", text, kind_name(other),
                          kind_name(kind), example_of(kind));
    break;
  }
  if (message.empty())
    message = fmt::format("\"{}\" has an unknown unit \"{}\"; {} such as \"{}\" is expected here", text, parts.unit,
                          kind_name(kind), example_of(kind));
  std::string suggestion = likely_unit(kind, parts.unit);
  if (!suggestion.empty()) {
    const std::string_view number = trimmed(text.substr(0, text.size() - parts.unit.size()));
    suggestion = fmt::format("{} {}", number, suggestion);
  }
  return refuse<Q>(kind, Code::bad_unit, std::move(message), std::move(suggestion));
}

template <class Q>
ParsedQuantity<Q> parse(Kind kind, std::string_view whole) {
  if (whole.size() > kMaxTextBytes)
    return refuse<Q>(kind, Code::bad_value,
                     fmt::format("{} such as \"{}\" is expected, not a text of {} bytes", kind_name(kind),
                                 example_of(kind), whole.size()));
  const std::string_view text = trimmed(whole);
  const std::optional<Split> parts = split(text);
  if (!parts)
    return refuse<Q>(kind, Code::bad_value,
                     fmt::format("\"{}\" does not begin with a number; {} such as \"{}\" is expected here", text,
                                 kind_name(kind), example_of(kind)));
  Unit unit{"", 0, 1};
  if (!parts->unit.empty()) {
    const std::vector<Unit> units = units_of(kind);
    const Unit* found = find_unit(units, parts->unit);
    if (found == nullptr) return refuse_unit<Q>(kind, text, *parts);
    unit = *found;
  }
  int exponent = 0;
  bool finite = true;
  if (!parts->exponent.empty())
    finite = std::from_chars(parts->exponent.data(), parts->exponent.data() + parts->exponent.size(), exponent).ec ==
             std::errc{};
  // Beyond this no unit brings the number back into a double's range, and the sum below cannot overflow.
  finite = finite && std::abs(exponent) < 10000;
  double value = 0;
  if (finite) {
    const std::string digits = fmt::format("{}e{}", parts->mantissa, exponent + unit.exponent);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    finite = error == std::errc{} && end == digits.data() + digits.size();
    value *= unit.multiplier;
  }
  if (!finite || !std::isfinite(value))
    return refuse<Q>(kind, Code::bad_value, fmt::format("\"{}\" is too large or too small to compute with", text));
  if (value < 0 || std::signbit(value))
    return refuse<Q>(kind, Code::bad_value, fmt::format("\"{}\" is negative; {} cannot be", text, kind_name(kind)));
  ParsedQuantity<Q> out;
  out.value = Q(value);
  return out;
}

}  // namespace

ParsedQuantity<Bytes> parse_bytes(std::string_view text) {
  return parse<Bytes>(Kind::size, text);
}
ParsedQuantity<Seconds> parse_seconds(std::string_view text) {
  return parse<Seconds>(Kind::time, text);
}
ParsedQuantity<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse<BytesPerSecond>(Kind::rate, text);
}
ParsedQuantity<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse<FlopsPerSecond>(Kind::compute, text);
}

}  // namespace tpusim
