// Collectives and slices: the ir does not know the mesh, so the result's shape is given and only checked.
#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

// The result is the operand but for `dim`, which one of the two has `factor` times (a whole number) as long.
Inferred resized(const char* op, DimName dim, bool grows, const InferArgs& args) {
  if (args.operands.size() != 1) return failed(fmt::format("{}.c1: one operand, found {}", op, args.operands.size()));
  const TensorType& x = args.operands[0];
  if (find_dim(x.shape, dim) < 0) return failed(fmt::format("{}.c2: the operand has no dim {}", op, to_string(dim)));
  if (args.like.size() != x.shape.size()) return failed(fmt::format("{}.c3: the result has the operand's dims", op));
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const Dim& from = x.shape[i];
    const Dim& to = args.like[i];
    if (from.name != to.name || from.valid != to.valid || (from.name != dim && from.size != to.size))
      return failed(fmt::format("{}.c3: the result has the operand's dims", op));
    const std::int64_t large = grows ? to.size : from.size;
    const std::int64_t small = grows ? from.size : to.size;
    if (from.name == dim && (small < 1 || large < small || large % small != 0))
      return failed(fmt::format("{}.c4: {} of {} and {} is not one a multiple of the other", op, to_string(dim),
                                from.size, to.size));
  }
  return one_result(x.dtype, args.like);
}

}  // namespace

Inferred infer_op(const AllGather& op, const InferArgs& args) {
  return resized("all_gather", op.dim, true, args);
}
Inferred infer_op(const ReduceScatter& op, const InferArgs& args) {
  return resized("reduce_scatter", op.dim, false, args);
}
Inferred infer_op(const Slice& op, const InferArgs& args) {
  return resized("slice", op.dim, false, args);
}
Inferred infer_op(const AllReduce&, const InferArgs& args) {
  if (args.operands.size() != 1)
    return failed(fmt::format("all_reduce.c1: one operand, found {}", args.operands.size()));
  return one_result(args.operands[0].dtype, args.operands[0].shape);
}

}  // namespace tpusim::ir
