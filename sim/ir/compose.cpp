#include "sim/ir/compose.hpp"

#include <cmath>

namespace tpusim::ir {
namespace {

// Stands for -infinity: exp(kMasked - max) is 0 in every dtype, and kMasked - kMasked is not NaN.
constexpr double kMasked = -1e30;

const Dim& dim_of(const Builder& builder, ValueId x, DimName name) {
  const Shape& shape = builder.type(x).shape;
  const int i = find_dim(shape, name);
  TPUSIM_CHECK(i >= 0, "a composition over the dim " + to_string(name) + " that its operand lacks");
  return shape[static_cast<std::size_t>(i)];
}

bool is_padded(const Dim& d) {
  return d.size != d.valid;
}

ValueId mean(Builder& b, ValueId x, const Dim& over, Builder::As as) {
  return b.map(Elementwise::scale, b.reduce(Reduction::sum, x, {over.name}, as), as,
               1.0 / static_cast<double>(over.valid));
}

// 1 / sqrt(mean square + eps), one value per row.
ValueId inverse_root_mean_square(Builder& b, ValueId x, const Dim& over, double eps, Place place) {
  const ValueId square = b.map(Elementwise::square, x, {"norm.square", place});
  const ValueId variance = mean(b, square, over, {"norm.variance", place});
  return b.map(Elementwise::rsqrt, b.map(Elementwise::add_scalar, variance, {"norm.variance", place}, eps),
               {"norm.rsqrt", place});
}

}  // namespace

ValueId to_dtype(Builder& b, ValueId x, DType dtype, Builder::As as) {
  return b.type(x).dtype == dtype ? x : b.cast(x, dtype, as);
}

DType statistics_of(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

ValueId rms_norm(Builder& b, ValueId x, ValueId scale, DimName dim, double eps, Place place) {
  const DType dtype = b.type(x).dtype;
  const Dim over = dim_of(b, x, dim);
  const ValueId wide = to_dtype(b, x, statistics_of(dtype), {"norm.x", place});
  const ValueId inverse = inverse_root_mean_square(b, wide, over, eps, place);
  const ValueId unit = b.map(Elementwise::mul, wide, inverse, {"norm.unit", place});
  return b.map(Elementwise::mul, to_dtype(b, unit, dtype, {"norm.unit", place}), scale, {"norm", place});
}

ValueId layer_norm(Builder& b, ValueId x, ValueId scale, ValueId bias, DimName dim, double eps, Place place) {
  const DType dtype = b.type(x).dtype;
  const Dim over = dim_of(b, x, dim);
  const ValueId wide = to_dtype(b, x, statistics_of(dtype), {"norm.x", place});
  const ValueId center = mean(b, wide, over, {"norm.mean", place});
  ValueId centered = b.map(Elementwise::sub, wide, center, {"norm.centered", place});
  if (is_padded(over))
    centered = b.add(MaskPadding{dim, 0, {}}, {centered}, b.type(centered).dtype, {"norm.centered", place})[0];
  const ValueId inverse = inverse_root_mean_square(b, centered, over, eps, place);
  const ValueId unit = b.map(Elementwise::mul, centered, inverse, {"norm.unit", place});
  const ValueId scaled =
      b.map(Elementwise::mul, to_dtype(b, unit, dtype, {"norm.unit", place}), scale, {"norm.scaled", place});
  return b.map(Elementwise::add, scaled, bias, {"norm", place});
}

ValueId softmax(Builder& b, ValueId x, DimName dim, Place place) {
  const ValueId largest = b.reduce(Reduction::max, x, {dim}, {"softmax.max", place});
  const ValueId shifted = b.map(Elementwise::sub, x, largest, {"softmax.shifted", place});
  const ValueId powers = b.map(Elementwise::exp, shifted, {"softmax.exp", place});
  const ValueId sum = b.reduce(Reduction::sum, powers, {dim}, {"softmax.sum", place});
  return b.map(Elementwise::div, powers, sum, {"probabilities", place});
}

ValueId cross_entropy_from_logits(Builder& b, ValueId logits, ValueId targets, DimName classes, double global_count) {
  const Place place = b.type(logits).place;
  const DType inside = statistics_of(b.type(logits).dtype);
  ValueId z = to_dtype(b, logits, inside, {"logits", place});
  if (is_padded(dim_of(b, logits, classes)))
    z = b.add(MaskPadding{classes, kMasked, {}}, {z}, inside, {"logits.masked", place})[0];
  const ValueId largest = b.reduce(Reduction::max, z, {classes}, {"logits.max", place});
  const ValueId shifted = b.map(Elementwise::sub, z, largest, {"logits.shifted", place});
  const ValueId powers = b.map(Elementwise::exp, shifted, {"logits.exp", place});
  const ValueId sum = b.reduce(Reduction::sum, powers, {classes}, {"logits.sum", place});
  const ValueId log_sum = b.map(Elementwise::log, sum, {"logits.log_sum", place});
  // The maximum is in both terms and cancels, so it need not be differentiated.
  const ValueId picked = b.add(Pick{classes, {}}, {shifted, targets}, inside, {"logits.target", place})[0];
  ValueId losses = b.map(Elementwise::sub, log_sum, picked, {"token_losses", place});
  DimNames tokens;
  const Shape shape = b.type(losses).shape;
  for (const Dim& d : shape) {
    tokens.push_back(d.name);
    if (is_padded(d)) losses = b.add(MaskPadding{d.name, 0, {}}, {losses}, inside, {"token_losses", place})[0];
  }
  const ValueId total = b.reduce(Reduction::sum, losses, tokens, {"loss.sum"});
  return b.map(Elementwise::scale, total, {"loss"}, 1 / global_count);
}

ValueId squared_error(Builder& b, ValueId prediction, ValueId target, double global_count) {
  const Place place = b.type(prediction).place;
  const DType inside = statistics_of(b.type(prediction).dtype);
  const ValueId p = to_dtype(b, prediction, inside, {"prediction", place});
  const ValueId t = to_dtype(b, target, inside, {"target", place});
  const ValueId error = b.map(Elementwise::sub, p, t, {"error", place});
  const ValueId square = b.map(Elementwise::square, error, {"error^2", place});
  DimNames all;
  const Shape shape = b.type(square).shape;
  for (const Dim& d : shape) all.push_back(d.name);
  const ValueId total = b.reduce(Reduction::sum, square, all, {"loss.sum"});
  return b.map(Elementwise::scale, total, {"loss"}, 1 / global_count);
}

ValueId attention(Builder& b, ValueId q, ValueId k, ValueId v, const AttentionSettings& settings) {
  const DType dtype = b.type(q).dtype;
  const Place place = Place::attention;
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim_of(b, q, kHeadDim).valid));
  if (settings.kind == AttentionKind::flash) {
    const auto results =
        b.add(Flash{scale, settings.causal, settings.block, {}}, {q, k, v}, dtype, {"attention_out", place});
    b.relabel(results[1], "attention_lse");
    return results[0];
  }
  const DType inside = statistics_of(dtype);
  ValueId scores = b.dot(q, k, {kBatch, kKvHeads, kQGroup, kSeq, kKeySeq}, dtype, {"scores", place});
  scores = to_dtype(b, scores, inside, {"scores", place});
  scores = b.map(Elementwise::scale, scores, {"scores.scaled", place}, scale);
  if (settings.causal)
    scores = b.add(MaskCausal{kSeq, kKeySeq, kMasked, {}, {}}, {scores}, inside, {"scores.masked", place})[0];
  const Dim keys = dim_of(b, k, kKeySeq);
  if (!settings.causal && is_padded(keys))
    scores = b.add(MaskPadding{kKeySeq, kMasked, {}}, {scores}, inside, {"scores.masked", place})[0];
  const ValueId probabilities = to_dtype(b, softmax(b, scores, kKeySeq, place), dtype, {"probabilities", place});
  return b.dot(probabilities, v, {kBatch, kSeq, kKvHeads, kQGroup, kHeadDim}, dtype, {"attention_out", place});
}

ValueId activate(Builder& b, Activation activation, ValueId gate, ValueId up, Place place) {
  Elementwise kind = Elementwise::silu;
  if (activation == Activation::gelu) kind = Elementwise::gelu;
  if (activation == Activation::relu) kind = Elementwise::relu;
  const ValueId active = b.map(kind, gate, {"activated", place});
  return up.valid() ? b.map(Elementwise::mul, active, up, {"hidden", place}) : active;
}

}  // namespace tpusim::ir
