// How long one kernel (fused instruction) takes on a chip.
//
//   t = floor + max( matrix, vector, HBM )
//   matrix = sum over its products of 2 b m' n' k' / (peak x efficiency), primes: rounded up to the matrix unit's tiles
//   vector = elementwise operations / vector rate
//   HBM    = bytes read and written from outside the kernel / (bandwidth x efficiency)
// The three units work at the same time, so the slowest decides (roofline: S. Williams, A. Waterman, D. Patterson, CACM
// 52(4), 2009). Ignored: what a kernel spills beyond on-chip memory, clock throttling, wave quantisation (the catalogue
// says per chip why). It holds for kernels long against the floor.
#pragma once

#include "sim/base/units.hpp"
#include "sim/plan/step_program.hpp"
#include "topologies/chip.hpp"

namespace tpusim::timing {

// A replay makes one resource twice as fast; 1 is the machine as it is.
struct SpeedUp {
  double peak = 1, vector = 1, hbm = 1, hosts = 1;
  double links[3] = {1, 1, 1};  // by fabric::Level
  bool operator==(const SpeedUp&) const = default;
};

struct KernelTime {
  Seconds floor, matrix, vector, hbm, fixed;
  Seconds total() const;
};

// Throws ScenarioError-free: a dtype that the chip cannot multiply is computed at the next wider peak it has (f64 as
// f32, bf16 as f32).
KernelTime kernel_time(const plan::Kernel& kernel, const topologies::Chip& chip, const SpeedUp& speed_up = {});
// The peak that a dtype multiplies at.
FlopsPerSecond peak_of(const topologies::Chip& chip, ir::DType dtype);

}  // namespace tpusim::timing
