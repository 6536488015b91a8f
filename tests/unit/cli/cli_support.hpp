// The command, called in the test's own process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/cli.hpp"

namespace tpusim::cli {

struct Said {
  int status = -1;
  std::string out, err;
};

inline Said call(const std::vector<std::string>& arguments, const std::string& standard_input = "") {
  std::istringstream in(standard_input);
  std::ostringstream out, err;
  Streams streams{in, out, err};
  Said said;
  said.status = run_command(arguments, streams);
  said.out = out.str();
  said.err = err.str();
  return said;
}

}  // namespace tpusim::cli
