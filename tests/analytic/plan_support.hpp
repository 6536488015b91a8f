// A model, a mesh and an ideal slice -> the plan and its timing.
#pragma once

#include <string>

#include "sim/base/check.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

namespace tpusim::testing {

struct Played {
  session::Planned plan;
  timing::StepTiming timing;
};

inline topologies::Cluster ideal_slice(const topologies::Shape& shape, const std::string& chip = "ideal-v5p") {
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip(chip);
  request.slice_shape = shape;
  DiagnosticSink sink;
  const auto cluster = topologies::build(request, sink);
  TPUSIM_CHECK(cluster.has_value(), "no such slice");
  return *cluster;
}

inline Played play(const session::JobSpec& spec, const topologies::Cluster& cluster) {
  Played out;
  out.plan = session::make_plan(spec, cluster.fabric);
  TPUSIM_CHECK(out.plan.verdict.feasible, out.plan.verdict.reason);
  out.timing = timing::time_step(out.plan.program, cluster.chip, cluster.fabric, {});
  TPUSIM_CHECK(out.timing.steady, "no steady step");
  return out;
}

}  // namespace tpusim::testing
