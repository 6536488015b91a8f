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
        "Exit status: 0 nothing is wrong; 2 something is.\n");
  }

  int run(Streams& streams) override {
    DiagnosticSink sink;
    const scenario::Scenario scenario = read_scenario(scenario_, streams, sink);
    if (!sink.has_errors()) {
      DiagnosticSink deeper;
      session::check(scenario, deeper);
      scenario::locate(deeper.all(), scenario.source);
      for (const Diagnostic& d : deeper.all()) sink.add(d);
    }
    print_diagnostics(sink.all(), streams);
    if (sink.has_errors()) return exit_usage;
    streams.out << fmt::format("{}: nothing is wrong\n", scenario_.file == "-" ? "standard input" : scenario_.file);
    return exit_done;
  }

 private:
  ScenarioArguments scenario_;
};

}  // namespace

std::unique_ptr<Command> make_check() { return std::make_unique<Check>(); }

}  // namespace tpusim::cli
