// The built-in chips and clusters. The numbers are the JSON files in topologies/catalogue/, one per chip, embedded in
// the library when it is built; each number there has a source and a confidence, and the reader refuses one without.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/registry.hpp"
#include "topologies/chip.hpp"

namespace tpusim::topologies {

// A chip card as text -> Chip. Throws ScenarioError naming `file` with every fault: not JSON, unknown or missing key,
// no source, no confidence, wrong unit, value not positive.
Chip parse_chip(std::string_view json, const std::string& file);

// The names of all built-in chips in catalogue order: "tpu-v2", ..., "b200", "cpu-epyc-9654", "ideal-v5p".
std::vector<std::string> chip_names();
// Reads one card only (about 50 us). nullopt for an unknown name; use nearest(name, chip_names()) for the message.
std::optional<Chip> find_chip(std::string_view name);
// All of them, for `list chips`.
void register_builtin(Registry<Chip>& registry);

// A named kind of GPU host: {"preset": "dgx-h100", "hosts": 16}.
struct ClusterPreset {
  std::string chip;
  std::int64_t chips_per_host = 8;
  bool operator==(const ClusterPreset&) const = default;
};
// "dgx-a100" (80 GB), "dgx-h100", "dgx-h200", "dgx-b200".
void register_builtin(Registry<ClusterPreset>& registry);

}  // namespace tpusim::topologies
