// What holds the step back, and what would be better: every sentence comes from a replay.
#pragma once

#include <vector>

#include "sim/result/result.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"

namespace tpusim::session {

// The same plan with each resource twice as fast (share = time saved), largest first; and neighbouring settings (a
// factor of two moved between two mesh axes, other remat, microbatch, prefetch, ZeRO stage, sequence parallelism)
// planned and played, the best named with their measured gain. `timing` is the job's own.
std::vector<result::Diagnosis> diagnose(const Job& job, const plan::StepProgram& program,
                                        const timing::StepTiming& timing);

// Neighbouring settings that fit in memory, best first; for a job that does not.
std::vector<std::string> ways_to_fit(const Job& job);

}  // namespace tpusim::session
