#include "sim/numeric/tensor.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace tpusim;
using numeric::round_to_bf16;
using numeric::Tensor;

namespace {
const ir::DimName kEmbed{ir::Axis::embed, 0}, kSeq{ir::Axis::seq, 0};
ir::TensorType type(ir::DType dtype, std::int64_t rows, std::int64_t columns) {
  return {dtype, {{kSeq, rows, rows}, {kEmbed, columns, columns}}, ir::Place::none};
}
}  // namespace

TEST_CASE("bf16 rounds to nearest and ties go to the even mantissa") {
  // bf16 keeps 8 bits of significand: near 1 its spacing is 2^-7 = 0.0078125.
  CHECK(round_to_bf16(1.0f) == 1.0f);
  CHECK(round_to_bf16(1.0f + 0.001f) == 1.0f);                  // below half a spacing
  CHECK(round_to_bf16(1.0f + 0.0078125f) == 1.0078125f);        // representable
  CHECK(round_to_bf16(1.0f + 0.00390625f) == 1.0f);             // a tie: mantissa 0 is even
  CHECK(round_to_bf16(1.0078125f + 0.00390625f) == 1.015625f);  // a tie: mantissa 1 is odd, up to 2
  CHECK(round_to_bf16(-1.0f - 0.0059f) == -1.0078125f);
  CHECK(round_to_bf16(0.1f) == 0.10009765625f);    // 0x3dcccccd -> 0x3dcd0000
  CHECK(round_to_bf16(3.14159265f) == 3.140625f);  // 0x40490fdb -> 0x40490000
  CHECK(round_to_bf16(256.0f + 1.0f) == 256.0f);   // spacing is 2 there; a tie to even
  CHECK(round_to_bf16(256.0f + 3.0f) == 260.0f);
}

TEST_CASE("bf16 rounding keeps zeros, infinities and NaN and overflows to infinity") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(round_to_bf16(infinity) == infinity);
  CHECK(round_to_bf16(-infinity) == -infinity);
  CHECK(std::isnan(round_to_bf16(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::signbit(round_to_bf16(-0.0f)));
  // The largest float lies more than half a spacing above the largest bf16.
  CHECK(round_to_bf16(std::numeric_limits<float>::max()) == infinity);
}

TEST_CASE("a tensor counts the bytes of its dtype, two for bf16") {
  CHECK(Tensor(type(ir::DType::f64, 3, 5)).bytes() == 120);
  CHECK(Tensor(type(ir::DType::f32, 3, 5)).bytes() == 60);
  CHECK(Tensor(type(ir::DType::bf16, 3, 5)).bytes() == 30);
  CHECK(Tensor(type(ir::DType::i32, 3, 5)).bytes() == 60);
}

TEST_CASE("a tensor rounds what is set to its dtype and reads it back") {
  Tensor b(type(ir::DType::bf16, 1, 2), {0.1, 3.14159265});
  CHECK(b.to_doubles() == std::vector<double>{0.10009765625, 3.140625});
  Tensor f(type(ir::DType::f32, 1, 2), {0.1, 1});
  CHECK(f.at(0) == static_cast<double>(0.1f));
  Tensor i(type(ir::DType::i32, 1, 2), {-7, 3});
  CHECK(i.to_doubles() == std::vector<double>{-7, 3});
}

TEST_CASE("a scalar has one entry and an empty shape") {
  const Tensor s({ir::DType::f64, {}, ir::Place::none}, {2.5});
  CHECK(s.size() == 1);
  CHECK(s.at(0) == 2.5);
}

TEST_CASE("a tensor is not read as another type than it is held in") {
  const Tensor b(type(ir::DType::bf16, 1, 2));
  CHECK_THROWS_AS(b.data<double>(), InternalError);
}

TEST_CASE("a relabelled tensor keeps its entries and must keep dtype and size") {
  const Tensor t(type(ir::DType::f64, 2, 2), {1, 2, 3, 4});
  ir::TensorType other = type(ir::DType::f64, 2, 2);
  other.shape[0].name = {ir::Axis::seq, 1};
  CHECK(t.relabelled(other).to_doubles() == std::vector<double>{1, 2, 3, 4});
  CHECK_THROWS_AS(t.relabelled(type(ir::DType::f32, 2, 2)), InternalError);
  CHECK_THROWS_AS(t.relabelled(type(ir::DType::f64, 2, 3)), InternalError);
}

TEST_CASE("the largest difference is infinite where one entry is not a number") {
  const Tensor a(type(ir::DType::f64, 1, 3), {1, 2, 3}), b(type(ir::DType::f64, 1, 3), {1, 2.5, 2});
  CHECK(numeric::max_difference(a, b) == 1);
  CHECK(numeric::max_magnitude(b) == 2.5);
  const Tensor c(type(ir::DType::f64, 1, 3), {1, 2, std::nan("")});
  CHECK(std::isinf(numeric::max_difference(a, c)));
  CHECK(numeric::max_difference(c, c) == 0);
}

TEST_CASE("a tensor beyond all memory is refused by name before anything is allocated") {
  CHECK_THROWS_AS(Tensor(type(ir::DType::f64, std::int64_t{1} << 30, 16)), CapacityError);
}
