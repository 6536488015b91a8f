// What the alpha-beta model says of a work and of a phase. Internal to sim/plan.
#pragma once

#include "sim/plan/collective_plan.hpp"

namespace tpusim::plan {

struct WorkTime {
  Seconds alpha, beta;
  std::int64_t steps = 0;
  double bytes = 0;  // over one link, one direction
  Seconds total() const { return alpha + beta; }
};
WorkTime work_time(const CollectivePlan& plan, const Phase::Work& work);
// Of the slowest work of a phase, which is what the phase takes.
WorkTime phase_time(const CollectivePlan& plan, const Phase& phase);
// How many pieces an all-reduce in place should be cut into, from 1 to 1024.
std::int64_t best_pieces(const CollectivePlan& plan, const Phase::Work& work);

}  // namespace tpusim::plan
