// What is wrong with an input, and where: the form of every message about a file that a user wrote.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim {

// Closed list; docs of each code live in sim/base/README.md.
enum class Code {
  syntax,          // not JSON
  nesting,         // nested too deeply
  duplicate_key,   // the same key twice in one object
  unknown_key,     // no such key here
  missing_key,     // a required key is not there
  wrong_type,      // a number where a string was expected, ...
  bad_value,       // out of range, not finite, not positive
  bad_unit,        // a quantity whose unit does not fit
  unknown_name,    // a registry has no such entry
  not_divisible,   // a mesh axis or a batch does not divide a dimension
  mesh_mismatch,   // the mesh does not multiply to the chips
  conflict,        // two settings exclude each other
  not_in_version,  // part of the contract, not built yet
  too_large,       // beyond a documented bound
  io,              // a file cannot be read or written
  unlisted,        // warning: a slice shape the provider does not list, ...
};

std::string_view code_name(Code code);  // "unknown-key"

enum class Severity { error, warning };

struct Diagnostic {
  Code code = Code::bad_value;
  Severity severity = Severity::error;
  std::string pointer;               // RFC 6901 JSON pointer, "" for the whole document
  std::string message;               // says what was expected and what was found
  std::string suggestion;            // the nearest valid choice, or empty
  std::vector<std::string> choices;  // up to twelve valid ones
  std::string file;                  // as the user named it; may be empty
  int line = 0;                      // 1-based; 0 when unknown
  int column = 0;
  bool operator==(const Diagnostic&) const = default;
};

// scenario.json:14:7: error: /cluster/topologi [unknown-key]
//   unknown key "topologi"; did you mean "topology"?
//   valid keys: chip, topology, slices
std::string format(const Diagnostic& diagnostic);

// Collects every fault of one input. Stops growing at 20 errors and says so in the last one.
class DiagnosticSink {
 public:
  void add(Diagnostic diagnostic);
  // Convenience for an error.
  void error(Code code, std::string pointer, std::string message, std::string suggestion = {},
             std::vector<std::string> choices = {});
  void warning(Code code, std::string pointer, std::string message);
  bool has_errors() const { return errors_ > 0; }
  const std::vector<Diagnostic>& all() const { return diagnostics_; }
  std::vector<Diagnostic>& all() { return diagnostics_; }
  // Throws ScenarioError when there is an error.
  void throw_if_errors() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  int errors_ = 0;
};

// The input is wrong. what() holds all formatted diagnostics.
struct ScenarioError : std::runtime_error {
  explicit ScenarioError(std::vector<Diagnostic> diagnostics);
  std::vector<Diagnostic> diagnostics;
};

// The valid name nearest to `wrong` (Damerau–Levenshtein, blind to case and to '-' against '_'), or "" when none is
// within max(1, length/3) edits.
std::string nearest(std::string_view wrong, const std::vector<std::string>& valid);
// All valid names, nearest first. format() shows twelve and says how many more there are.
std::vector<std::string> nearest_choices(std::string_view wrong, const std::vector<std::string>& valid);

}  // namespace tpusim
