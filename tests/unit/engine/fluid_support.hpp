// Networks as plain data, run by the engine and by a slow twin that shares no code and no algorithm with it.
#pragma once

#include <vector>

#include "sim/engine/fluid.hpp"

namespace tpusim::engine::testing {

struct FlowCase {
  double start_s = 0, bytes = 0;
  std::vector<int> route;
  std::vector<int> after;  // starts when these have ended (and not before start_s)
  double finish_s = 0;     // expected, where known
  double bound = 0;        // 0: none
};
struct LinkCase {
  double rate = 0, latency = 0;
};
struct NetworkCase {
  const char* name = "";
  std::vector<LinkCase> links;
  std::vector<FlowCase> flows;
};

// When each flow ends, in picoseconds.
std::vector<std::int64_t> run_engine(const NetworkCase& network);
// The same in doubles, in seconds: rates by repeatedly raising all unfrozen flows by the smallest slack (Bertsekas and
// Gallager's own formulation), all flows looked at on every step.
std::vector<double> run_twin(const NetworkCase& network);

}  // namespace tpusim::engine::testing
