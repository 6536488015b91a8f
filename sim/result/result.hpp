// What one simulated step came to: the output contract, version 1, as plain data.
//
// Field by field this is the document that `tpusim run S --json` prints (json.hpp writes and reads it); a key `time_s`
// is the member `time` with the unit in its type. Everything is per whole job unless the name says `per_chip`. A number
// that does not exist (tokens of a model of fixed step length) is an empty optional; a number that is not finite is
// written as null together with a note that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"
#include "sim/base/verdict.hpp"
#include "sim/result/timeline.hpp"

namespace tpusim::result {

inline constexpr int kContractVersion = 1;

struct Model {
  std::int64_t parameters = 0;  // tied tensors once, padding out
  std::int64_t layers = 0;
  bool operator==(const Model&) const = default;
};

// The period of the steady state and its parts, each a mean over all chips; the parts sum to `time`. Each instant of a
// chip counts once, under the first of these that holds: compute runs; a transfer it waits for is under way; it waits
// for its batch; it waits for work that another chip has not finished (bubble); else overhead.
struct Step {
  Seconds time{};
  Seconds compute{};
  Seconds communication_exposed{};
  Seconds bubble{};
  Seconds input_stall{};
  Seconds overhead{};
  bool operator==(const Step&) const = default;
};

struct Startup {
  Seconds first_step{};  // from a cold start: nothing prefetched, no gather begun in the step before
  bool operator==(const Startup&) const = default;
};

struct Throughput {
  std::optional<double> tokens_per_s;  // empty where the model has no tokens
  double examples_per_s = 0;
  std::optional<Flops> model_flops_per_step;  // whole job; recomputation out
  std::optional<double> tflops_per_chip;      // achieved model TFLOP/s of one chip
  std::optional<double> mfu;                  // 0..1; model FLOPs over peak
  std::optional<double> hfu;                  // 0..1; executed FLOPs over peak
  std::string flops_convention;               // "full" or "causal" attention
  bool operator==(const Throughput&) const = default;
};

// Of the fullest chip. The six parts are what is alive at the peak, with the machine's reserve, and sum to peak_bytes.
struct Memory {
  std::int64_t peak_bytes = 0;
  std::int64_t capacity_bytes = 0;
  bool fits = true;
  std::int64_t parameters_bytes = 0;
  std::int64_t gradients_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t activations_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t reserved_bytes = 0;
  bool operator==(const Memory&) const = default;
};

// One row for each (collective, mesh axes, algorithm).
struct Communication {
  std::string collective;  // "all-gather", ..., "send" between stages is "collective-permute"
  std::vector<std::string> axes;
  std::string algorithm;
  double count = 0;           // executions of one chip in one step; a mean where chips differ
  double bytes_per_chip = 0;  // bytes that one chip sends in one step; a mean where chips differ
  Seconds busy{};             // time under way, of one chip in one step
  Seconds exposed{};          // time that the chip waited for a chain of transfers that ended with it
  bool operator==(const Communication&) const = default;
};

// One thing that verification did, in a form fit to print: {"every value of the first step", true, "1,284 values"}.
struct Check {
  std::string name;
  bool passed = true;
  std::string detail;
  bool operator==(const Check&) const = default;
};

// The same strategies, executed with real values on a shrunken model and mesh, against one device.
struct Verification {
  bool passed = false;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // axis, size; in mesh order
  std::int64_t steps = 0;
  std::vector<double> loss_reference;  // one value a step
  std::vector<double> loss_sharded;
  double max_relative_error = 0;
  std::string culprit;  // the first instruction that differs, its op, rule or collective; empty when passed
  std::int64_t bytes_executed = 0;
  std::int64_t bytes_charged = 0;
  std::int64_t flops_executed = 0;
  std::int64_t flops_charged = 0;
  std::int64_t peak_bytes_executed = 0;
  std::int64_t peak_bytes_charged = 0;
  std::vector<Check> checks;
  bool operator==(const Verification&) const = default;
};

// From a replay of the same plan with `bottleneck` twice as fast.
struct Diagnosis {
  std::string bottleneck;
  double share = 0;        // 0..1 of the step time that the faster resource saves
  std::string suggestion;  // a neighbouring setting that was also played, with its measured gain; or empty
  bool operator==(const Diagnosis&) const = default;
};

enum class Confidence { measured, vendor, paper, fitted, guess };
std::string_view confidence_name(Confidence confidence);

struct Assumption {
  std::string name;
  std::variant<double, std::string> value;
  std::string unit;  // "bytes/s", "s", ...; "" for a pure number or a name
  std::string source;
  Confidence confidence = Confidence::guess;
  bool operator==(const Assumption&) const = default;
};

struct Result {
  std::string scenario_json = "{}";  // the scenario as JSON text, every default filled in, in its own key order
  Model model;
  Step step;
  Startup startup;
  Throughput throughput;
  Memory memory;
  std::vector<Communication> communication;
  std::optional<Verification> verification;  // empty: not asked for
  std::vector<Diagnosis> diagnosis;
  std::vector<Assumption> assumptions;

  // Beside the contract's own keys.
  Verdict verdict;                    // infeasible: the plan cannot work; the numbers that could be had are still here
  std::int64_t device_classes = 0;    // how many classes stood for all chips in timing
  std::vector<std::string> notes;     // what a reader must know: "no input described: the batch is always there"
  std::vector<std::string> warnings;  // formatted Diagnostics of severity warning
  Timeline timeline;                  // not part of the result document; see timeline_to_json
};

// Whether the plan got as far as an account of its memory, and as a timed step. Of one that did not, the document says
// null instead of zeros.
bool has_plan(const Result& result);
bool has_step(const Result& result);

// The contract's sums, for a producer to assert and a test to check: the parts' total minus the whole.
Seconds step_parts_minus_time(const Step& step);
std::int64_t memory_parts_minus_peak(const Memory& memory);

}  // namespace tpusim::result
