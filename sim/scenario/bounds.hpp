// The largest values that a scenario may hold. Each is far beyond any machine or model, and keeps sizes inside 64 bits
// and the simulator's own time and memory small; a larger value is refused by name (code too_large).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tpusim::scenario {

inline constexpr std::size_t kMaxText = std::size_t{1} << 20;  // bytes of a scenario
inline constexpr int kMaxDepth = 100;                          // nested objects and arrays
inline constexpr std::size_t kMaxValues = 10'000;              // values and keys of a scenario
inline constexpr std::size_t kMaxMembers = 1'000;              // of one object or array
inline constexpr std::size_t kMaxString = 4'096;               // bytes of one name, path or text
inline constexpr std::size_t kMaxSets = 1'000;                 // --set options

inline constexpr std::int64_t kMaxChips = std::int64_t{1} << 20;
inline constexpr std::size_t kMaxTopologyAxes = 6;
inline constexpr std::int64_t kMaxLayers = 1'000;                 // the deepest published models have a few hundred
inline constexpr std::int64_t kMaxStages = 256;                   // of a pipeline
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;  // embed, mlp, head_dim
inline constexpr std::int64_t kMaxHeads = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxVocab = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxBatch = std::int64_t{1} << 40;     // examples
inline constexpr std::int64_t kMaxSequence = std::int64_t{1} << 27;  // tokens
inline constexpr double kMaxSeconds = 9e6;                           // one engine run lasts at most 106 days
inline constexpr double kMaxBytes = 1e18;
inline constexpr double kMaxRate = 1e18;  // bytes a second
inline constexpr std::int64_t kMaxThreads = 1'000'000;
inline constexpr std::int64_t kMaxInputPrefetch = 1'000'000;
inline constexpr std::size_t kMaxInputStages = 64;
inline constexpr std::int64_t kMaxBlockPrefetch = 1'000;

}  // namespace tpusim::scenario
