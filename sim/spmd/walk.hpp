// The walk over a global program that makes the local one. Internal to sim/spmd.
#pragma once

#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd {

// Values of an update program are all laid out by the optimizer table, but for the old parameter, which arrives by the
// parameters table, and the new one, which is left by it (rule 5).
struct UpdatePorts {
  ir::ValueId parameter, new_parameter;
  std::vector<ir::ValueId> new_slots;
};

struct WalkResult {
  Partitioned partitioned;
  std::vector<ir::ValueId> last;  // by global value: the local value that stands for it at the end
};
// `update` is null for a block program.
WalkResult walk(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh, const UpdatePorts* update);

}  // namespace tpusim::spmd
