// A strict JSON scanner with positions: what source.cpp and parse.cpp are made of. Private to this room.
//
// It checks everything that has to be known before a tree is built: grammar (RFC 8259, plus `//` comments), depth and
// number of values, equal keys, numbers that no double holds. It calls back once for each value with its JSON pointer,
// and keeps nothing. Recursion is bounded by kMaxDepth.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.hpp"

namespace tpusim::scenario {

// Line and column of a byte: 1-based; a column counts UTF-8 characters, a tab is one.
struct Place {
  int line = 0;
  int column = 0;
};
Place place_of(std::string_view text, std::size_t offset);

// Called with a value's pointer and the offset of its key, or of the value itself in an array and at the top. Returns
// false to stop.
using OnValue = std::function<bool(const std::string& pointer, std::size_t offset)>;

// Reports every fault that can be told apart (a trailing comma, NaN, equal keys ...) and stops at the first after which
// the structure is lost. Sets the diagnostics' line and column. Returns whether a tree can be built: equal keys are
// faults, but the rest can still be read.
bool scan(std::string_view text, const OnValue& on_value, DiagnosticSink& sink);

// "~" and "/" in a key as RFC 6901 wants them.
std::string escape_pointer(std::string_view key);

}  // namespace tpusim::scenario
