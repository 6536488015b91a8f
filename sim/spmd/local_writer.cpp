#include "sim/spmd/local_writer.hpp"

#include "sim/base/check.hpp"
#include "sim/spmd/mesh_axes.hpp"

namespace tpusim::spmd {

ir::TensorType LocalWriter::local_type(const ir::TensorType& global, const PartitionSpec& spec) const {
  ir::TensorType local = global;
  for (std::size_t d = 0; d < local.shape.size(); ++d) {
    if (spec.dims[d].empty()) continue;
    const std::int64_t parts = mesh_.size(spec.dims[d]);
    TPUSIM_CHECK(local.shape[d].size % parts == 0,
                 ir::to_string(global) + " cannot be laid out as " + to_string(spec, global.shape, mesh_));
    local.shape[d].size /= parts;
  }
  return local;
}

ir::ValueId LocalWriter::add_value(const ir::Value& value, const PartitionSpec& spec) {
  out_.local.values.push_back(value);
  out_.specs.push_back(spec);
  return ir::ValueId(out_.local.values.size() - 1);
}

Placed LocalWriter::input(const ir::Value& global, const PartitionSpec& spec) {
  ir::Value value = global;
  value.type = local_type(global.type, spec);
  value.producer = ir::OpId();
  return {add_value(value, spec), spec};
}

InlineVector<Placed, 4> LocalWriter::op(const ir::OpKind& kind, const InlineVector<ir::ValueId, 8>& operands,
                                        const InlineVector<ir::Value, 4>& global_results,
                                        const InlineVector<PartitionSpec, 4>& specs, Cause cause) {
  const ir::OpId id(out_.local.ops.size());
  ir::Op local{kind, operands, {}, cause.phase};
  InlineVector<Placed, 4> results;
  for (std::size_t r = 0; r < global_results.size(); ++r) {
    ir::Value value = global_results[r];
    value.type = local_type(value.type, specs[r]);
    value.producer = id;
    results.push_back({add_value(value, specs[r]), specs[r]});
    local.results.push_back(results.back().local);
  }
  out_.local.ops.push_back(local);
  out_.origin.push_back(cause.origin);
  out_.reason.push_back({});
  return results;
}

Placed LocalWriter::unary(ir::OpKind kind, const Placed& from, ir::TensorType type, const PartitionSpec& spec,
                          Cause cause, std::string_view reason) {
  const ir::OpId id(out_.local.ops.size());
  ir::Value value = out_.local.value(from.local);
  value.type = type;
  value.producer = id;
  const Placed result{add_value(value, spec), spec};
  out_.local.ops.push_back(ir::Op{kind, {from.local}, {result.local}, cause.phase});
  out_.origin.push_back(cause.origin);
  out_.reason.push_back(reason);
  return result;
}

Placed LocalWriter::gather(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause,
                           std::string_view reason) {
  PartitionSpec spec = from.spec;
  spec.dims[d] = first_of(spec.dims[d], spec.dims[d].size() - axes.size());
  ir::TensorType type = out_.local.value(from.local).type;
  type.shape[d].size *= mesh_.size(axes);
  return unary(ir::AllGather{type.shape[d].name, axes}, from, type, spec, cause, reason);
}

Placed LocalWriter::slice(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause) {
  PartitionSpec spec = from.spec;
  spec.dims[d] = joined(spec.dims[d], axes);
  ir::TensorType type = out_.local.value(from.local).type;
  TPUSIM_CHECK(type.shape[d].size % mesh_.size(axes) == 0, ir::to_string(type) + " cannot be sliced");
  type.shape[d].size /= mesh_.size(axes);
  return unary(ir::Slice{type.shape[d].name, axes}, from, type, spec, cause,
               "rule 2: a whole value is sliced for free");
}

Placed LocalWriter::reduce_scatter(const Placed& from, std::size_t d, const MeshAxes& axes, Cause cause,
                                   std::string_view reason) {
  PartitionSpec spec = from.spec;
  spec.dims[d] = joined(spec.dims[d], axes);
  spec.partial = without(spec.partial, axes);
  ir::TensorType type = out_.local.value(from.local).type;
  TPUSIM_CHECK(type.shape[d].size % mesh_.size(axes) == 0, ir::to_string(type) + " cannot be reduce-scattered");
  type.shape[d].size /= mesh_.size(axes);
  return unary(ir::ReduceScatter{type.shape[d].name, axes}, from, type, spec, cause, reason);
}

Placed LocalWriter::all_reduce(const Placed& from, const MeshAxes& axes, Cause cause, std::string_view reason) {
  PartitionSpec spec = from.spec;
  spec.partial = without(spec.partial, axes);
  if (spec.partial.empty()) spec.partial_kind = ir::Reduction::sum;
  const ir::TensorType type = out_.local.value(from.local).type;
  return unary(ir::AllReduce{from.spec.partial_kind, axes}, from, type, spec, cause, reason);
}

Placed LocalWriter::reshard(Placed from, const InlineVector<MeshAxes, ir::kMaxRank>& dims, Cause cause,
                            std::string_view reason) {
  if (from.spec.dims == dims) return from;
  MeshAxes used;
  for (const MeshAxes& list : from.spec.dims) unite(used, list);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::size_t same = common_prefix(from.spec.dims[d], dims[d]);
    const MeshAxes more = after(dims[d], same);
    if (same == from.spec.dims[d].size() && !more.empty() && !intersects(more, used))
      from = slice(from, d, more, cause);
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::size_t same = common_prefix(from.spec.dims[d], dims[d]);
    const MeshAxes undone = after(from.spec.dims[d], same);
    if (!undone.empty()) from = gather(from, d, undone, cause, reason);
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const MeshAxes more = after(dims[d], from.spec.dims[d].size());
    if (!more.empty()) from = slice(from, d, more, cause);
  }
  return from;
}

double LocalWriter::gathered_elements(const Placed& from, const InlineVector<MeshAxes, ir::kMaxRank>& dims) const {
  double factor = 1;
  for (std::size_t d = 0; d < dims.size(); ++d)
    factor *= static_cast<double>(mesh_.size(after(from.spec.dims[d], common_prefix(from.spec.dims[d], dims[d]))));
  if (factor == 1) return 0;
  return factor * static_cast<double>(ir::element_count(out_.local.value(from.local).type.shape));
}

Placed LocalWriter::resolve(Placed from, const MeshAxes& axes, const PartitionSpec& wanted, Cause cause,
                            std::string_view reason) {
  const MeshAxes todo = common(from.spec.partial, axes);
  if (from.spec.partial_kind == ir::Reduction::sum) {
    for (std::size_t d = 0; d < wanted.dims.size(); ++d) {
      const std::size_t have = from.spec.dims[d].size();
      if (common_prefix(from.spec.dims[d], wanted.dims[d]) != have) continue;
      MeshAxes scattered;
      for (std::size_t i = have; i < wanted.dims[d].size() && todo.contains(wanted.dims[d][i]); ++i)
        scattered.push_back(wanted.dims[d][i]);
      if (!scattered.empty()) from = reduce_scatter(from, d, scattered, cause, reason);
    }
  }
  const MeshAxes rest = common(from.spec.partial, axes);
  if (!rest.empty()) from = all_reduce(from, rest, cause, reason);
  return from;
}

}  // namespace tpusim::spmd
