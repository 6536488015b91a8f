// What one device really did or is charged for in one step: the numbers that both readers must agree on.
#pragma once

#include <array>
#include <cstdint>

namespace tpusim::run {

// Index of a kind of transfer in Tally::bytes_sent.
enum class Traffic : std::uint8_t { all_gather, reduce_scatter, all_reduce, permute, stage_reduce };
constexpr int kTrafficKinds = 5;

struct Tally {
  // Summed over the devices of the job (so that a line's ends, which send less, are counted as they are).
  std::array<std::int64_t, kTrafficKinds> bytes_sent{};
  std::int64_t executed_flops = 0;  // matrix products, multiply and add counted apart
  std::int64_t peak_bytes = 0;      // of the fullest device
  bool operator==(const Tally&) const = default;
};

}  // namespace tpusim::run
