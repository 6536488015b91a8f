// A model, a mesh and an ideal slice -> the plan and its timing.
#pragma once

#include <string>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

namespace tpusim::testing {

struct Played {
  session::Planned plan;
  timing::StepTiming timing;
};

// A transformer small enough to plan many times, whose dims all divide by 2, 4 and 8.
inline session::JobSpec small_transformer(std::int64_t layers, const std::vector<strategies::RequestedAxis>& mesh) {
  session::JobSpec s;
  s.model.layers = layers;
  s.model.embed = 256;
  s.model.mlp = 1024;
  s.model.heads = s.model.kv_heads = 8;
  s.model.head_dim = 32;
  s.model.vocab = 512;
  s.mesh = mesh;
  return s;
}

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
