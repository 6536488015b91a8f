// Shape inference of lookup, pick and their gradients.
#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {

Inferred infer_op(const Lookup& lookup, const InferArgs& args) {
  if (args.operands.size() != 2) return failed(fmt::format("lookup.c1: two operands, found {}", args.operands.size()));
  const TensorType& table = args.operands[0];
  const TensorType& ids = args.operands[1];
  if (!is_float(table.dtype) || ids.dtype != DType::i32) return failed("lookup.c2: a floating-point table and i32 ids");
  if (find_dim(table.shape, lookup.rows) < 0)
    return failed(fmt::format("lookup.c3: the table has no dim {}", to_string(lookup.rows)));
  Shape shape = ids.shape;
  for (const Dim& d : table.shape) {
    if (d.name == lookup.rows) continue;
    if (find_dim(ids.shape, d.name) >= 0)
      return failed(fmt::format("lookup.c4: {} is a dim of the table and of the ids", to_string(d.name)));
    shape.push_back(d);
  }
  return one_result(table.dtype, shape);
}

Inferred infer_op(const LookupGrad& lookup, const InferArgs& args) {
  if (args.operands.size() != 2)
    return failed(fmt::format("lookup_grad.c1: two operands, found {}", args.operands.size()));
  const TensorType& ids = args.operands[0];
  const TensorType& dy = args.operands[1];
  if (!is_float(dy.dtype) || !is_float(args.dtype) || ids.dtype != DType::i32)
    return failed("lookup_grad.c2: i32 ids, a floating-point dy and result");
  for (const Dim& d : ids.shape) {
    const int i = find_dim(dy.shape, d.name);
    if (i < 0 || !(dy.shape[static_cast<std::size_t>(i)] == d))
      return failed(fmt::format("lookup_grad.c3: dy has the ids' dim {} of {}", to_string(d.name), d.size));
  }
  Shape shape = {lookup.rows};
  for (const Dim& d : dy.shape)
    if (find_dim(ids.shape, d.name) < 0) shape.push_back(d);
  return one_result(args.dtype, shape);
}

Inferred infer_op(const Pick& pick, const InferArgs& args) {
  if (args.operands.size() != 2) return failed(fmt::format("pick.c1: two operands, found {}", args.operands.size()));
  const TensorType& x = args.operands[0];
  const TensorType& ids = args.operands[1];
  if (!is_float(x.dtype) || ids.dtype != DType::i32) return failed("pick.c2: a floating-point x and i32 ids");
  if (find_dim(x.shape, pick.classes) < 0)
    return failed(fmt::format("pick.c3: x has no dim {}", to_string(pick.classes)));
  if (ids.shape.size() + 1 != x.shape.size()) return failed("pick.c4: the ids have all dims of x but the classes");
  for (const Dim& d : x.shape) {
    if (d.name == pick.classes) continue;
    const int i = find_dim(ids.shape, d.name);
    if (i < 0 || !(ids.shape[static_cast<std::size_t>(i)] == d))
      return failed("pick.c4: the ids have all dims of x but the classes");
  }
  return one_result(x.dtype, ids.shape);
}

Inferred infer_op(const PickGrad& pick, const InferArgs& args) {
  if (args.operands.size() != 2)
    return failed(fmt::format("pick_grad.c1: two operands, found {}", args.operands.size()));
  const TensorType& ids = args.operands[0];
  const TensorType& dy = args.operands[1];
  if (!is_float(dy.dtype) || ids.dtype != DType::i32) return failed("pick_grad.c2: i32 ids and a floating-point dy");
  if (!(ids.shape == dy.shape)) return failed("pick_grad.c3: ids and dy of one shape");
  Shape shape = dy.shape;
  if (find_dim(shape, pick.classes.name) >= 0)
    return failed(fmt::format("pick_grad.c4: dy already has a dim {}", to_string(pick.classes.name)));
  shape.push_back(pick.classes);
  return one_result(dy.dtype, shape);
}

}  // namespace tpusim::ir
