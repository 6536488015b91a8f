// Shape inference of map, reduce, rename, the masks, rope and fill.
#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

const Dim& at(const Shape& shape, int i) {
  return shape[static_cast<std::size_t>(i)];
}

Inferred lacks(const char* rule, DimName name) {
  return failed(fmt::format("{}: the operand has no dim {}", rule, to_string(name)));
}

}  // namespace

int map_operands(Elementwise kind) {
  return kind < Elementwise::add ? 1 : 2;
}

Inferred infer_op(const Map& map, const InferArgs& args) {
  const auto wanted = static_cast<std::size_t>(map_operands(map.kind));
  if (args.operands.size() != wanted)
    return failed(fmt::format("map.c1: {} operands, found {}", wanted, args.operands.size()));
  const TensorType& x = args.operands[0];
  if (!is_float(x.dtype) || (map.kind == Elementwise::cast && !is_float(args.dtype)))
    return failed("map.c2: floating-point operands and result");
  if (wanted == 1) return one_result(map.kind == Elementwise::cast ? args.dtype : x.dtype, x.shape);
  const TensorType& y = args.operands[1];
  if (y.dtype != x.dtype)
    return failed(fmt::format("map.c3: operands of one dtype, found {} and {}", name_of(x.dtype), name_of(y.dtype)));
  Shape shape = x.shape;
  for (const Dim& d : y.shape) {
    const int i = find_dim(x.shape, d.name);
    if (i < 0)
      shape.push_back(d);
    else if (!(at(x.shape, i) == d))
      return failed(fmt::format("map.c4: {} is {} in one operand and {} in the other", to_string(d.name),
                                at(x.shape, i).size, d.size));
  }
  return one_result(x.dtype, shape);
}

Inferred infer_op(const Reduce& reduce, const InferArgs& args) {
  if (args.operands.size() != 1) return failed(fmt::format("reduce.c1: one operand, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  if (!is_float(x.dtype) || !is_float(args.dtype)) return failed("reduce.c2: a floating-point operand and result");
  for (const DimName name : reduce.dims)
    if (find_dim(x.shape, name) < 0) return lacks("reduce.c3", name);
  if (reduce.dims.empty()) return failed("reduce.c4: at least one dim");
  Shape shape;
  for (const Dim& d : x.shape)
    if (!reduce.dims.contains(d.name)) shape.push_back(d);
  return one_result(args.dtype, shape);
}

Inferred infer_op(const Rename& rename, const InferArgs& args) {
  if (args.operands.size() != 1) return failed(fmt::format("rename.c1: one operand, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  const int i = find_dim(x.shape, rename.from);
  if (i < 0) return lacks("rename.c2", rename.from);
  if (rename.from != rename.to && find_dim(x.shape, rename.to) >= 0)
    return failed(fmt::format("rename.c3: the operand already has a dim {}", to_string(rename.to)));
  Shape shape = x.shape;
  shape[static_cast<std::size_t>(i)].name = rename.to;
  return one_result(x.dtype, shape);
}

Inferred infer_op(const MaskPadding& mask, const InferArgs& args) {
  if (args.operands.size() != 1)
    return failed(fmt::format("mask_padding.c1: one operand, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  if (!is_float(x.dtype)) return failed("mask_padding.c2: a floating-point operand");
  if (find_dim(x.shape, mask.dim) < 0) return lacks("mask_padding.c3", mask.dim);
  return one_result(x.dtype, x.shape);
}

Inferred infer_op(const MaskCausal& mask, const InferArgs& args) {
  if (args.operands.size() != 1)
    return failed(fmt::format("mask_causal.c1: one operand, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  if (!is_float(x.dtype)) return failed("mask_causal.c2: a floating-point operand");
  if (mask.query == mask.key) return failed("mask_causal.c3: query and key are two dims");
  if (find_dim(x.shape, mask.query) < 0) return lacks("mask_causal.c4", mask.query);
  if (find_dim(x.shape, mask.key) < 0) return lacks("mask_causal.c4", mask.key);
  return one_result(x.dtype, x.shape);
}

Inferred infer_op(const Rope& rope, const InferArgs& args) {
  if (args.operands.size() != 1) return failed(fmt::format("rope.c1: one operand, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  if (!is_float(x.dtype)) return failed("rope.c2: a floating-point operand");
  if (find_dim(x.shape, rope.positions) < 0) return lacks("rope.c3", rope.positions);
  const int i = find_dim(x.shape, rope.rotated);
  if (i < 0) return lacks("rope.c3", rope.rotated);
  const Dim& d = at(x.shape, i);
  if (d.size % 2 != 0 || d.valid != d.size)
    return failed(fmt::format("rope.c4: {} is even and not padded, found {}", to_string(rope.rotated), d.size));
  return one_result(x.dtype, x.shape);
}

Inferred infer_op(const Fill&, const InferArgs& args) {
  if (!args.operands.empty()) return failed(fmt::format("fill.c1: no operand, found {}", args.operands.size()));
  if (!is_float(args.dtype)) return failed("fill.c2: a floating-point result");
  return one_result(args.dtype, args.like);
}

}  // namespace tpusim::ir
