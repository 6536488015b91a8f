#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {

Inferred infer_op(const Dot&, const InferArgs& args) {
  if (args.operands.size() != 2) return failed(fmt::format("dot.c1: two operands, found {}", args.operands.size()));
  const TensorType& lhs = args.operands[0];
  const TensorType& rhs = args.operands[1];
  if (!is_float(lhs.dtype) || !is_float(rhs.dtype) || !is_float(args.dtype))
    return failed("dot.c2: floating-point operands and result");
  for (const Dim& d : lhs.shape) {
    const int i = find_dim(rhs.shape, d.name);
    if (i >= 0 && !(rhs.shape[static_cast<std::size_t>(i)] == d))
      return failed(fmt::format("dot.c3: {} is {} in one operand and {} in the other", to_string(d.name), d.size,
                                rhs.shape[static_cast<std::size_t>(i)].size));
  }
  Shape shape;
  for (const Dim& wanted : args.like) {
    const int l = find_dim(lhs.shape, wanted.name);
    const int r = find_dim(rhs.shape, wanted.name);
    if (l < 0 && r < 0) return failed(fmt::format("dot.c4: result dim {} is in no operand", to_string(wanted.name)));
    if (find_dim(shape, wanted.name) >= 0)
      return failed(fmt::format("dot.c5: result dim {} is there twice", to_string(wanted.name)));
    shape.push_back(l >= 0 ? lhs.shape[static_cast<std::size_t>(l)] : rhs.shape[static_cast<std::size_t>(r)]);
  }
  for (int side = 0; side < 2; ++side) {
    const Shape& own = side == 0 ? lhs.shape : rhs.shape;
    const Shape& other = side == 0 ? rhs.shape : lhs.shape;
    for (const Dim& d : own)
      if (find_dim(other, d.name) < 0 && find_dim(shape, d.name) < 0)
        return failed(fmt::format("dot.c6: {} is in one operand alone and not in the result", to_string(d.name)));
  }
  return one_result(args.dtype, shape);
}

}  // namespace tpusim::ir
