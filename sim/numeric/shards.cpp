#include "sim/numeric/shards.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/numeric/walk.hpp"

namespace tpusim::numeric {
namespace {

// A row-major tensor as [outer, count x block]: shard i of a dim is block i of each row.
struct Blocks {
  std::int64_t outer = 1, block = 1;
};
Blocks blocks_of(const ir::Shape& whole, ir::DimName dim, std::int64_t count) {
  const int at = ir::find_dim(whole, dim);
  TPUSIM_CHECK(at >= 0, "a collective along a dim that its tensor lacks: " + ir::to_string(dim));
  TPUSIM_CHECK(whole[static_cast<std::size_t>(at)].size % count == 0, "a split dim does not divide");
  Blocks blocks;
  for (std::size_t d = 0; d < whole.size(); ++d)
    (static_cast<int>(d) < at ? blocks.outer : blocks.block) *= whole[d].size;
  blocks.block /= count;
  return blocks;
}

}  // namespace

template <class T>
void copy_shard(const ir::Shape& whole, ir::DimName dim, std::int64_t count, std::int64_t index,
                std::span<const T> from, std::span<T> to) {
  const Blocks b = blocks_of(whole, dim, count);
  for (std::int64_t row = 0; row < b.outer; ++row)
    std::copy_n(from.begin() + (row * count + index) * b.block, b.block, to.begin() + row * b.block);
}
template <class T>
void paste_shard(const ir::Shape& whole, ir::DimName dim, std::int64_t count, std::int64_t index,
                 std::span<const T> from, std::span<T> to) {
  const Blocks b = blocks_of(whole, dim, count);
  for (std::int64_t row = 0; row < b.outer; ++row)
    std::copy_n(from.begin() + row * b.block, b.block, to.begin() + (row * count + index) * b.block);
}
#define TPUSIM_SHARDS(T)                                                                                      \
  template void copy_shard<T>(const ir::Shape&, ir::DimName, std::int64_t, std::int64_t, std::span<const T>,  \
                              std::span<T>);                                                                  \
  template void paste_shard<T>(const ir::Shape&, ir::DimName, std::int64_t, std::int64_t, std::span<const T>, \
                               std::span<T>);
TPUSIM_SHARDS(double)
TPUSIM_SHARDS(float)
TPUSIM_SHARDS(std::int32_t)
#undef TPUSIM_SHARDS

ir::TensorType shard_type(const ir::TensorType& global, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh) {
  ir::TensorType local = global;
  for (std::size_t d = 0; d < spec.dims.size() && d < local.shape.size(); ++d) {
    const std::int64_t count = mesh.size(spec.dims[d]);
    TPUSIM_CHECK(local.shape[d].size % count == 0, "a mesh axis does not divide " + ir::to_string(global));
    local.shape[d].size /= count;
  }
  return local;
}

ir::TensorType global_type(const ir::TensorType& local, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh) {
  ir::TensorType global = local;
  for (std::size_t d = 0; d < spec.dims.size() && d < global.shape.size(); ++d)
    global.shape[d].size = checked_mul(global.shape[d].size, mesh.size(spec.dims[d]), "a dimension");
  return global;
}

namespace {

// Offset in the whole tensor of the first entry of a device's shard.
std::int64_t first_entry(const ir::Shape& local, const ir::Shape& global, const spmd::PartitionSpec& spec,
                         const spmd::Mesh& mesh, std::int64_t device) {
  const Strides strides = strides_over(global, global);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < spec.dims.size() && d < global.size(); ++d)
    first += mesh.index_in(device, spec.dims[d]) * local[d].size * strides[d];
  return first;
}

// f(entry of the shard, entry of the whole) for each entry of a device's shard.
template <class F>
void for_each_entry(const ir::Shape& local, const ir::Shape& global, std::int64_t first, F&& f) {
  const std::array<Strides, 1> strides{strides_over(local, global)};
  const std::int64_t step = inner_stride(strides[0]);
  std::int64_t next = 0;
  for_each_row(local, strides, [&](const std::array<std::int64_t, 1>& at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) f(next++, first + at[0] + i * step);
  });
}

}  // namespace

Tensor shard(const Tensor& global, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh, std::int64_t device) {
  Tensor result(shard_type(global.type(), spec, mesh));
  const bool holds = spec.partial.empty() || mesh.index_in(device, spec.partial) == 0;
  const double neutral = spec.partial_kind == ir::Reduction::max ? -std::numeric_limits<double>::infinity() : 0;
  const std::int64_t first = first_entry(result.shape(), global.shape(), spec, mesh, device);
  for_each_entry(result.shape(), global.shape(), first, [&](std::int64_t local, std::int64_t whole) {
    result.set(local, holds ? global.at(whole) : neutral);
  });
  return result;
}

namespace {

// Devices with one place in the tensor, by their index among the partial group; those beyond the first are replicas.
Tensor reduced_group(const std::vector<const Tensor*>& shards, const std::vector<std::int64_t>& group,
                     ir::Reduction kind) {
  Tensor sum = *shards[static_cast<std::size_t>(group[0])];
  for (std::size_t i = 1; i < group.size(); ++i) {
    const Tensor* next = shards[static_cast<std::size_t>(group[i])];
    TPUSIM_CHECK(next != nullptr, "a partial result lacks a member");
    for (std::int64_t e = 0; e < sum.size(); ++e) {
      const double a = sum.at(e), b = next->at(e);
      sum.set(e, kind == ir::Reduction::max ? std::max(a, b) : a + b);
    }
  }
  return sum;
}

}  // namespace

Assembled assemble(const std::vector<const Tensor*>& shards, const spmd::PartitionSpec& spec, const spmd::Mesh& mesh) {
  TPUSIM_CHECK(static_cast<std::int64_t>(shards.size()) == mesh.devices(), "shards of another number of devices");
  const auto present = std::find_if(shards.begin(), shards.end(), [](const Tensor* t) { return t != nullptr; });
  TPUSIM_CHECK(present != shards.end(), "no device has a shard");
  Assembled result;
  result.value = Tensor(global_type((*present)->type(), spec, mesh));
  std::vector<bool> seen(static_cast<std::size_t>(result.value.size()), false);
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    if (shards[static_cast<std::size_t>(device)] == nullptr) continue;
    if (!spec.partial.empty() && mesh.index_in(device, spec.partial) != 0) continue;
    const Tensor value = spec.partial.empty()
                             ? *shards[static_cast<std::size_t>(device)]
                             : reduced_group(shards, mesh.group_of(device, spec.partial), spec.partial_kind);
    const std::int64_t first = first_entry(value.shape(), result.value.shape(), spec, mesh, device);
    for_each_entry(value.shape(), result.value.shape(), first, [&](std::int64_t local, std::int64_t whole) {
      const double entry = value.at(local);
      if (seen[static_cast<std::size_t>(whole)]) {
        const double other = result.value.at(whole);
        const bool same = entry == other || (std::isnan(entry) && std::isnan(other));
        const double difference = same ? 0 : std::abs(entry - other);
        if (!(difference <= result.replica_difference))
          result.replica_difference = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
        return;
      }
      seen[static_cast<std::size_t>(whole)] = true;
      result.value.set(whole, entry);
    });
  }
  TPUSIM_CHECK(std::find(seen.begin(), seen.end(), false) == seen.end(), "entries of a tensor that no device has");
  return result;
}

void clear_padding(Tensor& global) {
  const ir::Shape& shape = global.shape();
  const bool padded = std::any_of(shape.begin(), shape.end(), [](const ir::Dim& d) { return d.valid < d.size; });
  if (!padded) return;
  const Strides strides = strides_over(shape, shape);
  for (std::int64_t e = 0; e < global.size(); ++e)
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (e / strides[d] % shape[d].size >= shape[d].valid) {
        global.set(e, 0);
        break;
      }
}

}  // namespace tpusim::numeric
