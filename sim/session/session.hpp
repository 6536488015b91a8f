// The library's front door: a Scenario goes in, a Result comes out. No state is kept between calls, nothing is printed,
// and two sessions can run in two threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/result/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace tpusim::session {

struct Options {
  bool verify = true;      // execute a shrunken copy of the job and compare (result.verification)
  bool diagnose = true;    // replay with each resource twice as fast, and play neighbouring settings (result.diagnosis)
  bool timeline = false;   // fill result.timeline, for --html and --trace
  std::string folder;      // where relative paths in the scenario start (its own folder)
  std::uint64_t seed = 1;  // of everything that is random in verification
  int threads = 1;         // that verification's devices run on; no result depends on it
  // Called between stages of the work with what is being done and how much of it is done, 0..1.
  std::function<void(std::string_view stage, double fraction)> progress;
};

// Throws ScenarioError, with located diagnostics, when the scenario names something that does not exist or contradicts
// itself; a plan that cannot work is a Result whose verdict says so, with every number that could still be had.
// CapacityError: a named refusal.
result::Result simulate(const scenario::Scenario& scenario, const Options& options);

// Everything that is wrong with a scenario beyond its reading: unknown names, axes that do not divide, memory. Adds to
// `sink`; the verdict is returned as simulate() would give it (without timing or verification).
Verdict check(const scenario::Scenario& scenario, const Options& options, DiagnosticSink& sink);

// Names that no catalogue has (model, chip, cluster preset), for a scenario that is wrong in other ways too, so that
// all faults of a file are told in one run.
void check_names(const scenario::Scenario& scenario, DiagnosticSink& sink);

// The StepProgram, each collective's candidates with their alpha-beta terms, where shardings come from, each number's
// formula.
std::string explain(const scenario::Scenario& scenario, const Options& options);

struct ListEntry {
  std::string name;
  std::string help;
  std::string detail;  // numbers, one line; may be empty
};
// kind: one of list_kinds(). ScenarioError (unknown_name, with the nearest) otherwise.
std::vector<ListEntry> list(std::string_view kind);
std::vector<std::string> list_kinds();  // models, chips, topologies, strategies, collectives

}  // namespace tpusim::session
