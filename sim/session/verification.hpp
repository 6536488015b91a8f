// Proof that what is timed is what would be computed: the same strategies on a shrunken model and mesh, executed with
// real values.
#pragma once

#include <cstdint>

#include "sim/result/result.hpp"
#include "sim/session/job.hpp"

namespace tpusim::session {

// The job's own strategies, options and kind of model with small sizes: every mesh axis larger than 1 stays larger than
// 1, at most 16 devices, f64, on a machine with one physical axis of the same kind for each mesh axis.
struct Shrunken {
  JobSpec spec;
  fabric::Fabric fabric;
};
Shrunken shrink(const Job& job, const Planned& full);

// How far two f64 runs may be apart, relative to max(1, largest magnitude) of each tensor: they differ only in the
// order of a few dozen additions, about 1e-15 each, which depth and optimizer multiply.
constexpr double kValueTolerance = 1e-12;

struct Proof {
  bool values = true;    // check (a)
  bool gradient = true;  // check (b)
  std::int64_t steps = 3;
  std::int64_t shuffles = 1;  // legal orders tried for (c) and (d)
  int threads = 1;
  bool integers = false;   // small integers for parameters and features: sums are exact in any order
  double deviation = 0.3;  // standard deviation of initial parameters and features
  double tolerance = kValueTolerance;
  ir::Vjp vjp = &ir::vjp;  // what planned.model was differentiated by: who is to blame where the gradient is wrong
};
// Checks (a) to (d) of a job that is small as it stands, in f64.
result::Verification verify_spec(const JobSpec& spec, const fabric::Fabric& fabric, const topologies::Chip& chip,
                                 std::uint64_t seed, const Proof& proof = {});
// The same for a plan that is there already: what make_plan(spec, fabric) gave, or that with a fault in it (tests).
result::Verification verify_planned(const JobSpec& spec, const Planned& planned, const fabric::Fabric& fabric,
                                    const topologies::Chip& chip, std::uint64_t seed, const Proof& proof = {});

// Plans the shrunken job and checks, in this order: (a) every value of the first step against one device's, in program
// order; (b) the one-device gradient against finite differences along a seeded direction, per op where that fails; (c)
// losses and parameters over three optimizer steps, in shuffled order and in exactly the order in which timing
// finished; (d) tallies: counted = charged; (e) every collective algorithm of the full plan alone, on at most 4 members
// of each physical axis that it uses.
result::Verification verify_job(const Job& job, const Planned& full, std::uint64_t seed, int threads = 1);

}  // namespace tpusim::session
