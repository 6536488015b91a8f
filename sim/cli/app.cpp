#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <ostream>

#include "sim/base/check.hpp"
#include "sim/base/control.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/version.hpp"

namespace tpusim::cli {
namespace {

constexpr const char* kDescription =
    "How long is one training step of this model on this cluster under this strategy, does it fit,\n"
    "what holds it back, and is what was timed also what would be computed?\n";

constexpr const char* kFooter =
    "Examples:\n"
    "  tpusim new my.json                                    a commented scenario to start from\n"
    "  tpusim run scenarios/quickstart.json                  a table\n"
    "  tpusim run my.json --html my.html --trace my.trace    a report, and a timeline for ui.perfetto.dev\n"
    "  tpusim run my.json --set mesh.fsdp=8 --set mesh.tensor=2\n"
    "  tpusim check my.json                                  all that is wrong with a scenario\n"
    "  tpusim topology my.json                               links, bisection, cost of collectives\n"
    "  tpusim list chips                                     what the names in a scenario can be\n"
    "\n"
    "Exit status: 0 done; 1 a check failed; 2 the usage or the input is wrong; 3 the plan cannot work\n"
    "(out of memory, does not divide, stalls); 70 a fault of tpusim's own.\n";

std::vector<std::string> option_names(const CLI::App& parser) {
  std::vector<std::string> out;
  for (const CLI::Option* option : parser.get_options())
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  return out;
}

// A misspelt command or option is told with the nearest that there is.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments,
                       const std::vector<std::unique_ptr<Command>>& commands) {
  const Command* chosen = nullptr;
  std::vector<std::string> names;
  for (const auto& c : commands) {
    names.push_back(c->parser->get_name());
    if (c->parser->parsed()) chosen = c.get();
  }
  if (chosen == nullptr) {
    std::string text;
    const auto first = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& a) { return a.empty() || a.front() != '-'; });
    if (first == arguments.end()) {
      const std::string near = arguments.empty() ? "" : nearest(arguments[0], option_names(app));
      text =
          fmt::format("tpusim: {}{}\n", arguments.empty() ? "a command is expected" : "no such option: " + arguments[0],
                      near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
    } else {
      const std::string near = nearest(*first, names);
      text = fmt::format("tpusim: no command is called \"{}\"{}\n", *first,
                         near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
    }
    return text + fmt::format("commands: {}; tpusim --help says more\n", fmt::join(names, ", "));
  }
  const std::string name = chosen->parser->get_name();
  const std::vector<std::string> options = option_names(*chosen->parser);
  std::string what = error.what();
  for (const std::string& a : arguments) {
    if (a.size() < 2 || a[0] != '-') continue;
    const std::string option = a.substr(0, a.find('='));
    if (option[1] == '-' && std::find(options.begin(), options.end(), option) != options.end()) continue;
    const std::string near = nearest(option, options);
    what = fmt::format("no such option: {}{}", option, near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
    break;
  }
  return fmt::format("tpusim {}: {}\ntpusim {} --help says how it is used\n", name, what, name);
}

int parse_and_run(const std::vector<std::string>& arguments, Streams& streams) {
  CLI::App app(kDescription, "tpusim");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("tpusim {}", kVersion));
  app.require_subcommand(1);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_run());
  commands.push_back(make_check());
  commands.push_back(make_explain());
  commands.push_back(make_topology());
  commands.push_back(make_list());
  commands.push_back(make_new());
  for (const auto& c : commands) c->declare(app);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, streams.out, streams.err);
    return exit_done;
  } catch (const CLI::ParseError& error) {
    streams.err << without_controls(usage_text(app, error, arguments, commands), "?", "\n");
    return exit_usage;
  }
  for (const auto& c : commands)
    if (c->parser->parsed()) return c->run(streams);
  return exit_usage;
}

}  // namespace

int guarded(const std::function<int()>& work, Streams& streams) {
  try {
    return work();
  } catch (const ScenarioError& e) {
    streams.err << e.what() << '\n';
    return exit_usage;
  } catch (const CapacityError& e) {
    streams.err << "tpusim: " << e.what() << "; such a plan is beyond what can be simulated\n";
    return exit_impossible;
  } catch (const std::bad_alloc&) {
    streams.err << "tpusim: this machine has too little memory to simulate that plan\n";
    return exit_impossible;
  } catch (const std::exception& e) {
    streams.err << "tpusim: " << e.what() << '\n';
  } catch (...) {
    streams.err << "tpusim: a fault without a name; please report it\n";
  }
  return exit_internal;
}

int run_command(const std::vector<std::string>& arguments, Streams& streams) {
  int status = guarded([&] { return parse_and_run(arguments, streams); }, streams);
  streams.out.flush();
  if (!streams.out.good()) {
    streams.err << "tpusim: standard output cannot be written to\n";
    if (status == exit_done) status = exit_usage;
  }
  return status;
}

}  // namespace tpusim::cli
