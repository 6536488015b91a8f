// `tpusim explain`: what the plan is, and where each number comes from.
#include <ostream>

#include "sim/cli/commands.hpp"
#include "sim/cli/input_output.hpp"
#include "sim/session/session.hpp"

namespace tpusim::cli {
namespace {

class Explain : public Command {
 public:
  void declare(CLI::App& app) override {
    parser =
        app.add_subcommand("explain", "print the plan of a step, each collective's candidates, each number's formula");
    scenario_.declare(*parser);
    parser->footer(
        "Examples:\n"
        "  tpusim explain scenarios/quickstart.json\n"
        "  tpusim explain my.json --set strategies.fsdp.zero_stage=2 | less\n");
  }

  int run(Streams& streams) override {
    DiagnosticSink sink;
    const scenario::Scenario scenario = read_scenario(scenario_, streams, sink);
    print_diagnostics(sink.all(), streams);
    if (sink.has_errors()) return exit_usage;
    session::Options options;
    options.folder = folder_of(scenario_.file);
    try {
      streams.out << session::explain(scenario, options);
    } catch (const ScenarioError& e) {
      print_located(e, scenario, streams);
      DiagnosticSink again;  // said above: only whether it is the plan or the scenario that is at fault
      return session::check(scenario, options, again) ? exit_usage : exit_impossible;
    }
    return exit_done;
  }

 private:
  ScenarioArguments scenario_;
};

}  // namespace

std::unique_ptr<Command> make_explain() {
  return std::make_unique<Explain>();
}

}  // namespace tpusim::cli
