#include "sim/base/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/control.hpp"

namespace tpusim {
namespace {

constexpr int kMaxErrors = 20;
constexpr int kMaxWarnings = 20;
constexpr std::size_t kMaxChoices = 12;
// What a user wrote is quoted in messages: a key of a megabyte must neither flood the terminal nor slow the search.
constexpr std::size_t kMaxShownBytes = 600;
constexpr std::size_t kMaxComparedBytes = 64;

// Of a UTF-8 sequence of 1 to 3 bytes.
unsigned code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  if (sequence.size() == 2) return (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  return (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
}

// Control characters would let a file drive the terminal that shows the message, so they are spelt out.
std::string printable(std::string_view text) {
  std::string out;
  const bool clipped = text.size() > kMaxShownBytes;
  std::size_t end = clipped ? kMaxShownBytes : text.size();
  // Never cut inside a UTF-8 sequence: step back over its continuation bytes.
  while (clipped && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  for (std::size_t i = 0; i < end; ++i) {
    const std::size_t length = control_bytes(text.substr(i, end - i));
    if (length == 0) {
      out += text[i];
      continue;
    }
    out += fmt::format("\\u{:04x}", code_point(text.substr(i, length)));
    i += length - 1;
  }
  if (clipped) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

// Lower case and '-' for '_', so that "TPU_V5P" is at distance 0 from "tpu-v5p".
std::string folded(std::string_view text) {
  std::string out(text.substr(0, kMaxComparedBytes));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return out;
}

// Damerau–Levenshtein distance in its optimal-string-alignment form: insert, delete, replace, swap two neighbours.
// Source: F. Damerau, "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// (distance, place in `valid`), nearest first; of equal distances the one that shares the longest beginning with what
// was typed
// ("tpu-v5" means "tpu-v5e" before "tpu-v2"), then the order of the registry.
std::vector<std::pair<std::size_t, std::size_t>> by_distance(std::string_view wrong,
                                                             const std::vector<std::string>& valid) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  const std::string sought = folded(wrong);
  for (std::size_t i = 0; i < valid.size(); ++i) order.emplace_back(edit_distance(sought, folded(valid[i])), i);
  const auto shared = [&](std::size_t i) {
    const std::string name = folded(valid[i]);
    std::size_t n = 0;
    while (n < name.size() && n < sought.size() && name[n] == sought[n]) ++n;
    return n;
  };
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return std::make_tuple(a.first, sought.size() - shared(a.second), a.second) <
           std::make_tuple(b.first, sought.size() - shared(b.second), b.second);
  });
  return order;
}

std::string_view choices_label(Code code) {
  if (code == Code::unknown_key || code == Code::missing_key || code == Code::duplicate_key) return "valid keys";
  if (code == Code::unknown_name) return "valid names";
  if (code == Code::bad_unit) return "valid units";
  return "valid values";
}

std::string format_all(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    if (!out.empty()) out += '\n';
    out += format(d);
  }
  return out;
}

}  // namespace

std::string_view code_name(Code code) {
  switch (code) {
    case Code::syntax:
      return "syntax";
    case Code::nesting:
      return "nesting";
    case Code::duplicate_key:
      return "duplicate-key";
    case Code::unknown_key:
      return "unknown-key";
    case Code::missing_key:
      return "missing-key";
    case Code::wrong_type:
      return "wrong-type";
    case Code::bad_value:
      return "bad-value";
    case Code::bad_unit:
      return "bad-unit";
    case Code::unknown_name:
      return "unknown-name";
    case Code::not_divisible:
      return "not-divisible";
    case Code::mesh_mismatch:
      return "mesh-mismatch";
    case Code::conflict:
      return "conflict";
    case Code::not_in_version:
      return "not-in-version";
    case Code::too_large:
      return "too-large";
    case Code::io:
      return "io";
    case Code::unlisted:
      return "unlisted";
  }
  internal_error(__FILE__, __LINE__, "code", "a diagnostic code without a name");
}

std::string format(const Diagnostic& d) {
  std::string out;
  if (!d.file.empty() || d.line > 0) {
    out += d.file.empty() ? "<input>" : printable(d.file);
    if (d.line > 0) out += fmt::format(":{}", d.line);
    if (d.line > 0 && d.column > 0) out += fmt::format(":{}", d.column);
    out += ": ";
  }
  out += d.severity == Severity::error ? "error: " : "warning: ";
  if (!d.pointer.empty()) out += printable(d.pointer) + " ";
  out += fmt::format("[{}]\n  {}", code_name(d.code), printable(d.message));
  // Of what is missing the suggestion is the key itself, which the message names.
  if (!d.suggestion.empty() && d.code != Code::missing_key)
    out += fmt::format("; did you mean \"{}\"?", printable(d.suggestion));
  if (!d.choices.empty()) {
    out += fmt::format("\n  {}: ", choices_label(d.code));
    const std::size_t shown = std::min(d.choices.size(), kMaxChoices);
    for (std::size_t i = 0; i < shown; ++i) out += (i > 0 ? ", " : "") + printable(d.choices[i]);
    if (shown < d.choices.size()) out += fmt::format(" and {} more", d.choices.size() - shown);
  }
  return out;
}

void DiagnosticSink::add(Diagnostic diagnostic) {
  const bool is_error = diagnostic.severity == Severity::error;
  const auto warnings = static_cast<int>(diagnostics_.size()) - std::min(errors_, kMaxErrors);
  if (is_error) ++errors_;
  if (is_error ? errors_ <= kMaxErrors : warnings < kMaxWarnings) {
    diagnostics_.push_back(std::move(diagnostic));
    return;
  }
  if (!is_error || errors_ != kMaxErrors + 1) return;
  for (auto d = diagnostics_.rbegin(); d != diagnostics_.rend(); ++d) {
    if (d->severity != Severity::error) continue;
    d->message += fmt::format(" (only the first {} faults are listed; there are more)", kMaxErrors);
    return;
  }
}

void DiagnosticSink::error(Code code, std::string pointer, std::string message, std::string suggestion,
                           std::vector<std::string> choices) {
  Diagnostic d;
  d.code = code;
  d.pointer = std::move(pointer);
  d.message = std::move(message);
  d.suggestion = std::move(suggestion);
  d.choices = std::move(choices);
  add(std::move(d));
}

void DiagnosticSink::warning(Code code, std::string pointer, std::string message) {
  Diagnostic d;
  d.code = code;
  d.severity = Severity::warning;
  d.pointer = std::move(pointer);
  d.message = std::move(message);
  add(std::move(d));
}

void DiagnosticSink::throw_if_errors() const {
  if (has_errors()) throw ScenarioError(diagnostics_);
}

ScenarioError::ScenarioError(std::vector<Diagnostic> all)
    : std::runtime_error(format_all(all)), diagnostics(std::move(all)) {}

std::string nearest(std::string_view wrong, const std::vector<std::string>& valid) {
  const auto order = by_distance(wrong, valid);
  const std::size_t allowed = std::max<std::size_t>(1, wrong.size() / 3);
  if (order.empty() || order.front().first > allowed || wrong.size() > kMaxComparedBytes) return "";
  return valid[order.front().second];
}

std::vector<std::string> nearest_choices(std::string_view wrong, const std::vector<std::string>& valid) {
  std::vector<std::string> out;
  for (const auto& [distance, index] : by_distance(wrong, valid)) out.push_back(valid[index]);
  return out;
}

}  // namespace tpusim
