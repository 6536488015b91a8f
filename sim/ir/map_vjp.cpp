// Derivatives of the elementwise functions. A broadcast operand's gradient is summed over the dims that it lacks.
#include <fmt/format.h>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

// d x of a function of one operand, with the dims that dy brings.
ValueId unary(const Map& map, const VjpArgs& args) {
  Builder& b = args.builder();
  const Value x = args.operand(0);
  const Builder::As as{gradient_as(x).label, x.type.place, Table::activations};
  const ValueId dy = args.dy[0];
  const auto times = [&](ValueId factor) { return b.map(Elementwise::mul, factor, dy, as); };
  switch (map.kind) {
    case Elementwise::copy:
    case Elementwise::cast:
    case Elementwise::add_scalar:
      return dy;
    case Elementwise::neg:
      return b.map(Elementwise::neg, dy, as);
    case Elementwise::scale:
      return b.map(Elementwise::scale, dy, as, map.a);
    case Elementwise::exp:
      return times(args.y(0));
    case Elementwise::log:
      return product(b, dy, b.map(Elementwise::reciprocal, args.x(0), as), as);
    case Elementwise::sqrt:  // 1 / (2 y)
      return b.map(Elementwise::scale, product(b, dy, b.map(Elementwise::reciprocal, args.y(0), as), as), as, 0.5);
    case Elementwise::rsqrt: {  // -y^3 / 2
      const ValueId cube = b.map(Elementwise::mul, b.map(Elementwise::square, args.y(0), as), args.y(0), as);
      return b.map(Elementwise::scale, times(cube), as, -0.5);
    }
    case Elementwise::reciprocal:  // -y^2
      return b.map(Elementwise::neg, times(b.map(Elementwise::square, args.y(0), as)), as);
    case Elementwise::square:
      return b.map(Elementwise::scale, times(args.x(0)), as, 2);
    case Elementwise::tanh:
      return b.map(Elementwise::tanh_grad, args.y(0), dy, as);
    case Elementwise::sigmoid:  // y - y^2
      return times(b.map(Elementwise::sub, args.y(0), b.map(Elementwise::square, args.y(0), as), as));
    case Elementwise::relu:
      return b.map(Elementwise::relu_grad, args.x(0), dy, as);
    case Elementwise::silu:
      return b.map(Elementwise::silu_grad, args.x(0), dy, as);
    case Elementwise::gelu:
      return b.map(Elementwise::gelu_grad, args.x(0), dy, as);
    case Elementwise::minimum_scalar:  // dy where a - x > 0
      return b.map(Elementwise::relu_grad,
                   b.map(Elementwise::add_scalar, b.map(Elementwise::neg, args.x(0), as), as, map.a), dy, as);
    case Elementwise::add:
    case Elementwise::sub:
    case Elementwise::mul:
    case Elementwise::div:
    case Elementwise::maximum:
    case Elementwise::relu_grad:
    case Elementwise::silu_grad:
    case Elementwise::gelu_grad:
    case Elementwise::tanh_grad:
      break;
  }
  internal_error(__FILE__, __LINE__, "unary", "an elementwise function of two operands");
}

// z = x / y: dx = dy / y; dy = -sum(dz z) / y, summed before the quotient, where y is small.
Gradients quotient(const VjpArgs& args, const Shape& shape) {
  Builder& b = args.builder();
  const Value x = args.operand(0), y = args.operand(1);
  const Builder::As as_x = gradient_as(x), as_y = gradient_as(y);
  const ValueId dx = b.map(Elementwise::div, spread(b, args.dy[0], shape, as_x), args.x(1), {as_x.label, as_x.place});
  Value plain = y;  // summed as an activation first: two more functions follow
  plain.table = Table::activations;
  const ValueId sum = fold_to(args, product(b, args.y(0), args.dy[0], {as_y.label, as_y.place}), plain, shape);
  const ValueId dy = b.map(Elementwise::neg, b.map(Elementwise::div, sum, args.x(1), {as_y.label, as_y.place}),
                           {as_y.label, as_y.place});
  return {fold_to(args, dx, x, shape), fold_to(args, dy, y, y.type.shape)};
}

// max(x, y): dx = dz where x - y > 0, dy = dz - dx.
Gradients larger(const VjpArgs& args, const Shape& shape) {
  Builder& b = args.builder();
  const Value x = args.operand(0), y = args.operand(1);
  const Builder::As as{gradient_as(x).label, x.type.place, Table::activations};
  const ValueId difference = b.map(Elementwise::sub, args.x(0), args.x(1), as);
  const ValueId dx = b.map(Elementwise::relu_grad, difference, args.dy[0], as);
  const ValueId dy = b.map(Elementwise::sub, spread(b, args.dy[0], shape, as), dx, as);
  return {fold_to(args, dx, x, shape), fold_to(args, dy, y, shape)};
}

}  // namespace

Gradients vjp_op(const Map& map, const VjpArgs& args) {
  const Shape shape = args.result(0).type.shape;
  const Value x = args.operand(0);
  if (map_operands(map.kind) == 1) return {fold_to(args, unary(map, args), x, shape)};
  Builder& b = args.builder();
  const Value y = args.operand(1);
  const ValueId dz = args.dy[0];
  // Before it is folded, a gradient has the result's dims and stands where the result stands.
  const Place place = args.result(0).type.place;
  const Builder::As as_x{gradient_as(x).label, place, Table::activations};
  const Builder::As as_y{gradient_as(y).label, place, Table::activations};
  switch (map.kind) {
    case Elementwise::add:
      return {fold_to(args, dz, x, shape), fold_to(args, dz, y, shape)};
    case Elementwise::sub:
      return {fold_to(args, dz, x, shape), fold_to(args, b.map(Elementwise::neg, dz, as_y), y, shape)};
    case Elementwise::mul: {
      const ValueId dx = fold_to(args, product(b, dz, args.x(1), as_x), x, shape);
      return {dx, fold_to(args, product(b, dz, args.x(0), as_y), y, shape)};
    }
    case Elementwise::div:
      return quotient(args, shape);
    case Elementwise::maximum:
      return larger(args, shape);
    case Elementwise::copy:
    case Elementwise::cast:
    case Elementwise::neg:
    case Elementwise::scale:
    case Elementwise::add_scalar:
    case Elementwise::exp:
    case Elementwise::log:
    case Elementwise::sqrt:
    case Elementwise::rsqrt:
    case Elementwise::reciprocal:
    case Elementwise::square:
    case Elementwise::tanh:
    case Elementwise::sigmoid:
    case Elementwise::relu:
    case Elementwise::silu:
    case Elementwise::gelu:
    case Elementwise::minimum_scalar:
    case Elementwise::relu_grad:
    case Elementwise::silu_grad:
    case Elementwise::gelu_grad:
    case Elementwise::tanh_grad:
      break;
  }
  internal_error(__FILE__, __LINE__, "vjp", fmt::format("{} is not differentiable", op_name(map)));
}

}  // namespace tpusim::ir
