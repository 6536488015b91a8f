// One training step on the machine: plays the StepProgram until the period of the steady state repeats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/result/timeline.hpp"
#include "sim/run/stall.hpp"
#include "sim/run/tally.hpp"
#include "sim/run/time_token.hpp"
#include "sim/timing/host_input.hpp"
#include "sim/timing/timing_backend.hpp"

namespace tpusim::timing {

struct TimingOptions {
  bool per_device = false;  // unfolded: every device a class of its own (tests)
  bool repetition = true;   // off: everything is played (tests)
  SpeedUp speed_up;
  std::optional<HostInput> input;
  bool timeline = false;  // record the steady step
  bool events = false;    // record every event of the first step, in order of completion (for a numeric replay)
  // More calls than this, played or replayed one by one, are a CapacityError: a second or two of work.
  std::int64_t call_limit = 4'000'000;
};

struct TransferTotals {  // of one device in one step; means over devices
  double count = 0, bytes = 0;
  Seconds busy, exposed;
};

struct StepTiming {
  SimTime period;  // of the steady state
  SimTime first_step;
  bool steady = false;  // the period repeated; false: the last of `steps_played` is given
  std::int64_t steps_played = 0;
  // Mean over devices, in one steady step, as seconds; they sum to period.
  Seconds compute, communication, bubble, input, overhead;
  std::vector<run::Spent> spent_by_class;  // of the steady step
  std::vector<TransferTotals> transfers;   // by transfer number (collectives, permutes, stage reduces)
  run::Tally tally;                        // charged, for one step of the whole job
  double executed_flops = 0;               // of the whole job, as the tally but without its bound of 2^63
  double vector_flops = 0;
  double model_flops = 0;
  std::optional<run::StallReport> stall;
  result::Timeline timeline;
  std::vector<Event> events;
  std::size_t classes = 0;
};

StepTiming time_step(const plan::StepProgram& program, const topologies::Chip& chip, const fabric::Fabric& fabric,
                     const TimingOptions& options);

}  // namespace tpusim::timing
