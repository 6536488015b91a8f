// What a planner may know of a machine, as plain data: its physical axes and what a transfer along each costs.
//
// A machine is a grid of chips: every chip has one coordinate on each physical axis (row-major: the last axis is minor,
// neighbours on it have consecutive chip numbers). A TPU slice 4x4x8 has three ICI axes of level `chip`; several slices
// add a DCN axis of level `slice`. A GPU cluster has an axis of level `chip` (the members of a host, joined by a
// switch) and an axis of level `host` (through each chip's or host's network card).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace tpusim::fabric {

enum class Level { chip, host, slice };

// How the members along one axis are joined.
enum class Link {
  ring,     // neighbour links, closed: torus axis with wrap-around; every chip has one link in each direction
  line,     // neighbour links, open: mesh axis without wrap-around
  switched  // every member has one full-duplex port into a non-blocking switch (NVSwitch, leaf/spine, DCN)
};

// How the members of one line of a group carry out a collective among themselves.
enum class Algorithm : std::uint8_t {
  ring,                // one way round
  bidirectional_ring,  // both ways, the shortest way round
  line,                // both ways along an open line
  halving_doubling,    // ceil(log2 n) steps, each over twice the distance (through a switch)
  direct,              // everyone to everyone in one step (through a switch)
  double_tree,         // an all-reduce up and down two trees, each with half of the data, in a pipeline
  in_network           // an all-reduce whose sums and copies the switch makes, in a pipeline
};

// The form in which NCCL sends: `ll` 4 bytes of data with a 4-byte flag, `ll128` 120 with 8, `simple` without flags but
// with a barrier. Source: NVIDIA/nccl src/graph/tuning.cc.
enum class Protocol : std::uint8_t { none, ll, ll128, simple };

// A way in which the machine's collective library works along a switched axis.
struct Offer {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::none;
  Seconds base;         // once for each collective
  Seconds alpha;        // of one step
  BytesPerSecond beta;  // one direction of one member's port
  bool operator==(const Offer&) const = default;
};
constexpr std::size_t max_offers = 12;

struct PhysicalAxis {
  std::string name;  // "x", "y", "z", "chip", "host", "slice"
  std::int64_t size = 1;
  Level level = Level::chip;
  Link link = Link::ring;
  Seconds alpha;        // latency of one hop (ring, line) or of one message through the switch
  BytesPerSecond beta;  // one direction of one link or port, per chip: for a port shared by the chips of a host this is
                        // a chip's share
  // Of a switched axis, at most max_offers; without any it is rings with this alpha and beta.
  std::vector<Offer> offers = {};
  bool operator==(const PhysicalAxis&) const = default;
};

struct Fabric {
  std::vector<PhysicalAxis> axes;  // major to minor; their sizes multiply to the number of chips
  std::int64_t chips_per_host = 1;
  Seconds collective_overhead;  // fixed cost of starting one collective, on top of its steps
  std::int64_t chips() const;   // product of axis sizes, overflow-checked
  bool operator==(const Fabric&) const = default;
};

}  // namespace tpusim::fabric
