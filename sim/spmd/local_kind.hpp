// An op's attributes for one device. Internal to sim/spmd.
#pragma once

#include <vector>

#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd {

// Ops whose meaning depends on global positions are told how their dim is split; scatter gradients get the size of this
// device's rows. `operands` and `results` are global types, the specs say how this op has them.
ir::OpKind local_kind(const ir::OpKind& kind, const std::vector<ir::TensorType>& operands,
                      const InlineVector<PartitionSpec, 8>& operand_specs, const std::vector<ir::TensorType>& results,
                      const InlineVector<PartitionSpec, 4>& result_specs, const Mesh& mesh);

}  // namespace tpusim::spmd
