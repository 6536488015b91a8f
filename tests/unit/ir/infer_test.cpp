#include <doctest/doctest.h>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0}, kVocab{Axis::vocab, 0};
Dim dim(DimName name, std::int64_t size, std::int64_t valid = 0) {
  return {name, size, valid == 0 ? size : valid};
}
TensorType f32(Shape shape) {
  return {DType::f32, shape, Place::none};
}
TensorType bf16(Shape shape) {
  return {DType::bf16, shape, Place::none};
}
TensorType i32(Shape shape) {
  return {DType::i32, shape, Place::none};
}

// "bf16[batch 2] f32[...]" or the error's rule.
std::string inferred(const OpKind& kind, const std::vector<TensorType>& operands, DType dtype = DType::f32,
                     const Shape& like = Shape()) {
  const Inferred r = infer(kind, operands, dtype, like);
  if (!r.error.empty()) return r.error.substr(0, r.error.find(':'));
  std::string out;
  for (const TensorType& t : r.results) out += (out.empty() ? "" : " ") + to_string(t);
  return out;
}

const Shape kX = {dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, 8, 6)};

}  // namespace

TEST_CASE("a product takes its dims by name from either operand and its dtype from the op") {
  const TensorType w = bf16({dim(kEmbed, 8, 6), dim(kMlp, 16)});
  const Shape like = {dim(kMlp, 1), dim(kBatch, 1), dim(kSeq, 1)};
  CHECK(inferred(Dot{}, {bf16(kX), w}, DType::f32, like) == "f32[mlp 16, batch 2, seq 3]");
  // batched: seq in both and in the result
  CHECK(inferred(Dot{}, {bf16(kX), bf16({dim(kSeq, 3), dim(kEmbed, 8, 6)})}, DType::bf16,
                 {dim(kBatch, 1), dim(kSeq, 1)}) == "bf16[batch 2, seq 3]");
}

TEST_CASE("an elementwise op has the union of its operands' dims") {
  CHECK(inferred(Map{Elementwise::add, 0}, {f32({dim(kSeq, 3)}), f32({dim(kSeq, 3), dim(kMlp, 5)})}) ==
        "f32[seq 3, mlp 5]");
  CHECK(inferred(Map{Elementwise::mul, 0}, {f32({}), f32({dim(kSeq, 3)})}) == "f32[seq 3]");
  CHECK(inferred(Map{Elementwise::exp, 0}, {bf16(kX)}) == "bf16[batch 2, seq 3, embed 8 of valid 6]");
  CHECK(inferred(Map{Elementwise::cast, 0}, {bf16(kX)}, DType::f64) == "f64[batch 2, seq 3, embed 8 of valid 6]");
}

TEST_CASE("reduce drops dims, rename renames one, masks and rope keep all") {
  CHECK(inferred(Reduce{Reduction::sum, {kEmbed, kBatch}}, {f32(kX)}) == "f32[seq 3]");
  CHECK(inferred(Reduce{Reduction::sum, {kEmbed}}, {bf16(kX)}, DType::f32) == "f32[batch 2, seq 3]");
  CHECK(inferred(Rename{kSeq, kKeySeq}, {f32(kX)}) == "f32[batch 2, key_seq 3, embed 8 of valid 6]");
  CHECK(inferred(MaskPadding{kEmbed, 0, {}}, {f32(kX)}) == "f32[batch 2, seq 3, embed 8 of valid 6]");
  CHECK(inferred(MaskCausal{kSeq, kEmbed, 0, {}, {}}, {f32(kX)}) == "f32[batch 2, seq 3, embed 8 of valid 6]");
  CHECK(inferred(Rope{kBatch, kMlp, 1e4, false, {}}, {f32({dim(kBatch, 2), dim(kMlp, 4)})}) == "f32[batch 2, mlp 4]");
}

TEST_CASE("lookup puts the row's dims after the ids', and its gradient the rows before") {
  const Shape ids = {dim(kBatch, 2), dim(kSeq, 3)};
  CHECK(inferred(Lookup{kVocab, {}}, {bf16({dim(kVocab, 10), dim(kEmbed, 4)}), i32(ids)}) ==
        "bf16[batch 2, seq 3, embed 4]");
  CHECK(inferred(LookupGrad{dim(kVocab, 10), {}}, {i32(ids), f32({dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, 4)})}) ==
        "f32[vocab 10, embed 4]");
  CHECK(inferred(Pick{kVocab, {}}, {f32({dim(kBatch, 2), dim(kSeq, 3), dim(kVocab, 10)}), i32(ids)}) ==
        "f32[batch 2, seq 3]");
  CHECK(inferred(PickGrad{dim(kVocab, 10), {}}, {i32(ids), f32(ids)}) == "f32[batch 2, seq 3, vocab 10]");
}

TEST_CASE("flash gives the output like q and statistics in f32, its gradient one tensor like each operand") {
  const Shape q = {dim(kBatch, 2), dim(kSeq, 6), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kHeadDim, 4)};
  const Shape k = {dim(kBatch, 2), dim(kKeySeq, 6), dim(kKvHeads, 2), dim(kHeadDim, 4)};
  const Shape lse = {dim(kBatch, 2), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kSeq, 6)};
  CHECK(inferred(Flash{}, {bf16(q), bf16(k), bf16(k)}) == to_string(bf16(q)) + " " + to_string(f32(lse)));
  CHECK(inferred(FlashGrad{}, {bf16(q), bf16(k), bf16(k), bf16(q), f32(lse), bf16(q)}) ==
        to_string(bf16(q)) + " " + to_string(bf16(k)) + " " + to_string(bf16(k)));
}

TEST_CASE("updates give the parameter and its state, collectives the shape that they are told") {
  const TensorType p = f32({dim(kEmbed, 4)}), s = f32({});
  CHECK(inferred(Update{Optimizer::sgd}, {p, p, s}) == "f32[embed 4]");
  CHECK(inferred(Update{Optimizer::momentum}, {p, p, s, p}) == "f32[embed 4] f32[embed 4]");
  CHECK(inferred(Update{Optimizer::adamw}, {p, p, s, p, p, s}) == "f32[embed 4] f32[embed 4] f32[embed 4]");
  CHECK(inferred(AllGather{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 16, 4)}) == "f32[embed 16 of valid 4]");
  CHECK(inferred(Slice{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 2, 4)}) == "f32[embed 2 of valid 4]");
  CHECK(inferred(ReduceScatter{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 1, 4)}) == "f32[embed 1 of valid 4]");
  CHECK(inferred(AllReduce{Reduction::max, {0}}, {p}) == "f32[embed 4]");
  CHECK(inferred(Fill{3}, {}, DType::f32, {dim(kEmbed, 4)}) == "f32[embed 4]");
}

TEST_CASE("each rule of shape inference is broken once and answers with its number") {
  const TensorType x = f32(kX), ids = i32({dim(kBatch, 2), dim(kSeq, 3)});
  const TensorType w = f32({dim(kEmbed, 8, 6), dim(kMlp, 16)});
  const Shape like = {dim(kBatch, 1), dim(kSeq, 1), dim(kMlp, 1)};
  CHECK(inferred(Dot{}, {x}, DType::f32, like) == "dot.c1");
  CHECK(inferred(Dot{}, {ids, w}, DType::f32, like) == "dot.c2");
  CHECK(inferred(Dot{}, {x, f32({dim(kEmbed, 8, 7), dim(kMlp, 16)})}, DType::f32, like) == "dot.c3");
  CHECK(inferred(Dot{}, {x, w}, DType::f32, {dim(kVocab, 1)}) == "dot.c4");
  CHECK(inferred(Dot{}, {x, w}, DType::f32, {dim(kBatch, 1), dim(kBatch, 1)}) == "dot.c5");
  CHECK(inferred(Dot{}, {x, w}, DType::f32, {dim(kBatch, 1), dim(kMlp, 1)}) == "dot.c6");
  CHECK(inferred(Map{Elementwise::add, 0}, {x}) == "map.c1");
  CHECK(inferred(Map{Elementwise::neg, 0}, {ids}) == "map.c2");
  CHECK(inferred(Map{Elementwise::add, 0}, {x, bf16(kX)}) == "map.c3");
  CHECK(inferred(Map{Elementwise::add, 0}, {x, f32({dim(kSeq, 4)})}) == "map.c4");
  CHECK(inferred(Reduce{Reduction::sum, {kSeq}}, {}) == "reduce.c1");
  CHECK(inferred(Reduce{Reduction::sum, {kSeq}}, {ids}) == "reduce.c2");
  CHECK(inferred(Reduce{Reduction::sum, {kMlp}}, {x}) == "reduce.c3");
  CHECK(inferred(Reduce{Reduction::sum, {}}, {x}) == "reduce.c4");
  CHECK(inferred(Rename{kSeq, kKeySeq}, {}) == "rename.c1");
  CHECK(inferred(Rename{kMlp, kKeySeq}, {x}) == "rename.c2");
  CHECK(inferred(Rename{kSeq, kBatch}, {x}) == "rename.c3");
  CHECK(inferred(MaskPadding{kSeq, 0, {}}, {}) == "mask_padding.c1");
  CHECK(inferred(MaskPadding{kSeq, 0, {}}, {ids}) == "mask_padding.c2");
  CHECK(inferred(MaskPadding{kMlp, 0, {}}, {x}) == "mask_padding.c3");
  CHECK(inferred(MaskCausal{kSeq, kEmbed, 0, {}, {}}, {}) == "mask_causal.c1");
  CHECK(inferred(MaskCausal{kSeq, kBatch, 0, {}, {}}, {ids}) == "mask_causal.c2");
  CHECK(inferred(MaskCausal{kSeq, kSeq, 0, {}, {}}, {x}) == "mask_causal.c3");
  CHECK(inferred(MaskCausal{kSeq, kMlp, 0, {}, {}}, {x}) == "mask_causal.c4");
  CHECK(inferred(Rope{kSeq, kMlp, 1e4, false, {}}, {}) == "rope.c1");
  CHECK(inferred(Rope{kSeq, kBatch, 1e4, false, {}}, {ids}) == "rope.c2");
  CHECK(inferred(Rope{kMlp, kBatch, 1e4, false, {}}, {x}) == "rope.c3");
  CHECK(inferred(Rope{kBatch, kSeq, 1e4, false, {}}, {x}) == "rope.c4");    // 3 is odd
  CHECK(inferred(Rope{kBatch, kEmbed, 1e4, false, {}}, {x}) == "rope.c4");  // padded
  const TensorType table = f32({dim(kVocab, 10), dim(kEmbed, 4)});
  CHECK(inferred(Lookup{kVocab, {}}, {table}) == "lookup.c1");
  CHECK(inferred(Lookup{kVocab, {}}, {table, x}) == "lookup.c2");
  CHECK(inferred(Lookup{kMlp, {}}, {table, ids}) == "lookup.c3");
  CHECK(inferred(Lookup{kVocab, {}}, {table, i32({dim(kEmbed, 4)})}) == "lookup.c4");
  CHECK(inferred(LookupGrad{dim(kVocab, 10), {}}, {ids}) == "lookup_grad.c1");
  CHECK(inferred(LookupGrad{dim(kVocab, 10), {}}, {x, x}) == "lookup_grad.c2");
  CHECK(inferred(LookupGrad{dim(kVocab, 10), {}}, {ids, f32({dim(kBatch, 2)})}) == "lookup_grad.c3");
  CHECK(inferred(Pick{kEmbed, {}}, {x}) == "pick.c1");
  CHECK(inferred(Pick{kEmbed, {}}, {x, x}) == "pick.c2");
  CHECK(inferred(Pick{kMlp, {}}, {x, ids}) == "pick.c3");
  CHECK(inferred(Pick{kEmbed, {}}, {x, i32({dim(kBatch, 2)})}) == "pick.c4");
  CHECK(inferred(PickGrad{dim(kVocab, 10), {}}, {ids}) == "pick_grad.c1");
  CHECK(inferred(PickGrad{dim(kVocab, 10), {}}, {x, x}) == "pick_grad.c2");
  CHECK(inferred(PickGrad{dim(kVocab, 10), {}}, {ids, x}) == "pick_grad.c3");
  CHECK(inferred(PickGrad{dim(kSeq, 10), {}}, {ids, f32({dim(kBatch, 2), dim(kSeq, 3)})}) == "pick_grad.c4");
  CHECK(inferred(Fill{}, {x}) == "fill.c1");
  CHECK(inferred(Fill{}, {}, DType::i32) == "fill.c2");
}

TEST_CASE("each rule of attention, updates and collectives is broken once and answers with its number") {
  const Shape qs = {dim(kBatch, 2), dim(kSeq, 6), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kHeadDim, 4)};
  const Shape ks = {dim(kBatch, 2), dim(kKeySeq, 6), dim(kKvHeads, 2), dim(kHeadDim, 4)};
  const Shape other = {dim(kBatch, 2), dim(kKeySeq, 6), dim(kKvHeads, 2), dim(kHeadDim, 8)};
  const TensorType q = f32(qs), k = f32(ks),
                   lse = f32({dim(kBatch, 2), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kSeq, 6)});
  CHECK(inferred(Flash{}, {q, k}) == "flash.c1");
  CHECK(inferred(Flash{}, {q, bf16(ks), k}) == "flash.c2");
  CHECK(inferred(Flash{}, {k, k, k}) == "flash.c3");
  CHECK(inferred(Flash{}, {q, q, q}) == "flash.c4");
  CHECK(inferred(Flash{}, {q, f32(other), f32(other)}) == "flash.c5");
  Flash no_block;
  no_block.block = 0;
  CHECK(inferred(no_block, {q, k, k}) == "flash.c6");
  CHECK(inferred(FlashGrad{}, {q, k, k}) == "flash_grad.c1");
  CHECK(inferred(FlashGrad{}, {q, bf16(ks), k, q, lse, q}) == "flash_grad.c2");
  CHECK(inferred(FlashGrad{}, {k, k, k, q, lse, q}) == "flash_grad.c3");
  CHECK(inferred(FlashGrad{}, {q, q, q, q, lse, q}) == "flash_grad.c4");
  CHECK(inferred(FlashGrad{}, {q, f32(other), f32(other), q, lse, q}) == "flash_grad.c5");
  FlashGrad no_grad_block;
  no_grad_block.block = 0;
  CHECK(inferred(no_grad_block, {q, k, k, q, lse, q}) == "flash_grad.c6");
  CHECK(inferred(FlashGrad{}, {q, k, k, k, lse, q}) == "flash_grad.c7");
  CHECK(inferred(FlashGrad{}, {q, k, k, q, k, q}) == "flash_grad.c8");
  const TensorType p = f32({dim(kEmbed, 4)}), s = f32({});
  CHECK(inferred(Update{Optimizer::sgd}, {p, p}) == "update.c1");
  CHECK(inferred(Update{Optimizer::sgd}, {bf16({dim(kEmbed, 4)}), p, s}) == "update.c2");
  CHECK(inferred(Update{Optimizer::sgd}, {p, bf16({dim(kEmbed, 4)}), s}) == "update.c3");
  CHECK(inferred(Update{Optimizer::sgd}, {p, p, p}) == "update.c4");
  CHECK(inferred(Update{Optimizer::adafactor}, {p, p, s}) == "update.c5");
  CHECK(inferred(AllGather{kEmbed, {0}}, {}) == "all_gather.c1");
  CHECK(inferred(AllGather{kMlp, {0}}, {p}) == "all_gather.c2");
  CHECK(inferred(AllGather{kEmbed, {0}}, {p}, DType::f32, {dim(kMlp, 8)}) == "all_gather.c3");
  CHECK(inferred(AllGather{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 6, 4)}) == "all_gather.c4");
  CHECK(inferred(ReduceScatter{kEmbed, {0}}, {}) == "reduce_scatter.c1");
  CHECK(inferred(ReduceScatter{kMlp, {0}}, {p}) == "reduce_scatter.c2");
  CHECK(inferred(ReduceScatter{kEmbed, {0}}, {p}) == "reduce_scatter.c3");
  CHECK(inferred(ReduceScatter{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 8, 4)}) == "reduce_scatter.c4");
  CHECK(inferred(Slice{kEmbed, {0}}, {}) == "slice.c1");
  CHECK(inferred(Slice{kMlp, {0}}, {p}) == "slice.c2");
  CHECK(inferred(Slice{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 2, 3)}) == "slice.c3");
  CHECK(inferred(Slice{kEmbed, {0}}, {p}, DType::f32, {dim(kEmbed, 3, 4)}) == "slice.c4");
  CHECK(inferred(AllReduce{}, {}) == "all_reduce.c1");
}
