// What the network of a scenario's cluster is like, and what collectives over it cost: plain data, and its text.
//
// The graph of chips, switches, cards and links is built from the same numbers of the catalogue that the plan's Fabric
// has (topologies/cluster_metrics.hpp says what is measured and what is arithmetic); costs are the planner's own
// estimates (plan::candidates) on the scenario's mesh as a run lays it on the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"
#include "sim/base/verdict.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/session/session.hpp"

namespace tpusim::session {

// Cables of one kind. Each carries `rate` in either direction at the same time.
struct NetworkLinks {
  std::string kind;         // "ICI", "NVLink", "PCIe", "NIC", "DCN"
  std::string between;      // "chip and chip"
  std::int64_t cables = 0;  // of the whole cluster
  BytesPerSecond rate;      // one direction
  Seconds latency;          // of crossing one
};

// The whole cluster, or one slice or host of it. "How" is how a number was found.
struct Network {
  std::int64_t chips = 0, links = 0, switches = 0, cards = 0;  // links: cables
  std::int64_t min_degree = 0, max_degree = 0;                 // links of a chip
  std::int64_t diameter = 0;                                   // links
  double mean_hops = 0;                                        // over ordered pairs of different chips
  bool distances_exact = true;                                 // false: the diameter is at least this
  std::string distances_how;
  BytesPerSecond bisection_lower, bisection_upper;  // one direction; equal where it is exact
  std::string bisection_lower_how, bisection_upper_how;
  std::int64_t bisection_links = 0;  // links that the best halves cut; 0 where they were not counted
  std::int64_t rings = 0, rings_at_most = 0;
  std::string rings_how;
};

// The cheapest candidate for one collective of one size. V is the gathered size (all-gather, reduce-scatter) or that of
// the tensor (all-reduce).
struct CollectiveCost {
  std::string collective;  // "all-gather"
  std::string over;        // "fsdp", "all chips"
  std::int64_t members = 1;
  Bytes size;             // V
  std::string algorithm;  // "2 parts in rotated order: line of 4, then line of 4"
  Seconds start;          // fixed cost of starting a collective
  Seconds alpha, beta;    // latencies of the steps; bytes over the links
  Seconds total() const { return start + alpha + beta; }
  // What each chip has to send at least, over the total: V (n-1)/n, twice that for an all-reduce (nccl-tests, "bus
  // bandwidth", doc/PERFORMANCE.md).
  BytesPerSecond bus() const;
};

struct NetworkAxis {
  std::string name;  // "x", "host"
  std::string form;  // "line of 4 chips", "128 hosts on a switch"
};

struct TopologyReport {
  std::string cluster;     // "1 slice of tpu-v5e 4x4"
  std::string part;        // "slice", "host"
  std::int64_t parts = 1;  // more than one: `one_part` is there
  std::string refusal;     // why `whole` is not there; else empty
  std::optional<Network> whole, one_part;
  std::vector<NetworkAxis> axes;  // as the planner sees the machine, major to minor
  std::vector<NetworkLinks> links;
  std::string placement;              // "fsdp on x, y"
  std::int64_t element_bytes = 0;     // of what the collectives carry: the compute type
  std::vector<CollectiveCost> costs;  // empty on one chip
  Verdict verdict;                    // infeasible: the mesh cannot be used here; no costs
  std::vector<std::string> notes;     // where the plan's view of the machine differs from the graph
  std::vector<Diagnostic> warnings;   // located
};

// Throws ScenarioError like simulate(). Takes at most about 2 s and 500 MB: what would take more is refused in
// `refusal`.
TopologyReport topology(const scenario::Scenario& scenario, const Options& options);

std::string to_text(const TopologyReport& report);

}  // namespace tpusim::session
