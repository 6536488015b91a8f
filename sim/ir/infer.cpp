// Dispatch of shape inference and what its parts share.
#include <fmt/format.h>

#include <utility>

#include "sim/ir/readers.hpp"

namespace tpusim::ir {

Inferred failed(std::string error) {
  Inferred out;
  out.error = std::move(error);
  return out;
}

Inferred one_result(DType dtype, const Shape& shape) {
  Inferred out;
  out.results.push_back(TensorType{dtype, shape, Place::none});
  return out;
}

bool is_float(DType dtype) {
  return dtype != DType::i32;
}

Inferred infer(const OpKind& kind, const std::vector<TensorType>& operands, DType dtype, const Shape& like) {
  const InferArgs args{operands, dtype, like};
  return std::visit([&args](const auto& op) { return infer_op(op, args); }, kind);
}

Inferred infer(const OpKind& kind, const std::vector<TensorType>& operands, DType dtype) {
  return infer(kind, operands, dtype, Shape());
}

}  // namespace tpusim::ir
