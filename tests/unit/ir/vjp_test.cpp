// Each op's derivative against central differences, in double, by loops that share no code with sim/numeric.
#include <doctest/doctest.h>

#include "sim/ir/compose.hpp"
#include "sim/ir/flash_dims.hpp"
#include "tests/unit/ir/gradient_check.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0}, kVocab{Axis::vocab, 0};
constexpr double kTolerance = 1e-7;  // two decades above the error of the differences (gradient_check.hpp)

Dim dim(DimName name, std::int64_t size, std::int64_t valid = 0) {
  return {name, size, valid == 0 ? size : valid};
}

// x_in [batch 2, seq 3, embed 4] through what `body` makes of it.
template <class Body>
Program block(Body body, Shape shape = {dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, 4)}) {
  Program p;
  p.name = "block";
  Builder b(p);
  p.x_in = b.input({DType::f64, shape, Place::residual}, "x_in");
  p.x_out = body(p, b, p.x_in);
  differentiate(p, {Remat::none, DType::f64});
  CHECK(verify(p) == std::vector<std::string>{});
  return p;
}

ValueId add_parameter(Program& p, Builder& b, const char* name, Shape shape) {
  Parameter parameter;
  parameter.name = name;
  parameter.value = b.input({DType::f64, shape, Place::none}, "parameter", Table::parameters);
  p.parameters.push_back(parameter);
  return parameter.value;
}

double error_of(const Program& p, double size = 1) {
  return naive::slope_error(p, naive::random_inputs(p, 7, 5, size), 11);
}

}  // namespace

TEST_CASE("every elementwise function of one operand has the derivative that differences show") {
  for (int k = 0; k < static_cast<int>(Elementwise::add); ++k) {
    const auto kind = static_cast<Elementwise>(k);
    CAPTURE(op_name(Map{kind, 0}));
    const Program p = block([&](Program&, Builder& b, ValueId x) {
      // log, roots and reciprocals need positive arguments: x^2 + 0.5.
      const ValueId positive =
          b.map(Elementwise::add_scalar, b.map(Elementwise::square, x, {"square"}), {"positive"}, 0.5);
      const bool needs_positive = kind == Elementwise::log || kind == Elementwise::sqrt || kind == Elementwise::rsqrt ||
                                  kind == Elementwise::reciprocal;
      return b.map(kind, needs_positive ? positive : x, {"y", Place::residual}, 0.7);
    });
    CHECK(error_of(p) < kTolerance);
  }
}

TEST_CASE("every elementwise function of two operands has the derivatives that differences show, broadcast or not") {
  for (const auto kind : {Elementwise::add, Elementwise::sub, Elementwise::mul, Elementwise::div, Elementwise::maximum})
    for (int broadcast = 0; broadcast < 3; ++broadcast) {
      CAPTURE(op_name(Map{kind, 0}));
      CAPTURE(broadcast);
      const Program p = block([&](Program& q, Builder& b, ValueId x) {
        const Shape wide = b.type(x).shape;
        Shape narrow = wide;
        if (broadcast > 0) narrow = {dim(kEmbed, 4)};
        ValueId y = add_parameter(q, b, "w", narrow);
        if (kind == Elementwise::div)
          y = b.map(Elementwise::add_scalar, b.map(Elementwise::square, y, {"square"}), {"positive"}, 0.5);
        // The third form broadcasts the first operand.
        if (broadcast < 2) return b.map(kind, x, y, {"y", Place::residual});
        if (kind != Elementwise::div) return b.map(kind, y, x, {"y", Place::residual});
        const ValueId positive =
            b.map(Elementwise::add_scalar, b.map(Elementwise::square, x, {"square"}), {"positive"}, 0.5);
        return b.map(kind, y, positive, {"y", Place::residual});
      });
      CHECK(error_of(p) < kTolerance);
    }
}

TEST_CASE("a product by named dims has the derivatives that differences show, with batched and contracted dims") {
  const Program p = block([](Program& q, Builder& b, ValueId x) {
    // seq is batched, embed contracted, mlp new.
    const ValueId w = add_parameter(q, b, "w", {dim(kSeq, 3), dim(kEmbed, 4), dim(kMlp, 5)});
    return b.dot(x, w, {kMlp, kSeq, kBatch}, DType::f64, {"y", Place::mlp});
  });
  CHECK(error_of(p) < kTolerance);
}

TEST_CASE("a value that is used twice, by both sides of a product too, gets the sum of its gradients") {
  const Program p = block([](Program&, Builder& b, ValueId x) {
    const ValueId y = b.map(Elementwise::mul, x, x, {"x^2"});
    return b.map(Elementwise::add, y, b.map(Elementwise::mul, y, x, {"x^3"}), {"y", Place::residual});
  });
  CHECK(error_of(p) < kTolerance);
}

TEST_CASE("sums, masks, renames and rotations have the derivatives that differences show") {
  const Program sums = block([](Program&, Builder& b, ValueId x) {
    const ValueId square = b.map(Elementwise::square, x, {"square"});
    const ValueId total = b.reduce(Reduction::sum, square, {kEmbed, kBatch}, {"total"});
    return b.map(Elementwise::mul, x, total, {"y", Place::residual});
  });
  CHECK(error_of(sums) < kTolerance);
  const Program rotated = block([](Program&, Builder& b, ValueId x) {
    return b.add(Rope{kSeq, kEmbed, 100, false, {}}, {x}, DType::f64, {"y", Place::residual})[0];
  });
  CHECK(error_of(rotated) < kTolerance);
  const Program renamed = block([](Program&, Builder& b, ValueId x) {
    const ValueId keys = b.add(Rename{kSeq, kKeySeq}, {x}, DType::f64, {"keys"})[0];
    const ValueId scores = b.dot(x, keys, {kBatch, kSeq, kKeySeq}, DType::f64, {"scores"});
    return b.add(MaskCausal{kSeq, kKeySeq, -3, {}, {}}, {scores}, DType::f64, {"y"})[0];
  });
  CHECK(error_of(renamed) < kTolerance);
  const Program masked = block(
      [](Program&, Builder& b, ValueId x) {
        const ValueId y = b.add(MaskPadding{kEmbed, 2, {}}, {x}, DType::f64, {"masked"})[0];
        return b.map(Elementwise::square, y, {"y"});
      },
      {dim(kBatch, 2), dim(kEmbed, 6, 4)});
  CHECK(error_of(masked) < kTolerance);
}

TEST_CASE("a gradient that is the same along a dim counts as often as the dim is long where it is summed") {
  // y = x + w, summed over seq: the gradient of y has no seq, that of w [embed] sums it over batch and 3 times.
  const Program p = block([](Program& q, Builder& b, ValueId x) {
    const ValueId w = add_parameter(q, b, "w", {dim(kEmbed, 4)});
    const ValueId total = b.reduce(Reduction::sum, b.map(Elementwise::add, x, w, {"y"}), {kSeq}, {"total"});
    return b.map(Elementwise::square, total, {"square"});
  });
  CHECK(error_of(p) < kTolerance);
}

TEST_CASE("lookup and pick have the derivatives that differences show, with repeated ids") {
  Program p;
  Builder b(p);
  const ValueId table = add_parameter(p, b, "table", {dim(kVocab, 5), dim(kEmbed, 4)});
  const ValueId ids = b.input({DType::i32, {dim(kBatch, 4), dim(kSeq, 3)}, Place::none}, "ids");  // 12 ids of 5 repeat
  p.data.push_back({ids, DataKind::tokens});
  const ValueId rows = b.add(Lookup{kVocab, {}}, {table, ids}, DType::f64, {"rows"})[0];
  const ValueId square = b.map(Elementwise::square, rows, {"square"});
  const ValueId scores = b.dot(square, table, {kBatch, kSeq, kVocab}, DType::f64, {"scores"});
  p.x_out = b.add(Pick{kVocab, {}}, {scores, ids}, DType::f64, {"picked"})[0];
  differentiate(p, {Remat::none, DType::f64});
  CHECK(verify(p) == std::vector<std::string>{});
  CHECK(error_of(p) < kTolerance);
}

TEST_CASE(
    "attention has the derivatives that differences show, as flash and unfused, in grouped and multi-query form") {
  // 5 queries in blocks of 2: the last block is partial, and blocks above the diagonal are skipped.
  for (const bool causal : {true, false})
    for (const auto kind : {AttentionKind::flash, AttentionKind::unfused})
      for (const std::int64_t kv_heads : {1, 2}) {
        CAPTURE(causal);
        CAPTURE(kv_heads);
        const Program p = block(
            [&](Program& q, Builder& b, ValueId x) {
              const Shape keys = {dim(kBatch, 2), dim(kKeySeq, 5), dim(kKvHeads, kv_heads), dim(kHeadDim, 2)};
              const ValueId k = add_parameter(q, b, "k", keys), v = add_parameter(q, b, "v", keys);
              return attention(b, x, k, v, {kind, causal, 2});
            },
            {dim(kBatch, 2), dim(kSeq, 5), dim(kKvHeads, kv_heads), dim(kQGroup, 3), dim(kHeadDim, 2)});
        CHECK(error_of(p) < kTolerance);
      }
}

TEST_CASE("norms and losses have the derivatives that differences show, padded or not, and leave padding alone") {
  for (const std::int64_t padded : {4, 6}) {
    CAPTURE(padded);
    const Shape shape = {dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, padded, 4)};
    for (int form = 0; form < 3; ++form) {
      CAPTURE(form);
      Program p;
      Builder b(p);
      p.x_in = b.input({DType::f64, shape, Place::residual}, "x_in");
      const ValueId scale = add_parameter(p, b, "scale", {dim(kEmbed, padded, 4)});
      if (form == 0) p.x_out = rms_norm(b, p.x_in, scale, kEmbed, 1e-3, Place::residual);
      if (form == 1) {
        const ValueId bias = add_parameter(p, b, "bias", {dim(kEmbed, padded, 4)});
        p.x_out = layer_norm(b, p.x_in, scale, bias, kEmbed, 1e-3, Place::residual);
      }
      if (form == 2) {  // the entries of embed serve as classes
        const ValueId ids = b.input({DType::i32, {dim(kBatch, 2), dim(kSeq, 3)}, Place::none}, "ids");
        p.data.push_back({ids, DataKind::targets});
        const ValueId logits = b.map(Elementwise::mul, p.x_in, scale, {"logits"});
        p.loss = cross_entropy_from_logits(b, logits, ids, kEmbed, 6);
      }
      differentiate(p, {Remat::none, DType::f64});
      CHECK(verify(p) == std::vector<std::string>{});
      const auto inputs = naive::random_inputs(p, 3, 4, 1);
      CHECK(naive::slope_error(p, inputs, 5) < kTolerance);
      const auto values = naive::run(p, inputs).values;
      for (const ValueId id : {p.dx_in, p.parameters[0].gradient}) {
        const auto& t = values.at(id.index);
        for (std::size_t i = 0; i < t.data.size(); ++i)
          if (static_cast<std::int64_t>(i) % padded >= 4) CHECK(t.data[i] == 0);
      }
    }
  }
}

TEST_CASE("a gradient that nothing asks for is not computed") {
  // The features are data: only d w is made, one product beside the forward one.
  Program p;
  Builder b(p);
  const ValueId x = b.input({DType::f64, {dim(kBatch, 2), dim(kEmbed, 4)}, Place::none}, "features");
  p.data.push_back({x, DataKind::features});
  const ValueId w = add_parameter(p, b, "w", {dim(kEmbed, 4), dim(kMlp, 3)});
  p.x_out = b.dot(x, w, {kBatch, kMlp}, DType::f64, {"y"});
  differentiate(p, {Remat::none, DType::f64});
  int backward_dots = 0;
  for (const Op& op : p.ops) backward_dots += op.phase == Phase::backward && std::holds_alternative<Dot>(op.kind);
  CHECK(backward_dots == 1);
  CHECK(error_of(p) < kTolerance);
}

TEST_CASE("a parameter that nothing uses has a gradient of zeros") {
  Program p;
  Builder b(p);
  p.x_in = b.input({DType::f64, {dim(kEmbed, 4)}, Place::residual}, "x_in");
  add_parameter(p, b, "unused", {dim(kEmbed, 4)});
  p.x_out = b.map(Elementwise::scale, p.x_in, {"y", Place::residual}, 2);
  differentiate(p, {Remat::none, DType::f64});
  CHECK(verify(p) == std::vector<std::string>{});
  CHECK(naive::run(p, naive::random_inputs(p, 1, 1)).values.at(p.parameters[0].gradient.index).data ==
        std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("gradients of parameters come in the gradient dtype straight from the product, and in table gradients") {
  for (const DType wanted : {DType::f32, DType::bf16}) {
    Program p;
    Builder b(p);
    p.x_in = b.input({DType::bf16, {dim(kBatch, 2), dim(kEmbed, 4)}, Place::residual}, "x_in");
    Parameter parameter;
    parameter.name = "w";
    parameter.value = b.input({DType::f32, {dim(kEmbed, 4), dim(kMlp, 3)}, Place::none}, "w", Table::parameters);
    p.parameters.push_back(parameter);
    const ValueId w = b.cast(parameter.value, DType::bf16, {"w", Place::none, Table::parameters});
    p.x_out = b.dot(p.x_in, w, {kBatch, kMlp}, DType::bf16, {"y", Place::mlp});
    differentiate(p, {Remat::none, wanted});
    const Value& gradient = p.value(p.parameters[0].gradient);
    CHECK(gradient.type == TensorType{wanted, {dim(kEmbed, 4), dim(kMlp, 3)}, Place::none});
    CHECK(gradient.table == Table::gradients);
    CHECK(gradient.label == "gradient");
    CHECK(op_name(p.op(gradient.producer).kind) == "dot");
    // dx needs the weights again: their cast is done again, never kept.
    CHECK(saved_values(p) == std::vector<ValueId>{p.x_in});
    CHECK(p.value(p.dx_in).type == p.value(p.x_in).type);
  }
}
