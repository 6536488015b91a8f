// Dispatch of vector-Jacobian products and what their parts share.
#include <fmt/format.h>

#include <type_traits>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

template <class T, class... Others>
constexpr bool is_any = (std::is_same_v<T, Others> || ...);

}  // namespace

Builder::As gradient_as(const Value& value) {
  if (value.table == Table::parameters) return {"gradient", value.type.place, Table::gradients};
  return {value.label, value.type.place, Table::activations};
}

DType gradient_dtype(const Value& value, const VjpContext& context) {
  return value.table == Table::parameters ? context.gradient_dtype : value.type.dtype;
}

ValueId spread(Builder& builder, ValueId dy, const Shape& shape, Builder::As as) {
  const TensorType type = builder.type(dy);
  if (type.shape == shape) return dy;
  const ValueId ones = builder.fill(1, shape, type.dtype, {"ones", as.place, Table::activations});
  return builder.map(Elementwise::mul, ones, dy, as);
}

ValueId product(Builder& builder, ValueId a, ValueId b, Builder::As as) {
  const bool swap = builder.type(b).shape.size() > builder.type(a).shape.size();
  return builder.map(Elementwise::mul, swap ? b : a, swap ? a : b, as);
}

ValueId fold_to(const VjpArgs& args, ValueId dy, const Value& value, const Shape& result_shape) {
  Builder& builder = args.builder();
  const Builder::As as = gradient_as(value);
  const DType wanted = gradient_dtype(value, args.context);
  const Shape have = builder.type(dy).shape;
  DimNames summed;
  double times = 1;
  for (const Dim& d : result_shape) {
    if (find_dim(value.type.shape, d.name) >= 0) continue;
    if (find_dim(have, d.name) >= 0)
      summed.push_back(d.name);
    else
      times *= static_cast<double>(d.valid);  // dy is the same along d
  }
  if (times != 1) dy = builder.map(Elementwise::scale, dy, {as.label, builder.type(dy).place}, times);
  // The sum comes out in the gradient's dtype: nothing is rounded or widened before it.
  if (!summed.empty()) dy = builder.add(Reduce{Reduction::sum, summed}, {dy}, wanted, as)[0];
  if (builder.type(dy).dtype != wanted) dy = builder.cast(dy, wanted, as);
  return dy;
}

InlineVector<ValueId, 8> vjp(const Op& op, const InlineVector<ValueId, 4>& result_gradients, VjpContext& context) {
  const VjpArgs args{op, result_gradients, context};
  return std::visit(
      [&](const auto& kind) -> Gradients {
        using T = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<T, Fill>) {
          return {};
        } else if constexpr (is_any<T, LookupGrad, PickGrad, FlashGrad, Update, AllGather, ReduceScatter, AllReduce,
                                    Slice>) {
          internal_error(__FILE__, __LINE__, "vjp", fmt::format("{} is not differentiable", op_name(op.kind)));
        } else {
          TPUSIM_CHECK(result_gradients.size() > 0 && result_gradients[0].valid(),
                       fmt::format("{} without a gradient of its first result", op_name(op.kind)));
          return vjp_op(kind, args);
        }
      },
      op.kind);
}

}  // namespace tpusim::ir
