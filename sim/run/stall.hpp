// A stall is computed, never timed out: nobody can go on, and this is who waits for whom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tpusim::run {

struct Wait {
  std::int32_t device_class = 0;
  std::int64_t device = 0;
  std::int32_t stage = 0;
  std::string what;                   // the instruction that is awaited, as "receive of x, microbatch 3"
  std::vector<std::int32_t> missing;  // classes that have not arrived there
  bool operator==(const Wait&) const = default;
};

struct StallReport {
  std::vector<Wait> waits;
  std::vector<std::int32_t>
      cycle;  // shortest cycle of classes, each waiting for the next; empty when somebody simply ended early
  bool operator==(const StallReport&) const = default;
};

// The shortest cycle in "waits for", lowest classes first among equals.
std::vector<std::int32_t> shortest_cycle(const std::vector<Wait>& waits);
std::string to_string(const StallReport& report);

}  // namespace tpusim::run
