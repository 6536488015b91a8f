#include <charconv>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/scenario/bounds.hpp"
#include "sim/scenario/scan.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

void fault(DiagnosticSink& sink, const std::string& set, Code code, std::string pointer, std::string message,
           std::string suggestion = {}) {
  Diagnostic d;
  d.code = code;
  d.pointer = std::move(pointer);
  d.message = std::move(message);
  d.suggestion = std::move(suggestion);
  d.file = "--set " + shown(set);
  sink.add(std::move(d));
}

// Why a setting is no text, empty when it is: the reader's own rule for a string, quotes and controls aside.
std::string not_text(std::string_view set) {
  std::string quoted = "\"";
  for (const char c : set) quoted += static_cast<unsigned char>(c) < 0x80 ? 'x' : c;
  quoted += '"';
  DiagnosticSink faults;
  return scan(quoted, {}, faults) && !faults.has_errors() ? std::string() : faults.all().front().message;
}

// "mesh.tensor" or "/mesh/tensor" to {"mesh", "tensor"}; empty when it is neither.
std::vector<std::string> split_path(std::string_view path) {
  const bool is_pointer = !path.empty() && path.front() == '/';
  if (is_pointer) path.remove_prefix(1);
  std::vector<std::string> out(1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c == (is_pointer ? '/' : '.')) {
      out.emplace_back();
    } else if (is_pointer && c == '~' && i + 1 < path.size() && (path[i + 1] == '0' || path[i + 1] == '1')) {
      out.back() += path[++i] == '0' ? '~' : '/';
    } else {
      out.back() += c;
    }
  }
  for (const std::string& step : out)
    if (step.empty()) return {};
  return out;
}

// JSON where it parses as such, else the text itself: remat=full, "name=\"8\"", mesh={"data":4}.
Json parse_value(const std::string& text, DiagnosticSink& sink, const std::string& set, const std::string& pointer,
                 bool& ok) {
  ok = true;
  const bool structured = !text.empty() && (text.front() == '{' || text.front() == '[' || text.front() == '"');
  DiagnosticSink faults;
  if (!scan(text, {}, faults) || faults.has_errors()) {
    const Diagnostic& first = faults.all().front();
    if (structured || first.code != Code::syntax) {  // NaN, 1e999, equal keys: not meant as text
      fault(sink, set, first.code, pointer, first.message, first.suggestion);
      ok = false;
    }
    return text;
  }
  return Json::parse(text, nullptr, true, true);
}

// Where a plain name stands for an object with that name in it.
std::string name_key(std::string_view pointer) {
  if (pointer == "/model" || pointer == "/cluster/chip") return "preset";
  if (pointer == "/training/optimizer") return "name";
  return {};
}

// The member `step` of `at`, made when missing; null and a fault where there can be none.
Json* enter(Json& at, const std::string& pointer, const std::string& step, const std::string& set,
            DiagnosticSink& sink) {
  if (at.is_string()) {
    const std::string key = name_key(pointer);
    if (!key.empty()) {
      Json whole = Json::object();
      whole[key] = at;
      at = std::move(whole);
    }
  }
  if (at.is_null()) at = Json::object();
  if (at.is_object()) return &at[step];
  if (at.is_array()) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
    if (error == std::errc() && end == step.data() + step.size() && index < at.size()) return &at[index];
    fault(sink, set, Code::bad_value, pointer_to(pointer, step),
          fmt::format("{} has {} elements, counted from 0; \"{}\" is none of them", pointer, at.size(), shown(step)));
    return nullptr;
  }
  fault(sink, set, Code::wrong_type, pointer_to(pointer, step),
        fmt::format("{} is {}, and has nothing inside to set", pointer, describe(at)));
  return nullptr;
}

void apply(const std::string& set, Json& root, SourceText& source, DiagnosticSink& sink) {
  const std::size_t equals = set.find('=');
  const std::string path = set.substr(0, equals);
  if (equals == set.npos || equals == 0) {
    fault(sink, set, Code::syntax, "", "a setting is path=value, as in mesh.tensor=8");
    return;
  }
  if (set.size() > kMaxString) {
    fault(sink, set, Code::too_large, "", fmt::format("a setting of more than {} bytes", kMaxString));
    return;
  }
  if (const std::string wrong = not_text(set); !wrong.empty()) {
    fault(sink, set, Code::syntax, "", wrong);
    return;
  }
  const std::vector<std::string> steps = split_path(path);
  if (steps.empty() || steps.size() > 16) {
    fault(sink, set, Code::syntax, "", fmt::format("\"{}\" is no path such as mesh.tensor", shown(path)));
    return;
  }
  std::string pointer;
  for (const std::string& step : steps) pointer = pointer_to(pointer, step);
  bool ok = false;
  Json value = parse_value(set.substr(equals + 1), sink, set, pointer, ok);
  if (!ok) return;  // before the way to it is made: a null there would be a second fault
  pointer.clear();
  Json* at = &root;
  for (const std::string& step : steps) {
    at = enter(*at, pointer, step, set, sink);
    if (at == nullptr) return;
    pointer = pointer_to(pointer, step);
  }
  *at = std::move(value);
  source.sets.push_back({pointer, set});
}

}  // namespace

void apply_sets(const std::vector<std::string>& sets, Json& root, SourceText& source, DiagnosticSink& sink) {
  if (sets.size() > kMaxSets) {
    fault(sink, sets.front(), Code::too_large, "", fmt::format("more than {} settings", kMaxSets));
    return;
  }
  for (const std::string& set : sets) apply(set, root, source, sink);
}

}  // namespace tpusim::scenario
