// Derivatives of reduce, rename, the masks and rope: all linear (reduce.max counts as a constant).
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

// The gradient of a sum is dy along the summed dims: it is left without them, which elementwise users spread for
// nothing. Padded entries are 0 whatever the parameters are, so their gradient is 0 too.
Gradients vjp_op(const Reduce& reduce, const VjpArgs& args) {
  if (reduce.kind == Reduction::max) return {ValueId()};
  const Value x = args.operand(0);
  ValueId dx = args.dy[0];
  const DType wanted = gradient_dtype(x, args.context);
  if (args.builder().type(dx).dtype != wanted) dx = args.builder().cast(dx, wanted, gradient_as(x));
  for (const Dim& d : x.type.shape) {
    if (d.size == d.valid || !reduce.dims.contains(d.name)) continue;
    const Builder::As as = gradient_as(x);
    dx = spread(args.builder(), dx, x.type.shape, as);
    dx = args.builder().add(MaskPadding{d.name, 0, {}}, {dx}, x.type.dtype, as)[0];
  }
  return {dx};
}

Gradients vjp_op(const Rename& rename, const VjpArgs& args) {
  const ValueId dy = spread(args.builder(), args.dy[0], args.result(0).type.shape, gradient_as(args.result(0)));
  const Builder::As as = gradient_as(args.operand(0));
  return {args.builder().add(Rename{rename.to, rename.from}, {dy}, DType::f32, as)[0]};
}

Gradients vjp_op(const MaskPadding& mask, const VjpArgs& args) {
  const Builder::As as = gradient_as(args.operand(0));
  const ValueId dy = spread(args.builder(), args.dy[0], args.result(0).type.shape, as);
  return {args.builder().add(MaskPadding{mask.dim, 0, {}}, {dy}, DType::f32, as)[0]};
}

Gradients vjp_op(const MaskCausal& mask, const VjpArgs& args) {
  const Builder::As as = gradient_as(args.operand(0));
  const ValueId dy = spread(args.builder(), args.dy[0], args.result(0).type.shape, as);
  return {args.builder().add(MaskCausal{mask.query, mask.key, 0, {}, {}}, {dy}, DType::f32, as)[0]};
}

Gradients vjp_op(const Rope& rope, const VjpArgs& args) {
  const Builder::As as = gradient_as(args.operand(0));
  const ValueId dy = spread(args.builder(), args.dy[0], args.result(0).type.shape, as);
  Rope inverse = rope;
  inverse.inverse = !rope.inverse;
  return {args.builder().add(inverse, {dy}, DType::f32, as)[0]};
}

}  // namespace tpusim::ir
