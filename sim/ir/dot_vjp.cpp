// y = lhs . rhs by named dims: d lhs = dy . rhs and d rhs = lhs . dy, each with the dims of the operand. What the other
// two share beyond those is contracted: every dim of an operand is in the other operand or in the result (rule dot.c6),
// so the two products are complete.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

DimNames names_of(const Shape& shape) {
  DimNames out;
  for (const Dim& d : shape) out.push_back(d.name);
  return out;
}

}  // namespace

Gradients vjp_op(const Dot&, const VjpArgs& args) {
  Builder& b = args.builder();
  const Value lhs = args.operand(0), rhs = args.operand(1), result = args.result(0);
  const ValueId dy = spread(b, args.dy[0], result.type.shape, gradient_as(result));
  const ValueId dl =
      b.dot(dy, args.x(1), names_of(lhs.type.shape), gradient_dtype(lhs, args.context), gradient_as(lhs));
  const ValueId dr =
      b.dot(args.x(0), dy, names_of(rhs.type.shape), gradient_dtype(rhs, args.context), gradient_as(rhs));
  return {dl, dr};
}

}  // namespace tpusim::ir
