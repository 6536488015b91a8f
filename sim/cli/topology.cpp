// `tpusim topology`: what the network of a scenario's cluster is like, and what collectives over it cost.
#include "sim/session/topology.hpp"

#include <ostream>

#include "sim/cli/commands.hpp"
#include "sim/cli/input_output.hpp"

namespace tpusim::cli {
namespace {

class Topology : public Command {
 public:
  void declare(CLI::App& app) override {
    parser =
        app.add_subcommand("topology", "print the cluster's links, diameter, bisection, rings, cost of collectives");
    scenario_.declare(*parser);
    parser->footer(
        "Examples:\n"
        "  tpusim topology scenarios/quickstart.json\n"
        "  tpusim topology my.json --set cluster.topology=8x8 --set mesh.fsdp=64\n"
        "\n"
        "Exit status: 0 done; 2 the input is wrong; 3 the mesh cannot be used on this cluster, with\n"
        "the rest still printed.\n");
  }

  int run(Streams& streams) override {
    DiagnosticSink sink;
    const scenario::Scenario scenario = read_scenario(scenario_, streams, sink);
    print_diagnostics(sink.all(), streams);
    if (sink.has_errors()) return exit_usage;
    session::Options options;
    options.folder = folder_of(scenario_.file);
    try {
      const session::TopologyReport report = session::topology(scenario, options);
      print_diagnostics(report.warnings, streams);
      streams.out << session::to_text(report);
      if (report.verdict) return exit_done;
      streams.err << obstacle(report.verdict, scenario);
      return exit_impossible;
    } catch (const ScenarioError& e) {
      print_located(e, scenario, streams);
      return exit_usage;
    }
  }

 private:
  ScenarioArguments scenario_;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<Topology>();
}

}  // namespace tpusim::cli
