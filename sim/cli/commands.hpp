// One class a command, one file a class: it adds its options to the parser, and runs. Private.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/cli/cli.hpp"

namespace tpusim::cli {

class Command {
 public:
  virtual ~Command() = default;
  // Declares the subcommand; what it binds to lives in *this.
  virtual void declare(CLI::App& app) = 0;
  virtual int run(Streams& streams) = 0;
  CLI::App* parser = nullptr;  // set by declare
};

// Does the work, and turns whatever it throws into words and an exit status.
int guarded(const std::function<int()>& work, Streams& streams);

std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_topology();
std::unique_ptr<Command> make_list();
std::unique_ptr<Command> make_new();

}  // namespace tpusim::cli
