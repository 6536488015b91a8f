// The closed set of operations. The same set serves the forward graph, its derivative, the per-device program (where
// the collectives appear) and the StepProgram. Each op is a plain struct of attributes; what it means is read by free
// functions (ops.hpp), one small file per op family and reader.
#pragma once

#include <cstdint>
#include <variant>

#include "sim/base/strong_id.hpp"
#include "sim/ir/types.hpp"

namespace tpusim::ir {

struct ValueTag;
struct OpTag;
using ValueId = StrongId<ValueTag>;
using OpId = StrongId<OpTag>;

// Indices of mesh axes, major to minor. The ir knows them only as numbers; sim/spmd has the Mesh.
using MeshAxes = InlineVector<std::uint8_t, 8>;

// Named einsum: (lhs, rhs) -> result. A dim in both operands and not in the result is contracted; in both and in the
// result, batched. Every dim of the result is a dim of an operand. FLOPs 2 x (product of all distinct dims). The
// result's dtype is the op's own (f32 accumulation stays inside). A dim of one operand alone must be in the result. lhs
// [m,k], rhs [k,n] -> [m,n].
struct Dot {
  bool operator==(const Dot&) const = default;
};

enum class Elementwise : std::uint8_t {
  // one operand
  copy,
  cast,
  neg,
  scale /* a*x */,
  add_scalar /* x+a */,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  square,
  tanh,
  sigmoid,
  relu,
  silu,
  gelu /* tanh form, Hendrycks and Gimpel 2016 */,
  minimum_scalar /* min(x,a) */,
  // two operands; (x, dy) for the gradients
  add,
  sub,
  mul,
  div,
  maximum,
  relu_grad,
  silu_grad,
  gelu_grad,
  tanh_grad /* (y, dy) */,
};
// Elementwise over the union of the operands' dims; a missing dim is broadcast.
struct Map {
  Elementwise kind = Elementwise::copy;
  double a = 0;
  bool operator==(const Map&) const = default;
};

enum class Reduction : std::uint8_t { sum, max };
// x -> x without `dims`, in the op's own dtype (a sum of bf16 entries can come out in f32). Padded entries: 0 by the
// padding rule (sum); for max they must have been masked before.
struct Reduce {
  Reduction kind = Reduction::sum;
  DimNames dims;
  bool operator==(const Reduce&) const = default;
};

// Same data, one dim called otherwise (k's seq becomes key_seq) and/or another place. Costs nothing.
struct Rename {
  DimName from, to;
  bool operator==(const Rename&) const = default;
};

// x where its global position is below the dim's valid size, else `fill`.
struct MaskPadding {
  DimName dim;
  double fill = 0;
  MeshAxes axes;  // how the dim is split (set by the partitioner); the same for every `axes` member below
  bool operator==(const MaskPadding&) const = default;
};
// scores where key <= query by global position, else `fill`.
struct MaskCausal {
  DimName query, key;
  double fill = 0;
  MeshAxes query_axes, key_axes;
  bool operator==(const MaskCausal&) const = default;
};

// Rotary position embedding (Su et al. 2021) on dim `rotated` (must be whole), half-split pairs (i, i + d/2) as in
// Llama; position = global index on `positions`. inverse: the transposed rotation.
struct Rope {
  DimName positions, rotated;
  double theta = 10000;
  bool inverse = false;
  MeshAxes axes;
  bool operator==(const Rope&) const = default;
};

// (table [rows, embed], ids [..]) -> [.., embed]; an id outside this device's rows gives 0 (so a split table gives a
// partial sum). Padded rows are never addressed.
struct Lookup {
  DimName rows;
  MeshAxes axes;
  bool operator==(const Lookup&) const = default;
};
// (ids [..], dy [.., embed]) -> [rows, embed]: scatter-add of dy, in the op's own dtype.
struct LookupGrad {
  Dim rows;  // of the result
  MeshAxes axes;
  bool operator==(const LookupGrad&) const = default;
};
// (x [.., classes], ids [..]) -> [..]: the entry that the id names; 0 where another device holds it.
struct Pick {
  DimName classes;
  MeshAxes axes;
  bool operator==(const Pick&) const = default;
};
// (ids [..], dy [..]) -> [.., classes]: dy at the entry that the id names, else 0.
struct PickGrad {
  Dim classes;  // of the result
  MeshAxes axes;
  bool operator==(const PickGrad&) const = default;
};

// FlashAttention (Dao 2023): (q [batch, seq, kv_heads, q_group, head_dim], k, v [batch, key_seq, kv_heads, head_dim])
// -> (o like q, lse f32 [batch, kv_heads, q_group, seq]). softmax(scale q k^T) v, causal if set. Executed FLOPs skip
// causal blocks of `block` x `block` scores that are wholly masked; model FLOPs count attention in full. key_seq and
// head_dim whole.
struct Flash {
  double scale = 1;
  bool causal = true;
  std::int32_t block = 128;
  MeshAxes query_axes;
  bool operator==(const Flash&) const = default;
};
// (q, k, v, o, lse, do) -> (dq, dk, dv). Computes the scores a second time.
struct FlashGrad {
  double scale = 1;
  bool causal = true;
  std::int32_t block = 128;
  MeshAxes query_axes;
  bool operator==(const FlashGrad&) const = default;
};

// A tensor of one value; no operands; the type is the result's.
struct Fill {
  double value = 0;
  bool operator==(const Fill&) const = default;
};

enum class Optimizer : std::uint8_t { sgd, momentum, adam, adamw, adafactor };
// One optimizer step, elementwise:
//   sgd      (p, g, gscale)             -> (p)
//   momentum (p, g, gscale, v)          -> (p, v)
//   adam(w)  (p, g, gscale, m, v, step) -> (p, m, v)
// gscale is a scalar that multiplies g (clipping); step the 1-based step number as a scalar (bias correction).
// Adafactor is built of Reduce, Map and `sgd`-like updates by sim/ir/optimizer.cpp. p and its state are at least f32
// (master weights).
struct Update {
  Optimizer kind = Optimizer::adamw;
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0, momentum = 0.9;
  bool operator==(const Update&) const = default;
};

// Collectives, over the replica groups that the mesh axes `axes` (major to minor) span. Put in by the partitioner.
struct AllGather {
  DimName dim;
  MeshAxes axes;
  bool operator==(const AllGather&) const = default;
};
struct ReduceScatter {
  DimName dim;
  MeshAxes axes;
  bool operator==(const ReduceScatter&) const = default;
};
struct AllReduce {
  Reduction kind = Reduction::sum;
  MeshAxes axes;
  bool operator==(const AllReduce&) const = default;
};
// This device's shard of a whole dim; free of communication.
struct Slice {
  DimName dim;
  MeshAxes axes;
  bool operator==(const Slice&) const = default;
};

using OpKind = std::variant<Dot, Map, Reduce, Rename, MaskPadding, MaskCausal, Rope, Lookup, LookupGrad, Pick, PickGrad,
                            Flash, FlashGrad, Fill, Update, AllGather, ReduceScatter, AllReduce, Slice>;

}  // namespace tpusim::ir
