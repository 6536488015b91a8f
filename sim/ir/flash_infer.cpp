#include <fmt/format.h>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

bool has_dims(const Shape& shape, std::initializer_list<DimName> names) {
  if (shape.size() != names.size()) return false;
  for (const DimName name : names)
    if (find_dim(shape, name) < 0) return false;
  return true;
}

// "" or what is wrong with q, k, v; `op` is "flash" or "flash_grad".
std::string check_qkv(const char* op, const std::vector<TensorType>& operands, std::int32_t block) {
  const TensorType &q = operands[0], &k = operands[1], &v = operands[2];
  if (!is_float(q.dtype) || q.dtype != k.dtype || q.dtype != v.dtype)
    return fmt::format("{}.c2: q, k and v of one floating-point dtype", op);
  if (!has_dims(q.shape, {kBatch, kSeq, kKvHeads, kQGroup, kHeadDim}))
    return fmt::format("{}.c3: q has dims batch, seq, kv_heads, q_group, head_dim", op);
  if (!has_dims(k.shape, {kBatch, kKeySeq, kKvHeads, kHeadDim}) || !(k.shape == v.shape))
    return fmt::format("{}.c4: k and v have dims batch, key_seq, kv_heads, head_dim", op);
  for (const Dim& d : k.shape) {
    const int i = find_dim(q.shape, d.name);
    if (i >= 0 && !(q.shape[static_cast<std::size_t>(i)] == d))
      return fmt::format("{}.c5: {} is the same in q, k and v", op, to_string(d.name));
  }
  if (block < 1) return fmt::format("{}.c6: a block of at least 1, found {}", op, block);
  return "";
}

// batch, kv_heads, q_group, seq
Shape statistics_shape(const Shape& q) {
  Shape out;
  for (const DimName name : {kBatch, kKvHeads, kQGroup, kSeq})
    out.push_back(q[static_cast<std::size_t>(find_dim(q, name))]);
  return out;
}

DType statistics_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace

Inferred infer_op(const Flash& flash, const InferArgs& args) {
  if (args.operands.size() != 3) return failed(fmt::format("flash.c1: three operands, found {}", args.operands.size()));
  if (std::string error = check_qkv("flash", args.operands, flash.block); !error.empty()) return failed(error);
  const TensorType& q = args.operands[0];
  Inferred out = one_result(q.dtype, q.shape);
  out.results.push_back(TensorType{statistics_dtype(q.dtype), statistics_shape(q.shape), Place::none});
  return out;
}

Inferred infer_op(const FlashGrad& flash, const InferArgs& args) {
  if (args.operands.size() != 6)
    return failed(fmt::format("flash_grad.c1: six operands, found {}", args.operands.size()));
  if (std::string error = check_qkv("flash_grad", args.operands, flash.block); !error.empty()) return failed(error);
  const TensorType& q = args.operands[0];
  const TensorType &o = args.operands[3], &lse = args.operands[4], &grad = args.operands[5];
  if (!(o.shape == q.shape) || !(grad.shape == q.shape) || o.dtype != q.dtype || grad.dtype != q.dtype)
    return failed("flash_grad.c7: o and do are like q");
  if (lse.dtype != statistics_dtype(q.dtype) || !(lse.shape == statistics_shape(q.shape)))
    return failed("flash_grad.c8: lse has dims batch, kv_heads, q_group, seq");
  Inferred out;
  for (std::size_t i = 0; i < 3; ++i)
    out.results.push_back(TensorType{args.operands[i].dtype, args.operands[i].shape, Place::none});
  return out;
}

}  // namespace tpusim::ir
