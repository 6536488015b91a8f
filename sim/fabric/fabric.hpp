// What a planner may know of a machine, as plain data: its physical axes and what a transfer along each costs.
//
// A machine is a grid of chips: every chip has one coordinate on each physical axis (row-major: the last axis is minor,
// neighbours on it have consecutive chip numbers). A TPU slice 4x4x8 has three ICI axes of level `chip`; several slices
// add a DCN axis of level `slice`. A GPU cluster has an axis of level `chip` (the members of a host, joined by a
// switch) and an axis of level `host` (through each chip's or host's network card).
#pragma once

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

struct PhysicalAxis {
  std::string name;  // "x", "y", "z", "chip", "host", "slice"
  std::int64_t size = 1;
  Level level = Level::chip;
  Link link = Link::ring;
  Seconds alpha;        // latency of one hop (ring, line) or of one message through the switch
  BytesPerSecond beta;  // one direction of one link or port, per chip: for a port shared by the chips of a host this is
                        // a chip's share
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
