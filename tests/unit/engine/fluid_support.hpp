// Networks as plain data, run by the engine and by a slow twin that shares no code and no algorithm with it.
#pragma once

#include <string>
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
  bool non_blocking = false;
};
struct NetworkCase {
  std::string name;
  std::vector<LinkCase> links;
  std::vector<FlowCase> flows;
};

// Reads a file in the format that its head describes (simgrid_cases.txt).
std::vector<NetworkCase> read_cases(const std::string& path);

// When each flow ends, in picoseconds. With `violations`, after every instant at which a flow starts, moves or ends,
// the conditions of max-min fairness are looked at, and each breach is written there: no shared link carries more than
// its capacity, and every moving flow either has its bound (or a non-blocking link's) or crosses a full link on which
// no flow is faster.
std::vector<std::int64_t> run_engine(const NetworkCase& network, std::vector<std::string>* violations = nullptr);
// The same in doubles, in seconds: rates by repeatedly raising all unfrozen flows by the smallest slack (Bertsekas and
// Gallager's own formulation), all flows looked at on every step.
std::vector<double> run_twin(const NetworkCase& network);
// Max-min rates of the flows named by `moving`, 0 for the others: all unfrozen rates are raised by the smallest slack
// of a link or a bound.
std::vector<double> twin_rates(const NetworkCase& network, const std::vector<std::size_t>& moving);

}  // namespace tpusim::engine::testing
