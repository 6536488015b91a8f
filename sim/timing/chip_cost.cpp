#include "sim/timing/chip_cost.hpp"

#include <algorithm>
#include <cmath>

namespace tpusim::timing {

namespace {

double tiled(std::int64_t size, double tile) {
  return tile <= 1 ? static_cast<double>(size) : std::ceil(static_cast<double>(size) / tile) * tile;
}

}  // namespace

Seconds KernelTime::total() const {
  return fixed + floor + std::max({matrix, vector, hbm});
}

FlopsPerSecond peak_of(const topologies::Chip& chip, ir::DType dtype) {
  if (dtype == ir::DType::bf16)
    if (const auto peak = chip.peak(topologies::Precision::bf16)) return *peak;
  if (const auto peak = chip.peak(topologies::Precision::f32)) return *peak;
  const auto peak = chip.peak(topologies::Precision::bf16);
  TPUSIM_CHECK(peak.has_value(), "a chip without a peak");
  return *peak;
}

KernelTime kernel_time(const plan::Kernel& kernel, const topologies::Chip& chip, const SpeedUp& speed_up) {
  KernelTime time;
  time.fixed = kernel.fixed;
  if (kernel.ops.empty()) return time;  // nothing but a known length
  time.floor = chip.kernel_floor.value;
  double padded = 0;
  for (const ir::MatrixProduct& p : kernel.cost.products)
    padded += 2.0 * static_cast<double>(p.count) * static_cast<double>(p.batch) * tiled(p.m, chip.matrix_tile_m.value) *
              tiled(p.n, chip.matrix_tile_n.value) * tiled(p.k, chip.matrix_tile_k.value);
  if (padded > 0)
    time.matrix =
        Flops(padded) / (peak_of(chip, kernel.compute_dtype) * (chip.matrix_efficiency.value * speed_up.peak));
  time.vector = Flops(kernel.cost.vector_flops) / (chip.vector_flops.value * speed_up.vector);
  const Bytes moved(static_cast<double>(kernel.bytes_read) + static_cast<double>(kernel.bytes_written));
  time.hbm = moved / (chip.hbm_bandwidth.value * (chip.hbm_efficiency.value * speed_up.hbm));
  return time;
}

}  // namespace tpusim::timing
