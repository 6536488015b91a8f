// What commands share: reading a scenario, showing what is wrong, writing a file. Private.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/verdict.hpp"
#include "sim/cli/cli.hpp"
#include "sim/scenario/scenario.hpp"

namespace tpusim::cli {

// The arguments FILE and --set, which several commands have.
struct ScenarioArguments {
  std::string file;
  std::vector<std::string> sets;
  void declare(CLI::App& parser);
};

// Reads a file, or standard input for "-". Faults and warnings go to the sink.
scenario::Scenario read_scenario(const ScenarioArguments& arguments, Streams& streams, DiagnosticSink& sink);

// Prints each diagnostic, and for more than one how many there are.
void print_diagnostics(const std::vector<Diagnostic>& diagnostics, Streams& streams);

// The diagnostics of an error, with their places in the scenario.
void print_located(const ScenarioError& error, const scenario::Scenario& scenario, Streams& streams);

// Why a plan cannot work, in one line: "s.json:7:3: /mesh: the plan cannot work: out of memory; needed: ...; available:
// ...".
std::string obstacle(const Verdict& verdict, const scenario::Scenario& scenario);

// Where relative paths of a scenario start: its own folder; "." for standard input.
std::string folder_of(const std::string& file);

// Writes a whole file or none: beside it first, then in its place. Something that is no regular file (/dev/stdout) is
// written as it is. Returns false after saying why it cannot be.
bool write_file(const std::string& path, const std::string& content, std::string_view option, Streams& streams);

}  // namespace tpusim::cli
