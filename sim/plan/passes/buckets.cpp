// Which collectives of a block become one. A collective pays the latency of its whole group however little it carries
// (a ring of 512: 511 hops for the 8 KB of a norm's scale), so those of one kind, group and dtype share one up to the
// bucket size, as in PyTorch's DistributedDataParallel and in XLA's combiners.
//
// Only neighbours share: a tensor joins the bucket that was opened last for its like, or opens the next, so none waits
// for one that is made, or needed, much later. A small tensor costs its neighbour next to nothing and joins it even if
// that is over the size by itself.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

// A small tensor is at most this part of a bucket: our choice, no published value. It bounds what a bucket may grow by
// for each, and what its neighbour waits longer, to 1/64.
constexpr std::int64_t kSmall = 64;

}  // namespace

std::size_t Buckets::put(ir::OpId id) {
  const ir::Op& op = program_.op(id);
  const ir::TensorType& from = program_.value(op.operands[0]).type;
  Bucket bucket;
  bucket.kind = op.kind.index();
  bucket.dtype = from.dtype;
  bucket.bytes = std::max(from.bytes(), program_.value(op.results[0]).type.bytes());
  if (const auto* gather = std::get_if<ir::AllGather>(&op.kind)) {
    bucket.axes = gather->axes;
  } else if (const auto* scatter = std::get_if<ir::ReduceScatter>(&op.kind)) {
    bucket.axes = scatter->axes;
  } else {
    bucket.axes = std::get<ir::AllReduce>(op.kind).axes;
    bucket.reduction = std::get<ir::AllReduce>(op.kind).kind;
  }
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    Bucket& open = buckets_[b];
    if (open.kind != bucket.kind || open.reduction != bucket.reduction || open.dtype != bucket.dtype ||
        !(open.axes == bucket.axes))
      continue;
    if (open.bytes > limit_ - bucket.bytes && std::min(open.bytes, bucket.bytes) > limit_ / kSmall) break;
    open.bytes += bucket.bytes;
    open.ops.push_back(id);
    return b;
  }
  bucket.ops.push_back(id);
  buckets_.push_back(std::move(bucket));
  return buckets_.size() - 1;
}

}  // namespace tpusim::plan::passes
