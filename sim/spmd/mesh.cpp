#include "sim/spmd/mesh.hpp"

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::spmd {

std::int64_t Mesh::devices() const {
  std::int64_t n = 1;
  for (const MeshAxis& axis : axes) n = checked_mul(n, axis.size, "the number of devices of the mesh");
  return n;
}

std::int64_t Mesh::size(const MeshAxes& list) const {
  std::int64_t n = 1;
  for (const std::uint8_t axis : list) n = checked_mul(n, axes.at(axis).size, "the size of a replica group");
  return n;
}

MeshAxes Mesh::find(std::string_view name) const {
  MeshAxes found;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name || axes[i].parent == name) found.push_back(static_cast<std::uint8_t>(i));
  return found;
}

std::int64_t Mesh::coordinate(std::int64_t device, int axis) const {
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > static_cast<std::size_t>(axis) + 1;) stride *= axes[i].size;
  return device / stride % axes.at(static_cast<std::size_t>(axis)).size;
}

std::int64_t Mesh::index_in(std::int64_t device, const MeshAxes& list) const {
  std::int64_t index = 0;
  for (const std::uint8_t axis : list) index = index * axes.at(axis).size + coordinate(device, axis);
  return index;
}

std::vector<std::int64_t> Mesh::group_of(std::int64_t device, const MeshAxes& list) const {
  std::vector<std::int64_t> stride(axes.size(), 1);
  for (std::size_t i = axes.size(); i-- > 1;) stride[i - 1] = stride[i] * axes[i].size;
  std::int64_t base = device;
  for (const std::uint8_t axis : list) base -= coordinate(device, axis) * stride[axis];
  const std::int64_t members = size(list);
  std::vector<std::int64_t> group(static_cast<std::size_t>(members), base);
  for (std::int64_t m = 0; m < members; ++m) {
    std::int64_t rest = m;
    for (std::size_t i = list.size(); i-- > 0;) {
      const std::int64_t extent = axes[list[i]].size;
      group[static_cast<std::size_t>(m)] += rest % extent * stride[list[i]];
      rest /= extent;
    }
  }
  return group;
}

std::string Mesh::to_string(const MeshAxes& list) const {
  std::string text;
  for (const std::uint8_t axis : list) {
    if (!text.empty()) text += ',';
    text += axes.at(axis).name;
  }
  return text;
}

}  // namespace tpusim::spmd
