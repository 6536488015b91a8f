// Norms, softmax, cross-entropy and attention as compositions of reductions and elementwise ops, so that a split dim
// costs small all-reduces and its tensor is never gathered.
//
// `statistics`: the dtype inside, f32 (f64 in f64 runs): inputs are cast to it and results back to their own dtype.
// Padded entries of dims are 0 before and after (types.hpp); means divide by the valid size.
#pragma once

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

namespace tpusim::ir {

// x itself where it has that dtype.
ValueId to_dtype(Builder& builder, ValueId x, DType dtype, Builder::As as);
// f64 for f64, else f32.
DType statistics_of(DType dtype);

// x / sqrt(mean over dim of x^2 + eps) * scale. Source: Zhang and Sennrich 2019. x [.., dim], scale [dim] of x's dtype.
ValueId rms_norm(Builder& builder, ValueId x, ValueId scale, DimName dim, double eps, Place place);
// (x - mean) / sqrt(variance + eps) * scale + bias over dim, biased variance. Source: Ba, Kiros, Hinton 2016.
ValueId layer_norm(Builder& builder, ValueId x, ValueId scale, ValueId bias, DimName dim, double eps, Place place);

// exp(x - max) / sum over dim; x masked already. The maximum counts as a constant.
ValueId softmax(Builder& builder, ValueId x, DimName dim, Place place);

// (sum over tokens of log(sum exp logits) - logits[target]) / global_count, a scalar of the statistics' dtype: this
// program's share of the mean loss. logits [.., classes], targets i32 [..]. Padded classes count as -infinity (a large
// negative number, so that no NaN arises), padded tokens count nothing.
ValueId cross_entropy_from_logits(Builder& builder, ValueId logits, ValueId targets, DimName classes,
                                  double global_count);

// sum of (prediction - target)^2 over all entries / global_count; shapes equal.
ValueId squared_error(Builder& builder, ValueId prediction, ValueId target, double global_count);

enum class AttentionKind : std::uint8_t { flash, unfused };
struct AttentionSettings {
  AttentionKind kind = AttentionKind::flash;
  bool causal = true;
  std::int32_t block = 128;  // of flash
};
// softmax(q k^T / sqrt(valid head_dim)) v. q [batch, seq, kv_heads, q_group, head_dim], k and v [batch, key_seq,
// kv_heads, head_dim] -> like q. Unfused: scores and probabilities [batch, kv_heads, q_group, seq, key_seq] in q's
// dtype, softmax in the statistics' dtype.
ValueId attention(Builder& builder, ValueId q, ValueId k, ValueId v, const AttentionSettings& settings);

enum class Activation : std::uint8_t { silu, gelu, relu };
// act(gate) * up, or act(gate) where `up` is invalid.
ValueId activate(Builder& builder, Activation activation, ValueId gate, ValueId up, Place place);

}  // namespace tpusim::ir
