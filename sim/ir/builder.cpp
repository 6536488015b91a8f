#include <fmt/format.h>

#include <utility>

#include "sim/base/check.hpp"
#include "sim/ir/ops.hpp"

namespace tpusim::ir {

ValueId Builder::input(TensorType type, std::string_view label, Table table) {
  Value value;
  value.type = type;
  value.table = table;
  value.label = label;
  program_.values.push_back(value);
  return ValueId(program_.values.size() - 1);
}

InlineVector<ValueId, 4> Builder::add(const OpKind& kind, const InlineVector<ValueId, 8>& operands, DType dtype, As as,
                                      const Shape& like) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const ValueId id : operands) {
    TPUSIM_CHECK(id.valid() && static_cast<std::size_t>(id.index) < program_.values.size(),
                 fmt::format("{} of {} has an operand that does not exist", op_name(kind), as.label));
    types.push_back(program_.value(id).type);
  }
  const Inferred inferred = infer(kind, types, dtype, like);
  TPUSIM_CHECK(inferred.error.empty(), fmt::format("{} \"{}\": {}", op_name(kind), as.label, inferred.error));
  const OpId op_id(program_.ops.size());
  Op op;
  op.kind = kind;
  op.operands = operands;
  op.phase = phase;
  for (const TensorType& type : inferred.results) {
    Value value;
    value.type = type;
    value.type.place = as.place;
    value.producer = op_id;
    value.table = as.table;
    value.label = as.label;
    program_.values.push_back(value);
    op.results.push_back(ValueId(program_.values.size() - 1));
  }
  program_.ops.push_back(op);
  return op.results;
}

ValueId Builder::dot(ValueId lhs, ValueId rhs, const DimNames& result, DType dtype, As as) {
  Shape like;
  for (const DimName name : result) like.push_back(Dim{name, 1, 1});
  return add(Dot{}, {lhs, rhs}, dtype, as, like)[0];
}

ValueId Builder::map(Elementwise kind, ValueId x, As as, double a) {
  return add(Map{kind, a}, {x}, type(x).dtype, as)[0];
}

ValueId Builder::map(Elementwise kind, ValueId x, ValueId y, As as) {
  return add(Map{kind, 0}, {x, y}, type(x).dtype, as)[0];
}

ValueId Builder::cast(ValueId x, DType dtype, As as) {
  return add(Map{Elementwise::cast, 0}, {x}, dtype, as)[0];
}

ValueId Builder::reduce(Reduction kind, ValueId x, const DimNames& dims, As as) {
  return add(Reduce{kind, dims}, {x}, type(x).dtype, as)[0];
}

ValueId Builder::fill(double value, const Shape& shape, DType dtype, As as) {
  return add(Fill{value}, {}, dtype, as, shape)[0];
}

}  // namespace tpusim::ir
