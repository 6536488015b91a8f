#include "sim/ir/readers.hpp"

namespace tpusim::ir {

Gradients vjp_op(const Flash& flash, const VjpArgs& args) {
  TPUSIM_CHECK(args.dy.size() < 2 || !args.dy[1].valid(), "flash's statistics have no gradient");
  Builder& b = args.builder();
  const Value q = args.operand(0);
  const ValueId grad = spread(b, args.dy[0], q.type.shape, gradient_as(args.result(0)));
  const auto results =
      b.add(FlashGrad{flash.scale, flash.causal, flash.block, {}},
            {args.x(0), args.x(1), args.x(2), args.y(0), args.y(1), grad}, q.type.dtype, gradient_as(q));
  b.relabel(results[1], args.operand(1).label);
  b.relabel(results[2], args.operand(2).label);
  return {results[0], results[1], results[2]};
}

}  // namespace tpusim::ir
