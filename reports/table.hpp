// A result as a table for a terminal: every line carries its unit.
#pragma once

#include <cstddef>
#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

struct TableOptions {
  std::size_t width = 96;  // columns, at least 60
  bool colour = false;     // ANSI: bold headings, green and red verdicts
};

std::string table(const result::Result& result, const TableOptions& options = {});

}  // namespace tpusim::reports
