// `tpusim check`: all that is wrong with a scenario.
#include <fmt/format.h>

#include <ostream>

#include "sim/cli/commands.hpp"
#include "sim/cli/input_output.hpp"
#include "sim/session/session.hpp"

namespace tpusim::cli {
namespace {

class Check : public Command {
 public:
  void declare(CLI::App& app) override {
    parser = app.add_subcommand("check", "say all that is wrong with a scenario, without simulating it");
    scenario_.declare(*parser);
    parser->footer(
        "Examples:\n"
        "  tpusim check my.json\n"
        "  tpusim check my.json --set mesh.tensor=8\n"
        "\n"
        "Exit status: 0 nothing is wrong; 2 the input is wrong; 3 the plan cannot work.\n");
  }

  int run(Streams& streams) override {
    DiagnosticSink sink;
    const scenario::Scenario scenario = read_scenario(scenario_, streams, sink);
    Verdict verdict;
    if (!sink.has_errors()) {
      session::Options options;
      options.folder = folder_of(scenario_.file);
      DiagnosticSink deeper;
      verdict = session::check(scenario, options, deeper);
      scenario::locate(deeper.all(), scenario.source);
      for (const Diagnostic& d : deeper.all()) sink.add(d);
    }
    print_diagnostics(sink.all(), streams);
    if (!verdict.feasible) {
      if (!sink.has_errors()) streams.err << obstacle(verdict, scenario);
      return exit_impossible;
    }
    if (sink.has_errors()) return exit_usage;
    streams.out << fmt::format("{}: nothing is wrong\n", scenario_.file == "-" ? "standard input" : scenario_.file);
    return exit_done;
  }

 private:
  // "s.json:7:3: /mesh: the plan cannot work: out of memory; needs ..., has ..."
  static std::string obstacle(const Verdict& verdict, const scenario::Scenario& scenario) {
    std::vector<Diagnostic> place(1);
    place[0].pointer = verdict.pointer;
    scenario::locate(place, scenario.source);
    std::string where = place[0].file;
    if (place[0].line > 0) where += fmt::format(":{}:{}", place[0].line, place[0].column);
    if (!verdict.pointer.empty()) where += ": " + verdict.pointer;
    std::string what = fmt::format("{}: the plan cannot work: {}", where, verdict.reason);
    if (!verdict.needed.empty()) what += fmt::format("; needed: {}", verdict.needed);
    if (!verdict.available.empty()) what += fmt::format("; available: {}", verdict.available);
    return what + "\n";
  }

  ScenarioArguments scenario_;
};

}  // namespace

std::unique_ptr<Command> make_check() {
  return std::make_unique<Check>();
}

}  // namespace tpusim::cli
