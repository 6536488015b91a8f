#include "topologies/shapes/full_mesh.hpp"

#include "sim/base/check.hpp"
#include "topologies/shapes/circulant.hpp"

namespace tpusim::topologies {

Topology full_mesh(const FullMeshOptions& options) {
  if (options.chips > 1 && options.chips - 1 > max_topology_links / options.chips)
    throw CapacityError("a full mesh of " + std::to_string(options.chips) + " chips has too many links");
  // Every difference is a generator.
  std::vector<std::int64_t> generators;
  for (std::int64_t s = 1; 2 * s <= options.chips; ++s) generators.push_back(s);
  Topology t = circulant(options.chips, generators, options.link);
  t.name = "full mesh of " + std::to_string(options.chips);
  for (Node& n : t.nodes) n.host = 0;
  return t;
}

}  // namespace tpusim::topologies
