// The dims of attention, by name: internal to sim/ir.
#pragma once

#include "sim/ir/types.hpp"

namespace tpusim::ir {

constexpr DimName kBatch{Axis::batch, 0};
constexpr DimName kSeq{Axis::seq, 0};
constexpr DimName kKeySeq{Axis::seq, 1};
constexpr DimName kKvHeads{Axis::kv_heads, 0};
constexpr DimName kQGroup{Axis::q_group, 0};
constexpr DimName kHeadDim{Axis::head_dim, 0};

}  // namespace tpusim::ir
