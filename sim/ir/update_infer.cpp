#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

struct Form {
  std::size_t states;  // operands and results beside the parameter
  bool step;
};

Form form_of(Optimizer kind) {
  switch (kind) {
    case Optimizer::sgd:
      return {0, false};
    case Optimizer::momentum:
      return {1, false};
    case Optimizer::adam:
      return {2, true};
    case Optimizer::adamw:
      return {2, true};
    case Optimizer::adafactor:
      return {0, false};
  }
  internal_error(__FILE__, __LINE__, "kind", "an optimizer without a form");
}

}  // namespace

Inferred infer_op(const Update& update, const InferArgs& args) {
  if (update.kind == Optimizer::adafactor)
    return failed("update.c5: adafactor is a composition (sim/ir/optimizer.cpp), not one op");
  const Form form = form_of(update.kind);
  const std::size_t wanted = 3 + form.states + (form.step ? 1 : 0);
  if (args.operands.size() != wanted)
    return failed(fmt::format("update.c1: {} operands, found {}", wanted, args.operands.size()));
  const TensorType& p = args.operands[0];
  if (p.dtype != DType::f32 && p.dtype != DType::f64) return failed("update.c2: a parameter of f32 or f64");
  for (std::size_t i = 1; i < wanted; ++i) {
    const TensorType& x = args.operands[i];
    const bool scalar = i == 2 || (form.step && i + 1 == wanted);
    if (x.dtype != p.dtype) return failed("update.c3: all operands of the parameter's dtype");
    if (scalar ? !x.shape.empty() : !(x.shape == p.shape))
      return failed(scalar ? "update.c4: gscale and step are scalars"
                           : "update.c4: gradient and state are like the parameter");
  }
  Inferred out = one_result(p.dtype, p.shape);
  for (std::size_t i = 0; i < form.states; ++i) out.results.push_back(TensorType{p.dtype, p.shape, Place::none});
  return out;
}

}  // namespace tpusim::ir
