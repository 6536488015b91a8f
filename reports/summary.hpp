// What a report says about a result in words: the same sentences and rows for the terminal and for the HTML page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/result/result.hpp"

namespace tpusim::reports {

// Read out of the scenario as the result repeats it; a fact that the scenario does not have is left out.
struct Facts {
  std::string title;     // the scenario's name, or "tpusim"
  std::string model;     // "llama2-7b: 6.74 B parameters, 32 layers"
  std::string cluster;   // "tpu-v5e 4x4, 16 chips"
  std::string mesh;      // "fsdp 4 × tensor 4"
  std::string training;  // "512 examples × 4,096 tokens, microbatch 1; bf16, adamw, remat none"
};
Facts facts(const result::Result& result);

// One part of a whole, with the name that a reader sees and a short key ("bubble") for colours.
struct Part {
  std::string key;
  std::string name;
  double value = 0;  // seconds or bytes
  double share = 0;  // of the step, or of the chip's memory (of the peak where that has no bound)
};
std::vector<Part> step_parts(const result::Step& step);
std::vector<Part> memory_parts(const result::Memory& memory);

// What a reader in a hurry needs: step time, MFU, the largest loss, the bottleneck. "" when no step was timed.
std::string headline_sentence(const result::Result& result);
// A chip without a bound on its memory (the catalogue's ideal chip) has a capacity of 2^62 bytes or more.
bool has_capacity(const result::Memory& memory);
std::string capacity_text(const result::Memory& memory);  // "80 GiB", "unlimited"
// "passed: ..." or "FAILED at ...", or that it was not run.
std::string verification_sentence(const result::Result& result);
// "cannot work: out of memory; needs X, has Y", "" when feasible and it fits.
std::string obstacle_sentence(const result::Result& result);

std::string joined(const std::vector<std::string>& items, std::string_view separator);
std::string mesh_text(const std::vector<std::pair<std::string, std::int64_t>>& mesh);
// "1,234" up to six digits of a count that may be a mean: 1.5 -> "1.5".
std::string count_text(double count);
// The quantities of result.hpp; "-" where a number does not exist.
std::string seconds_text(Seconds time);
std::string bytes_text(double bytes);
std::string rate_text(const std::optional<double>& per_second, std::string_view unit);  // "1.68 M tokens/s"
std::string assumption_value(const result::Assumption& assumption);

}  // namespace tpusim::reports
