// From a Scenario to JSON: every default filled in, in the contract's order.
#pragma once

#include <string>

#include "sim/scenario/scenario.hpp"

namespace tpusim::scenario {

// The scenario as JSON, indented by two spaces, with a newline at the end. Reading it back gives an equal Scenario.
// Sizes, times and rates are plain numbers in bytes, seconds and bytes a second. What has no meaning for the model
// (attention of an MLP), and optionals that are empty, are left out.
std::string to_json(const Scenario& scenario);

}  // namespace tpusim::scenario
