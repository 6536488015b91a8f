#include "topologies/shapes/circulant.hpp"

#include <fmt/format.h>

#include <set>

#include "sim/base/check.hpp"

namespace tpusim::topologies {

std::vector<std::int64_t> pod_generators_for_rings() {
  return {1, 5, 17, 25, 57};
}

std::vector<std::int64_t> pod_generators_for_latency() {
  return {1, 21, 29, 34, 45};
}

Topology circulant(std::int64_t chips, const std::vector<std::int64_t>& generators, const LinkClass& link) {
  Topology t;
  add_chips(t, chips);
  const std::int32_t cls = add_class(t, link);
  t.grid = {{chips}, {true}, {}, {}};
  std::set<std::int64_t> seen;
  std::vector<std::size_t> back;  // the step that undoes each
  for (std::int64_t s : generators) {
    TPUSIM_CHECK(s >= 1 && 2 * s <= chips && seen.insert(s).second,
                 "generators are different numbers from 1 to half the chips, not " + std::to_string(s));
    const bool half = 2 * s == chips;
    back.push_back(half ? t.steps.size() : t.steps.size() + 1);
    t.steps.push_back({s});
    if (half) continue;
    back.push_back(t.steps.size() - 1);
    t.steps.push_back({-s});
  }
  if (static_cast<std::int64_t>(t.steps.size()) > max_topology_links / chips)
    throw CapacityError("a topology has at most " + std::to_string(max_topology_links) + " links (one direction each)");
  for (std::int64_t chip = 0; chip < chips; ++chip)
    for (std::size_t g = 0; g < t.steps.size(); ++g) {
      const std::int64_t to = (chip + t.steps[g][0] + chips) % chips;
      t.links.push_back({static_cast<std::int32_t>(chip), static_cast<std::int32_t>(to), cls,
                         static_cast<std::int32_t>(to * static_cast<std::int64_t>(t.steps.size()) +
                                                   static_cast<std::int64_t>(back[g]))});
    }
  t.name = fmt::format("circulant C{}({})", chips, fmt::join(generators, ","));
  return t;
}

}  // namespace tpusim::topologies
