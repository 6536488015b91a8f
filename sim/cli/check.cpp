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
  ScenarioArguments scenario_;
};

}  // namespace

std::unique_ptr<Command> make_check() {
  return std::make_unique<Check>();
}

}  // namespace tpusim::cli
