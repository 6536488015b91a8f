#include "sim/scenario/scenario.hpp"

#include <tuple>

#include "sim/base/checked.hpp"

namespace tpusim::scenario {

std::optional<std::int64_t> ClusterSpec::chips() const {
  if (!topology.empty()) {
    std::int64_t product = slices;
    for (const std::int64_t n : topology) product = checked_mul(product, n, "the number of chips");
    return product;
  }
  if (hosts && chips_per_host) return checked_mul(*hosts, *chips_per_host, "the number of chips");
  return std::nullopt;
}

std::string_view ShardingRule::place() const {
  const std::string_view k = key;
  const std::size_t dot = k.rfind('.');
  return dot == k.npos ? std::string_view() : k.substr(0, dot);
}

std::string_view ShardingRule::axis() const {
  const std::string_view k = key;
  const std::size_t dot = k.rfind('.');
  return dot == k.npos ? k : k.substr(dot + 1);
}

std::int64_t Scenario::mesh_size(std::string_view axis) const {
  for (const MeshAxis& a : mesh)
    if (a.name == axis) return a.size;
  return 1;
}

bool Scenario::operator==(const Scenario& o) const {
  return std::tie(name, model, cluster, mesh, training, strategies, sharding, input) ==
         std::tie(o.name, o.model, o.cluster, o.mesh, o.training, o.strategies, o.sharding, o.input);
}

}  // namespace tpusim::scenario
