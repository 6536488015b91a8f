// Between a whole tensor and its shards on the devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/numeric/tensor.hpp"
#include "sim/plan/step_program.hpp"

namespace tpusim::numeric {

// The type of one device's shard of a whole tensor, and back. A dim's `valid` is global in both.
ir::TensorType shard_type(const ir::TensorType& global, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh);
ir::TensorType global_type(const ir::TensorType& local, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh);

// A device's shard of a whole tensor. For a partial spec the value goes to the first member of each group and the
// neutral entry (0, or minus infinity for max) to the others, so that the shards reduce to it.
Tensor shard(const Tensor& global, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh, std::int64_t device);

// The whole tensor from the shards of all devices (by device number): partial results reduced in the order of their
// group, replicas taken from the first device that has them. `replica_difference`: the largest difference between two
// replicas of an entry, 0 where they agree bit for bit. Devices may be left out with a null pointer if another has the
// same shard (pipeline stages).
struct Assembled {
  Tensor value;
  double replica_difference = 0;
};
Assembled assemble(const std::vector<const Tensor*>& shards, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh);

// Entries of padding set to 0, so that two tensors may be compared on what counts.
void clear_padding(Tensor& global);

// Shard `index` of `count` along dim `dim` of a tensor of shape `whole`, flattened: out of it and back into it.
template <class T>
void copy_shard(const ir::Shape& whole, ir::DimName dim, std::int64_t count, std::int64_t index,
                std::span<const T> from, std::span<T> to);
template <class T>
void paste_shard(const ir::Shape& whole, ir::DimName dim, std::int64_t count, std::int64_t index,
                 std::span<const T> from, std::span<T> to);

}  // namespace tpusim::numeric
