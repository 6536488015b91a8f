// The timeline as Chrome trace-event JSON, which Perfetto (ui.perfetto.dev) opens.
//
// One process for each device class, one thread for each stream, one complete event ("X") for each span, a counter for
// the memory of the fullest class. Times are microseconds since the window's start, exact to the picosecond.
// SOURCE of the format: "Trace Event Format", Google, sections "Complete Events", "Counter Events", "Metadata Events".
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

std::string trace(const result::Result& result);

}  // namespace tpusim::reports
