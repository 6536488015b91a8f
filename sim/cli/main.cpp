// The program: says what its streams are, and dispatches.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/cli.hpp"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  tpusim::cli::Streams streams{std::cin, std::cout, std::cerr};
  const bool plain = std::getenv("NO_COLOR") != nullptr;
  streams.out_is_terminal = isatty(STDOUT_FILENO) == 1 && !plain;
  streams.err_is_terminal = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60)
    streams.width = size.ws_col < 120 ? size.ws_col : 120;
  return tpusim::cli::run_command(std::vector<std::string>(argv + 1, argv + argc), streams);
}
