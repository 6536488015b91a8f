// Results made up for the tests of reports: nothing here was simulated, but every sum that the contract states holds.
#pragma once

#include "sim/result/result.hpp"

namespace tpusim::reports::samples {

// GPT-3 175B on 512 A100s: 8 pipeline stages under 1F1B, about 20,000 spans, every section filled.
result::Result pipeline();
// The least that a run gives: one chip, no verification, no timeline, no collectives, no diagnosis.
result::Result minimal();
// Names that try to break out of markup, numbers that are not finite, a plan that does not fit, failed verification.
result::Result hostile();
// Small enough for a golden table: 4x4 v5e.
result::Result quickstart();

}  // namespace tpusim::reports::samples
