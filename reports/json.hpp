// A result as JSON text: the output contract, and on request the timeline beside it.
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

// result::to_json, with the timeline (the form of result::timeline_to_json) under the key "timeline" when asked for.
std::string json(const result::Result& result, bool with_timeline = false);

}  // namespace tpusim::reports
