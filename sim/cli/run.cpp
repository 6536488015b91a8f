// `tpusim run`: a scenario in, the answer out.
#include <filesystem>
#include <ostream>

#include "reports/html.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"
#include "reports/trace.hpp"
#include "sim/base/control.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/input_output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/session/session.hpp"

namespace tpusim::cli {
namespace {

// Whether two names lead to one file, which need not be there yet.
bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
                                              fs::weakly_canonical(fs::absolute(b, ignored), ignored);
}

// Whether a file that is there is the other one. A device (/dev/null, a terminal) may well be both.
bool is_same(const std::string& path, const std::string& other) {
  std::error_code ignored;
  return std::filesystem::equivalent(path, other, ignored) && !std::filesystem::is_character_file(path, ignored);
}

class Run : public Command {
 public:
  void declare(CLI::App& app) override {
    parser = app.add_subcommand("run", "simulate one training step, verify it, and say what holds it back");
    scenario_.declare(*parser);
    parser->add_flag("--json", json_, "print the result as JSON, alone on standard output, instead of a table");
    const auto named = [](const std::string& file) {
      if (file == "-") return std::string("standard output belongs to the table or the JSON; a file name is expected");
      return std::string(file.empty() ? "a file name is expected" : "");
    };
    parser->add_option("--html", html_, "write a report that needs no network")->check(named)->type_name("FILE");
    parser->add_option("--trace", trace_, "write the timeline for ui.perfetto.dev")->check(named)->type_name("FILE");
    parser->add_flag("--no-verify", no_verify_, "skip the execution of a shrunken copy with real numbers");
    parser->footer(
        "Examples:\n"
        "  tpusim run scenarios/quickstart.json\n"
        "  tpusim run scenarios/palm-540b.json --no-verify --json\n"
        "  tpusim run my.json --set mesh.fsdp=8 --set mesh.tensor=2 --html my.html --trace my.trace\n"
        "  tpusim new | tpusim run -\n"
        "\n"
        "Exit status: 0 done; 1 verification failed; 2 the input is wrong, or a file cannot be written;\n"
        "3 the plan cannot work, with the result still printed where there is one.\n");
  }

  int run(Streams& streams) override {
    DiagnosticSink sink;
    if (!outputs_are_free({scenario_.file == "-" ? "/dev/stdin" : scenario_.file}, streams)) return exit_usage;
    const scenario::Scenario scenario = read_scenario(scenario_, streams, sink);
    print_diagnostics(sink.all(), streams);
    if (sink.has_errors()) return exit_usage;
    const std::string& imported = scenario.model.huggingface;
    if (!imported.empty() && !outputs_are_free({imported, folder_of(scenario_.file) + "/" + imported}, streams))
      return exit_usage;
    Progress progress(streams);
    session::Options options;
    options.verify = !no_verify_;
    options.timeline = !html_.empty() || !trace_.empty();
    options.folder = folder_of(scenario_.file);
    options.progress = [&progress](std::string_view stage, double fraction) { progress.step(stage, fraction); };
    result::Result result;
    try {
      result = session::simulate(scenario, options);
    } catch (const ScenarioError& e) {
      progress.erase();
      print_located(e, scenario, streams);
      return exit_usage;
    }
    progress.erase();
    return report(result, streams);
  }

 private:
  // Whether the report and the trace can be written without losing each other, standard output, or one of `inputs`.
  bool outputs_are_free(const std::vector<std::string>& inputs, Streams& streams) const {
    if (!html_.empty() && !trace_.empty() && same_file(html_, trace_)) {
      streams.err << "tpusim run: --html and --trace name the same file, \"" << without_controls(html_, "?")
                  << "\"; each needs its own\n";
      return false;
    }
    const auto refuse = [&](const std::string& written, std::string_view why) {
      streams.err << "tpusim run: \"" << without_controls(written, "?") << "\" is " << why
                  << "; another file name is expected\n";
      return false;
    };
    for (const std::string* written : {&html_, &trace_}) {
      if (written->empty()) continue;
      if (is_same(*written, "/dev/stdout"))
        return refuse(*written, "standard output, which belongs to the table or the JSON");
      for (const std::string& input : inputs)
        if (is_same(*written, input)) return refuse(*written, "read by this run and would be lost");
    }
    return true;
  }

  int report(const result::Result& r, Streams& streams) {
    // The answer first: a file that cannot be written loses nothing.
    if (json_) {
      streams.out << reports::json(r);
    } else {
      reports::TableOptions table;
      table.width = streams.width;
      table.colour = streams.out_is_terminal;
      streams.out << reports::table(r, table);
    }
    streams.out.flush();
    bool written = true;
    if (!html_.empty()) written = write_file(html_, reports::html(r), "the report (--html)", streams) && written;
    if (!trace_.empty()) written = write_file(trace_, reports::trace(r), "the timeline (--trace)", streams) && written;
    if (!r.verdict.feasible) return exit_impossible;
    if (r.verification && !r.verification->passed) return exit_check_failed;
    return written ? exit_done : exit_usage;
  }

  ScenarioArguments scenario_;
  bool json_ = false, no_verify_ = false;
  std::string html_, trace_;
};

}  // namespace

std::unique_ptr<Command> make_run() {
  return std::make_unique<Run>();
}

}  // namespace tpusim::cli
