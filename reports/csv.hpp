// Two tables of a result as CSV (RFC 4180, newline "\n"): plain numbers, units in the header.
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

// part,seconds,share
std::string step_csv(const result::Result& result);
// collective,axes,algorithm,count,bytes_per_chip,busy_s,exposed_s; axes joined by '+'; "" for a number that is not
// finite.
std::string communication_csv(const result::Result& result);

}  // namespace tpusim::reports
