// The collective library of a kind of chip: in which algorithms and protocols it works through a switch, and what each
// costs. The numbers are the JSON files beside this one, embedded in the library when it is built; each has a source.
//
// A step of an offer takes step + bytes / (rate x the link's achieved rate), and a collective that uses it pays `base`
// once. Ignored: channels, and NCCL's own choice, which goes by tables of its predictions; ours is the least estimate.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fabric/fabric.hpp"
#include "topologies/chip.hpp"

namespace tpusim::topologies {

struct LibraryOffer {
  fabric::Level level = fabric::Level::chip;  // between the chips of a host, or between hosts
  fabric::Algorithm algorithm = fabric::Algorithm::ring;
  fabric::Protocol protocol = fabric::Protocol::none;
  Seconds base, step;
  double rate = 1;  // part of the link's achieved rate
  std::string source;
  Confidence confidence = Confidence::guess;
};
struct Library {
  std::string name, help;
  std::vector<LibraryOffer> offers;
};

// Throws ScenarioError naming `file`: not JSON, a missing or unknown name, a number out of range, no source.
Library parse_library(std::string_view json, const std::string& file);
// nullopt for an unknown name.
std::optional<Library> find_library(std::string_view name);

// What a chip's library offers along an axis of a level whose links achieve `beta`: empty without a library, for other
// levels, and where the scenario gives the links' latency itself, which then is the cost of a step of plain rings. A
// reduction in the network needs a chip whose switch can (in_network_efficiency); LL is capped by ll_rate inside a
// host.
std::vector<fabric::Offer> offers_of(const Chip& chip, fabric::Level level, BytesPerSecond beta);

// The offers' numbers for the list of assumptions: "nccl: ring (LL) inside a host, step".
std::vector<FactRow> library_facts(const Chip& chip, fabric::Level level);

}  // namespace tpusim::topologies
