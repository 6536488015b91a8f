// How mesh axes lie on the physical axes of the machine.
#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/verdict.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/spmd/mesh.hpp"

namespace tpusim::spmd {

// A mesh axis takes whole physical axes or parts of one. A part: `size` members, `stride` chips apart on that axis
// (stride 1 = the minor part of a split axis: a line unless it is the whole axis; stride > 1 = the major part, which
// strides over the minor part and shares its links with stride - 1 other groups).
struct AxisPart {
  int physical = 0;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  bool operator==(const AxisPart&) const = default;
};

struct Placement {
  std::vector<std::vector<AxisPart>> parts;  // by mesh axis, major to minor; sizes multiply to the mesh axis's size
  // chip(device): the chip that a device number stands for, given the mesh and the fabric.
  std::int64_t chip(std::int64_t device, const Mesh& mesh, const fabric::Fabric& fabric) const;
  bool operator==(const Placement&) const = default;
};

// Mesh axes in order (major to minor) are laid on physical axes so that: every mesh axis is a product of parts; tensor
// prefers the fastest level (chip) and minor position, data and pipeline the slowest (slice, host). Exact search over
// the assignments for up to 8 physical axes with a cost of (level, link, stride) that prefers whole wrapped axes for
// the axes named earlier in `priority` (default: tensor, fsdp, data, pipeline). An assignment that cannot exist (sizes
// do not factor) is a Verdict that names the mesh axis and the physical sizes.
struct PlacementResult {
  Placement placement;
  Verdict verdict;
  std::string description;  // "tensor on x; fsdp on y, z"
};
PlacementResult place(const Mesh& mesh, const fabric::Fabric& fabric, const std::vector<std::string>& priority = {});

}  // namespace tpusim::spmd
