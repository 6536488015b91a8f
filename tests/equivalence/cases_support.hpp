// The space of small jobs that equivalence and tally tests draw from, and a pairwise cover of it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/session/job.hpp"

namespace tpusim::tests {

// One choice per option; the meaning of the numbers is in to_spec().
struct Case {
  static constexpr std::size_t kOptions = 13;
  std::array<int, kOptions> choice{};
};
// How many values each option has; option 0 is the mesh.
std::array<int, Case::kOptions> option_sizes();
// All meshes of four axes with sizes 1, 2 or 4 and at most 16 devices.
const std::vector<std::array<std::int64_t, 4>>& meshes();
std::string to_string(const Case& c);
session::JobSpec to_spec(const Case& c);
// A machine with one physical axis for each mesh axis larger than 1; rings, lines and switches take turns by `seed`.
fabric::Fabric fabric_for(const session::JobSpec& spec, std::uint64_t seed);
// Cases in which every pair of values of two options occurs, then more by seed until there are `least`.
std::vector<Case> pairwise_cover(std::uint64_t seed, std::size_t least);

}  // namespace tpusim::tests
