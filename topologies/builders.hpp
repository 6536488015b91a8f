// From what a user asks for ("4x4x8 of tpu-v5p", "16 hosts of h100") to the machine that is planned for and timed.
//
// TPU: a slice is a grid of chips with neighbour links; an axis is a ring where the generation's rule says so, else a
// line. Several slices are joined by the data-centre network (DCN): an outermost axis "slice", each chip with its share
// of its host's card. GPU and CPU: an outer axis "host" (each chip's network card) and an inner axis "chip" (NVSwitch).
// Axes of size 1 are left out; a single chip keeps one axis of size 1. Twisted tori are not modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/registry.hpp"
#include "sim/fabric/fabric.hpp"
#include "topologies/chip.hpp"

namespace tpusim::topologies {

enum class ClusterKind { slices, hosts };

struct ClusterRequest {
  Chip chip;                                   // after overrides
  Shape slice_shape;                           // TPU: "topology"
  std::int64_t slices = 1;                     // TPU
  std::int64_t hosts = 0;                      // GPU, CPU
  std::optional<std::int64_t> chips_per_host;  // default: the chip's own
  std::string pointer = "/cluster";            // where the request stands in the user's file
};

struct Cluster {
  Chip chip;
  fabric::Fabric fabric;  // beta of an axis = rate x efficiency: what a long transfer achieves
  ClusterKind kind = ClusterKind::slices;
  Shape slice_shape;        // as asked for, size-1 axes included; {chips_per_host} for hosts
  std::int64_t slices = 1;  // 1 for hosts
  std::int64_t hosts = 1;   // in all; a TPU slice of fewer chips than a host holds has one
  std::int64_t chips_per_host = 1;
  bool listed = true;  // false: the provider does not list this slice shape (a warning was given)
  std::int64_t chips() const { return fabric.chips(); }
  bool operator==(const Cluster&) const = default;
};

// Bounds on what input can make big.
inline constexpr std::int64_t max_cluster_chips = std::int64_t{1} << 20;

// Errors (wrong number of dimensions, beyond the pod, topology for a GPU, hosts for a TPU, too many chips) and warnings
// (unlisted shape, more chips on a switch than a host has) go to `sink`, at request.pointer + "/topology", "/hosts",
// ... nullopt after an error.
std::optional<Cluster> build(const ClusterRequest& request, DiagnosticSink& sink);

// Which axes of a slice are rings, by the generation's rule; one entry per dimension of `shape`.
std::vector<bool> wrapped_axes(const SliceRules& rules, const Shape& shape);

// What `list topologies` shows.
struct TopologyKind {
  std::string request;  // an example of the request, as JSON
  std::string axes;     // which physical axes it gives
};
void register_builtin(Registry<TopologyKind>& registry);

}  // namespace tpusim::topologies
