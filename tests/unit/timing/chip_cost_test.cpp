#include "sim/timing/chip_cost.hpp"

#include <doctest/doctest.h>

using namespace tpusim;
using namespace tpusim::timing;

namespace {

// Round numbers: 100 GFLOP/s of matrix unit, half of it reached; tiles 8 x 128 x 128; 10 GFLOP/s of vector unit; 1 GB/s
// of HBM, 80 % of it reached; 2 us for each kernel.
topologies::Chip chip() {
  topologies::Chip c;
  c.peak_bf16 = topologies::Fact<FlopsPerSecond>{FlopsPerSecond(1e11), "", "", {}};
  c.matrix_efficiency.value = 0.5;
  c.matrix_tile_m.value = 8;
  c.matrix_tile_n.value = c.matrix_tile_k.value = 128;
  c.vector_flops.value = FlopsPerSecond(1e10);
  c.hbm_bandwidth.value = BytesPerSecond(1e9);
  c.hbm_efficiency.value = 0.8;
  c.kernel_floor.value = Seconds(2e-6);
  return c;
}

plan::Kernel kernel(std::int64_t m, std::int64_t n, std::int64_t k, double vector, std::int64_t read,
                    std::int64_t written) {
  plan::Kernel out;
  out.ops.push_back(ir::OpId(0));
  if (m > 0) out.cost.products.push_back({1, m, n, k, 1});
  out.cost.vector_flops = vector;
  out.bytes_read = read;
  out.bytes_written = written;
  return out;
}

}  // namespace

TEST_CASE("a product costs its size rounded up to tiles, over the peak that is reached") {
  // 10 x 130 x 100 -> 16 x 256 x 128: 2 * 16 * 256 * 128 = 1,048,576 FLOP over 5e10 FLOP/s.
  const KernelTime t = kernel_time(kernel(10, 130, 100, 0, 0, 0), chip());
  CHECK(t.matrix.value() == doctest::Approx(1048576 / 5e10).epsilon(1e-12));
  CHECK(t.total().value() == doctest::Approx(2e-6 + 1048576 / 5e10).epsilon(1e-12));
}

TEST_CASE("a product that fits the tiles is not padded; batches and repeats multiply") {
  plan::Kernel k = kernel(8, 128, 128, 0, 0, 0);
  k.cost.products[0].batch = 3;
  k.cost.products[0].count = 5;
  CHECK(kernel_time(k, chip()).matrix.value() == doctest::Approx(15.0 * 2 * 8 * 128 * 128 / 5e10).epsilon(1e-12));
}

TEST_CASE("the slowest of matrix unit, vector unit and memory decides, and the floor comes on top") {
  // Matrix 2 * 8 * 128 * 128 / 5e10 = 5.24 us. Vector 1e5 / 1e10 = 10 us. Memory (10,000 + 6,000) / 0.8e9 = 20 us.
  const KernelTime t = kernel_time(kernel(8, 128, 128, 1e5, 10000, 6000), chip());
  CHECK(t.matrix.value() == doctest::Approx(262144 / 5e10).epsilon(1e-12));
  CHECK(t.vector.value() == doctest::Approx(1e-5).epsilon(1e-12));
  CHECK(t.hbm.value() == doctest::Approx(2e-5).epsilon(1e-12));
  CHECK(t.total().value() == doctest::Approx(2.2e-5).epsilon(1e-12));
  CHECK(kernel_time(kernel(8, 128, 128, 1e6, 10000, 6000), chip()).total().value() ==
        doctest::Approx(1.02e-4).epsilon(1e-12));
}

TEST_CASE("a unit made twice as fast halves its own term and no other") {
  const plan::Kernel k = kernel(8, 128, 128, 1e5, 10000, 6000);
  const KernelTime plain = kernel_time(k, chip());
  SpeedUp s;
  s.peak = 2;
  CHECK(kernel_time(k, chip(), s).matrix.value() == doctest::Approx(plain.matrix.value() / 2));
  CHECK(kernel_time(k, chip(), s).hbm == plain.hbm);
  s = {};
  s.vector = 2;
  CHECK(kernel_time(k, chip(), s).vector.value() == doctest::Approx(plain.vector.value() / 2));
  s = {};
  s.hbm = 2;
  CHECK(kernel_time(k, chip(), s).hbm.value() == doctest::Approx(plain.hbm.value() / 2));
  CHECK(kernel_time(k, chip(), s).matrix == plain.matrix);
}

TEST_CASE("a known length is taken as it is, without a floor where nothing is computed") {
  plan::Kernel k;
  k.fixed = Seconds(0.323);
  CHECK(kernel_time(k, chip()).total() == Seconds(0.323));
  k.ops.push_back(ir::OpId(0));
  CHECK(kernel_time(k, chip()).total().value() == doctest::Approx(0.323 + 2e-6).epsilon(1e-12));
}

TEST_CASE("a type that the chip cannot multiply runs at the peak of the next wider one it has") {
  topologies::Chip c = chip();
  CHECK(peak_of(c, ir::DType::bf16) == FlopsPerSecond(1e11));
  CHECK(peak_of(c, ir::DType::f64) == FlopsPerSecond(1e11));  // bf16 is all there is
  c.peak_f32 = topologies::Fact<FlopsPerSecond>{FlopsPerSecond(2e10), "", "", {}};
  CHECK(peak_of(c, ir::DType::f32) == FlopsPerSecond(2e10));
  CHECK(peak_of(c, ir::DType::f64) == FlopsPerSecond(2e10));
  c.peak_bf16.reset();
  CHECK(peak_of(c, ir::DType::bf16) == FlopsPerSecond(2e10));
  CHECK_THROWS_AS(peak_of(topologies::Chip{}, ir::DType::f32), InternalError);
}
