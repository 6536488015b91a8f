// Small algebra of axis lists (major to minor).
#pragma once

#include <algorithm>

#include "sim/spmd/mesh.hpp"

namespace tpusim::spmd {

inline bool intersects(const MeshAxes& a, const MeshAxes& b) {
  for (const std::uint8_t axis : a)
    if (b.contains(axis)) return true;
  return false;
}
// `list` without the members of `out`, order kept.
inline MeshAxes without(const MeshAxes& list, const MeshAxes& out) {
  MeshAxes kept;
  for (const std::uint8_t axis : list)
    if (!out.contains(axis)) kept.push_back(axis);
  return kept;
}
// The members of `list` that are in `in`, order of `list`.
inline MeshAxes common(const MeshAxes& list, const MeshAxes& in) {
  MeshAxes kept;
  for (const std::uint8_t axis : list)
    if (in.contains(axis)) kept.push_back(axis);
  return kept;
}
// Adds what is missing; for sets (order does not matter).
inline void unite(MeshAxes& set, const MeshAxes& more) {
  for (const std::uint8_t axis : more)
    if (!set.contains(axis)) set.push_back(axis);
}
inline MeshAxes ascending(MeshAxes set) {
  std::sort(set.begin(), set.end());
  return set;
}
// How many leading axes two lists share.
inline std::size_t common_prefix(const MeshAxes& a, const MeshAxes& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}
inline MeshAxes first_of(const MeshAxes& list, std::size_t n) {
  MeshAxes head;
  for (std::size_t i = 0; i < n; ++i) head.push_back(list[i]);
  return head;
}
inline MeshAxes after(const MeshAxes& list, std::size_t n) {
  MeshAxes tail;
  for (std::size_t i = n; i < list.size(); ++i) tail.push_back(list[i]);
  return tail;
}
inline MeshAxes joined(const MeshAxes& head, const MeshAxes& tail) {
  MeshAxes all = head;
  for (const std::uint8_t axis : tail) all.push_back(axis);
  return all;
}

}  // namespace tpusim::spmd
