// The device mesh: named axes whose sizes multiply to the number of devices. Device numbers are row-major, first axis
// major.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/op.hpp"

namespace tpusim::spmd {

using ir::MeshAxes;  // ordered list of mesh axis indices, major to minor

struct MeshAxis {
  std::string name;  // "fsdp"; sub-axes of a split axis are "tensor.0" (major), "tensor.1" (minor)
  std::int64_t size = 1;
  std::string parent;  // the axis that the user wrote; equal to name when not split
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;  // major to minor
  std::int64_t devices() const;
  std::int64_t size(const MeshAxes& list) const;  // product of the sizes
  // All mesh axes that `name` stands for: itself or its sub-axes, major to minor; empty when the mesh lacks it.
  MeshAxes find(std::string_view name) const;
  std::int64_t coordinate(std::int64_t device, int axis) const;
  // Index of a device in its group over `list` (major to minor), in [0, size(list)).
  std::int64_t index_in(std::int64_t device, const MeshAxes& list) const;
  // The members of a device's replica group over `list`, ordered by index_in.
  std::vector<std::int64_t> group_of(std::int64_t device, const MeshAxes& list) const;
  std::string to_string(const MeshAxes& list) const;  // "fsdp,tensor"
  bool operator==(const Mesh&) const = default;
};

}  // namespace tpusim::spmd
