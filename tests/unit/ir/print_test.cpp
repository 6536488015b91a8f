#include <doctest/doctest.h>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim::ir;

TEST_CASE("a program prints one op a line with its types, phases and ports") {
  constexpr DimName kEmbed{Axis::embed, 0};
  Program p;
  p.name = "scale";
  Builder b(p);
  p.x_in = b.input({DType::bf16, {{kBatch, 4, 4}, {kEmbed, 8, 6}}, Place::residual}, "x_in");
  Parameter q;
  q.name = "w";
  q.tie = "shared";
  q.value = b.input({DType::f32, {{kEmbed, 8, 6}}, Place::none}, "w", Table::parameters);
  p.parameters.push_back(q);
  const ValueId w = b.cast(q.value, DType::bf16, {"w", Place::none, Table::parameters});
  p.x_out = b.map(Elementwise::mul, p.x_in, w, {"x_out", Place::residual});
  differentiate(p, {});
  CHECK(print(p) ==
        "program scale\n"
        "  x_in %0 x_in: bf16[batch 4, embed 8 of valid 6]@residual\n"
        "  parameter %1 w: f32[embed 8 of valid 6]\n"
        "    tied to shared\n"
        "forward\n"
        "  %2 w: bf16[embed 8 of valid 6] = map.cast %1\n"
        "  %3 x_out: bf16[batch 4, embed 8 of valid 6]@residual = map.mul %0, %2\n"
        "recompute\n"
        "  %5 w: bf16[embed 8 of valid 6] = map.cast %1\n"
        "backward\n"
        "  %6 x_in: bf16[batch 4, embed 8 of valid 6]@residual = map.mul %4, %5\n"
        "  %7 gradient: bf16[batch 4, embed 8 of valid 6]@residual = map.mul %4, %0\n"
        "  %8 gradient: f32[embed 8 of valid 6] = reduce.sum batch %7\n"
        "  x_out %3 x_out: bf16[batch 4, embed 8 of valid 6]@residual\n"
        "  dx_in %6 x_in: bf16[batch 4, embed 8 of valid 6]@residual\n"
        "  gradient of w %8\n");
}

TEST_CASE("names and types print as people read them") {
  CHECK(to_string(kKeySeq) == "key_seq");
  CHECK(to_string(DimName{Axis::batch, 2}) == "alt_batch");
  CHECK(to_string(TensorType{DType::i32, {}, Place::none}) == "i32[]");
  CHECK(to_string(TensorType{DType::f64, {{kSeq, 3, 3}}, Place::logits}) == "f64[seq 3]@logits");
  CHECK(op_name(Rope{kSeq, kHeadDim, 1e4, true, {}}) == "rope.inverse");
  CHECK(op_name(AllReduce{Reduction::max, {}}) == "all_reduce.max");
  CHECK(op_name(Update{Optimizer::adamw}) == "update.adamw");
}
