// The command `tpusim`, as a function that tests can call: arguments in, text and an exit status out.
//
// Exit status: 0 done; 1 a check failed (verification); 2 the usage or the input is wrong; 3 the plan cannot work (out
// of memory, does not divide, stalls, or beyond a documented bound), with the result still printed where there is one;
// 70 a fault of tpusim's own. The answer goes to `out`, everything about it to `err`.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tpusim::cli {

enum Exit : int { exit_done = 0, exit_check_failed = 1, exit_usage = 2, exit_impossible = 3, exit_internal = 70 };

// Where a command reads and writes, and what is at the other end.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;  // colours
  bool err_is_terminal = false;  // a progress line
  std::size_t width = 96;        // columns of the terminal
};

// `arguments` without the program's name. Never throws.
int run_command(const std::vector<std::string>& arguments, Streams& streams);

}  // namespace tpusim::cli
