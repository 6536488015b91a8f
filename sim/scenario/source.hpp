// Where in the user's text each JSON value stands, so that every later diagnostic can say file:line:column.
//
// The JSON library gives no positions and keeps one of two equal keys, so a scanner of our own walks the text. It holds
// no tree: a look-up costs one pass over the text, which is bounded (read.hpp) and happens only when something is
// wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace tpusim::scenario {

// A setting given on the command line, as typed: "mesh.tensor=8" and the pointer it sets, "/mesh/tensor".
struct SetOption {
  std::string pointer;
  std::string text;
};

// What the user wrote.
struct SourceText {
  std::string file;  // as the user named it; "-" for standard input
  std::string text;
  std::vector<SetOption> sets;  // in order; the last for a pointer holds
};

// Fills file, line and column of each diagnostic that has none: of the key for a member of an object, of the value for
// an element of an array. A pointer that is not in the text (a missing key) gets the place of its nearest ancestor; one
// at or under a --set gets the file name "--set mesh.tensor=8" and no line.
void locate(std::vector<Diagnostic>& diagnostics, const SourceText& source);

}  // namespace tpusim::scenario
