// `tpusim list`: what the names in a scenario can be.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "sim/base/control.hpp"
#include "sim/cli/commands.hpp"
#include "sim/session/session.hpp"

namespace tpusim::cli {
namespace {

class List : public Command {
 public:
  void declare(CLI::App& app) override {
    parser = app.add_subcommand("list", "list models, chips, topologies, strategies or collectives");
    parser->add_option("KIND", kind_, "models, chips, topologies, strategies or collectives; all when left out");
    parser->footer(
        "Examples:\n"
        "  tpusim list models\n"
        "  tpusim list chips\n");
  }

  int run(Streams& streams) override {
    const std::vector<std::string> kinds = session::list_kinds();
    if (kind_.empty()) {
      bool first = true;
      for (const std::string& kind : kinds) {
        if (!first) streams.out << '\n';
        first = false;
        streams.out << kind << '\n';
        print(kind, "  ", streams);
      }
      return exit_done;
    }
    if (std::find(kinds.begin(), kinds.end(), kind_) == kinds.end()) {
      const std::string near = nearest(kind_, kinds);
      streams.err << fmt::format("tpusim list: no kind is called \"{}\"{}\nkinds: {}\n", without_controls(kind_, "?"),
                                 near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near),
                                 fmt::join(kinds, ", "));
      return exit_usage;
    }
    print(kind_, "", streams);
    return exit_done;
  }

 private:
  // name, what it is, and its numbers on a line of their own.
  static void print(const std::string& kind, const std::string& indent, Streams& streams) {
    const std::vector<session::ListEntry> entries = session::list(kind);
    std::size_t width = 0;
    for (const session::ListEntry& e : entries) width = std::max(width, e.name.size());
    for (const session::ListEntry& e : entries) {
      streams.out << fmt::format("{}{:<{}}  {}\n", indent, e.name, width, e.help);
      if (!e.detail.empty()) streams.out << fmt::format("{}{:<{}}  {}\n", indent, "", width, e.detail);
    }
  }

  std::string kind_;
};

}  // namespace

std::unique_ptr<Command> make_list() {
  return std::make_unique<List>();
}

}  // namespace tpusim::cli
