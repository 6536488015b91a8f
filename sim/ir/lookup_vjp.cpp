// Derivatives of lookup and pick: scatters by the same ids.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

// The rows of one id are summed in the gradient's dtype.
Gradients vjp_op(const Lookup& lookup, const VjpArgs& args) {
  Builder& b = args.builder();
  const Value table = args.operand(0);
  const Builder::As as_dy = gradient_as(args.result(0));
  const ValueId dy = spread(b, args.dy[0], args.result(0).type.shape, as_dy);
  const Dim rows = table.type.shape[static_cast<std::size_t>(find_dim(table.type.shape, lookup.rows))];
  return {b.add(LookupGrad{rows, {}}, {args.x(1), dy}, gradient_dtype(table, args.context), gradient_as(table))[0],
          ValueId()};
}

Gradients vjp_op(const Pick& pick, const VjpArgs& args) {
  Builder& b = args.builder();
  const Value x = args.operand(0);
  const ValueId dy = spread(b, args.dy[0], args.operand(1).type.shape, gradient_as(args.result(0)));
  const Dim classes = x.type.shape[static_cast<std::size_t>(find_dim(x.type.shape, pick.classes))];
  return {b.add(PickGrad{classes, {}}, {args.x(1), dy}, x.type.dtype, gradient_as(x))[0], ValueId()};
}

}  // namespace tpusim::ir
