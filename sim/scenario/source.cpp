#include "sim/scenario/source.hpp"

#include <map>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/scan.hpp"

namespace tpusim::scenario {
namespace {

bool is_at_or_under(std::string_view pointer, std::string_view ancestor) {
  return pointer.substr(0, ancestor.size()) == ancestor &&
         (pointer.size() == ancestor.size() || pointer[ancestor.size()] == '/');
}

// A model or chip may be given by its preset's name alone: then the name is the value of the key above.
void drop_preset(std::string& pointer, std::size_t given) {
  constexpr std::string_view kPreset = "/preset";
  if (given + kPreset.size() == pointer.size() && std::string_view(pointer).substr(given) == kPreset)
    pointer.resize(given);
}

// The --set option that a pointer owes its value to, or null.
const SetOption* set_of(const std::string& pointer, const SourceText& source) {
  for (std::size_t i = source.sets.size(); i-- > 0;)
    if (is_at_or_under(pointer, source.sets[i].pointer)) return &source.sets[i];
  return nullptr;
}

}  // namespace

void locate(std::vector<Diagnostic>& diagnostics, const SourceText& source) {
  // Each wanted pointer and the longest prefix of it that the text has, with its offset.
  struct Best {
    std::size_t length = 0, offset = 0;
    bool found = false;
  };
  std::map<std::string, Best> wanted;
  for (Diagnostic& d : diagnostics) {
    if (!d.file.empty()) continue;
    if (const SetOption* set = d.line == 0 ? set_of(d.pointer, source) : nullptr) {
      d.file = "--set " + set->text;
      if (set->text.find("={") == std::string::npos) drop_preset(d.pointer, set->pointer.size());
      continue;
    }
    d.file = source.file;
    if (d.line == 0) wanted[d.pointer];
  }
  if (wanted.empty() || source.text.empty() || source.text.size() > kMaxText) return;
  const OnValue visit = [&wanted](const std::string& pointer, std::size_t offset) {
    for (auto& [sought, best] : wanted)
      if (is_at_or_under(sought, pointer) && (!best.found || pointer.size() >= best.length))
        best = {pointer.size(), offset, true};
    return true;
  };
  DiagnosticSink ignored;  // the text was scanned before: its own faults are known
  scan(source.text, visit, ignored);
  for (Diagnostic& d : diagnostics) {
    if (d.line != 0 || d.file != source.file) continue;
    const auto it = wanted.find(d.pointer);
    if (it == wanted.end() || !it->second.found) continue;
    const Place place = place_of(source.text, it->second.offset);
    d.line = place.line;
    d.column = place.column;
    drop_preset(d.pointer, it->second.length);
  }
}

}  // namespace tpusim::scenario
