// Writes the program of one device: local types, slices and collectives. Internal to sim/spmd.
#pragma once

#include <string_view>

#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd {

// For which op of the global program a local op is written, and in which phase.
struct Cause {
  ir::OpId origin;
  ir::Phase phase = ir::Phase::forward;
};

class LocalWriter {
 public:
  LocalWriter(const Mesh& mesh, Partitioned& out) : mesh_(mesh), out_(out) {}

  // The shard of a global tensor under `spec`. Every split must divide (the tables and strategies see to that).
  ir::TensorType local_type(const ir::TensorType& global, const PartitionSpec& spec) const;
  Placed input(const ir::Value& global, const PartitionSpec& spec);
  // One op of the global program on shards; results in the given specs.
  InlineVector<Placed, 4> op(const ir::OpKind& kind, const InlineVector<ir::ValueId, 8>& operands,
                             const InlineVector<ir::Value, 4>& global_results,
                             const InlineVector<PartitionSpec, 4>& specs, Cause cause);

  // Collectives and slices on dim `d`; each is one op. Gathers undo the last `axes` of the dim's list, slices and
  // reduce-scatters add `axes` at its end.
  Placed gather(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause, std::string_view reason);
  Placed slice(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause);
  Placed reduce_scatter(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause, std::string_view reason);
  Placed all_reduce(const Placed& from, const MeshAxes& axes, Cause cause, std::string_view reason);

  // Brings a value to the split of `dims`; what it is partial over stays. Slices come first where they can (less to
  // gather), then gathers, then the other slices. `reason` is that of the gathers.
  Placed reshard(Placed from, const InlineVector<MeshAxes, ir::kMaxRank>& dims, Cause cause, std::string_view reason);
  // Reduces a value over those of its partial axes that are in `axes`: by a reduce-scatter where `wanted` splits a dim
  // over them (and the dim is split so far as `wanted` has it), else by an all-reduce.
  Placed resolve(Placed from, const MeshAxes& axes, const PartitionSpec& wanted, Cause cause, std::string_view reason);
  // Elements that reshard() would receive by gathers; 0 when slices do.
  double gathered_elements(const Placed& from, const InlineVector<MeshAxes, ir::kMaxRank>& dims) const;

 private:
  ir::ValueId add_value(const ir::Value& value, const PartitionSpec& spec);
  Placed unary(ir::OpKind kind, const Placed& from, ir::TensorType type, const PartitionSpec& spec, Cause cause,
               std::string_view reason);
  const Mesh& mesh_;
  Partitioned& out_;
};

}  // namespace tpusim::spmd
