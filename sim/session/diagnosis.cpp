#include "sim/session/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.hpp"
#include "sim/session/fill_result.hpp"

namespace tpusim::session {

namespace {

constexpr double kWorthSaying = 0.005;  // savings below half a percent of the step are noise to a reader

struct Replay {
  std::string name;
  timing::SpeedUp speed_up;
};

std::vector<Replay> replays(const Job& job) {
  std::vector<Replay> out;
  timing::SpeedUp s;
  s.peak = 2;
  out.push_back({"matrix unit", s});
  s = {};
  s.vector = 2;
  out.push_back({"vector unit", s});
  s = {};
  s.hbm = 2;
  out.push_back({"HBM bandwidth", s});
  const bool torus = job.cluster.kind == topologies::ClusterKind::slices;
  const std::pair<fabric::Level, const char*> levels[] = {
      {fabric::Level::chip, torus ? "ICI links" : "links inside a host"},
      {fabric::Level::host, "network between hosts"},
      {fabric::Level::slice, "network between slices (DCN)"}};
  for (const auto& entry : levels) {
    const fabric::Level level = entry.first;
    const bool there = std::any_of(job.cluster.fabric.axes.begin(), job.cluster.fabric.axes.end(),
                                   [&](const auto& axis) { return axis.level == level && axis.size > 1; });
    if (!there) continue;
    s = {};
    s.links[static_cast<std::size_t>(level)] = 2;
    out.push_back({entry.second, s});
  }
  if (job.input) {
    s = {};
    s.hosts = 2;
    out.push_back({"hosts and storage", s});
  }
  return out;
}

struct Neighbour {
  std::string change;
  JobSpec spec;
};

void mesh_neighbours(const JobSpec& spec, std::vector<Neighbour>& out) {
  for (std::size_t from = 0; from < spec.mesh.size(); ++from)
    for (std::size_t to = 0; to < spec.mesh.size(); ++to) {
      if (from == to || spec.mesh[from].size % 2 != 0) continue;
      Neighbour n{"", spec};
      n.spec.mesh[from].size /= 2;
      n.spec.mesh[to].size *= 2;
      if (n.spec.mesh[to].name == "pipeline" || n.spec.mesh[from].name == "pipeline") n.spec.microbatch = 0;
      n.change = fmt::format("mesh {} {} and {} {}", n.spec.mesh[from].name, n.spec.mesh[from].size,
                             n.spec.mesh[to].name, n.spec.mesh[to].size);
      out.push_back(std::move(n));
    }
}

bool has_axis(const JobSpec& spec, const char* name) {
  return std::any_of(spec.mesh.begin(), spec.mesh.end(),
                     [&](const auto& axis) { return axis.name == name && axis.size > 1; });
}

std::vector<Neighbour> neighbours(const JobSpec& spec, std::int64_t microbatch) {
  std::vector<Neighbour> out;
  mesh_neighbours(spec, out);
  const std::pair<ir::Remat, const char*> remats[] = {
      {ir::Remat::none, "none"}, {ir::Remat::selective, "selective"}, {ir::Remat::full, "full"}};
  for (const auto& [remat, name] : remats)
    if (remat != spec.remat && !(remat == ir::Remat::selective && spec.attention == ir::AttentionKind::flash)) {
      out.push_back({fmt::format("remat {}", name), spec});
      out.back().spec.remat = remat;
    }
  if (microbatch > 1 && microbatch % 2 == 0) {
    out.push_back({fmt::format("microbatch {}", microbatch / 2), spec});
    out.back().spec.microbatch = microbatch / 2;
  }
  out.push_back({fmt::format("microbatch {}", microbatch * 2), spec});
  out.back().spec.microbatch = microbatch * 2;
  if (has_axis(spec, "fsdp")) {
    if (spec.prefetch == 0) {
      out.push_back({"fsdp prefetch 1", spec});
      out.back().spec.prefetch = 1;
    }
    for (int stage = 1; stage <= 3; ++stage)
      if (stage != spec.strategies.zero_stage) {
        out.push_back({fmt::format("zero_stage {}", stage), spec});
        out.back().spec.strategies.zero_stage = stage;
      }
  }
  if (has_axis(spec, "tensor")) {
    out.push_back({fmt::format("sequence_parallel {}", !spec.strategies.sequence_parallel), spec});
    out.back().spec.strategies.sequence_parallel = !spec.strategies.sequence_parallel;
  }
  return out;
}

struct Played {
  std::string change;
  SimTime period;
  result::Memory memory;
};

// A neighbour that cannot be planned is not a neighbour.
std::vector<Played> play_neighbours(const Job& job, std::int64_t microbatch) {
  std::vector<Played> out;
  if (job.spec.model.family == models::Family::fixed) return out;
  for (Neighbour n : neighbours(job.spec, microbatch)) {
    n.spec.verify_plan = false;
    try {
      const Planned planned = make_plan(n.spec, job.cluster.fabric);
      if (!planned.verdict) continue;
      timing::TimingOptions options;
      options.input = job.input;
      options.call_limit = 200'000;  // a neighbour that takes longer to play is left out
      const timing::StepTiming timing =
          timing::time_step(planned.program, job.cluster.chip, job.cluster.fabric, options);
      if (!timing.stall) out.push_back({n.change, timing.period, memory_of(planned.program, job.cluster.chip)});
    } catch (const CapacityError&) {
      continue;
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Played& a, const Played& b) { return a.period < b.period; });
  return out;
}

std::int64_t microbatch_of(const Job& job, const plan::StepProgram& program) {
  std::int64_t replicas = 1;
  for (const strategies::RequestedAxis& axis : job.spec.mesh)
    if (axis.name == "data" || axis.name == "fsdp") replicas *= axis.size;
  return std::max<std::int64_t>(1, job.spec.global_batch / replicas / program.microbatches);
}

std::string gain(const Played& played, SimTime now) {
  const double share = 1 - played.period.seconds() / now.seconds();
  return fmt::format("{}: {:.1f} % {} ({} a step{})", played.change, 100 * std::abs(share),
                     share >= 0 ? "faster" : "slower", format_seconds(played.period.seconds()),
                     played.memory.fits ? "" : ", but it does not fit in memory");
}

}  // namespace

std::vector<result::Diagnosis> diagnose(const Job& job, const plan::StepProgram& program,
                                        const timing::StepTiming& timing) {
  std::vector<result::Diagnosis> out;
  for (const Replay& replay : replays(job)) {
    timing::TimingOptions options;
    options.input = job.input;
    options.speed_up = replay.speed_up;
    const timing::StepTiming faster = timing::time_step(program, job.cluster.chip, job.cluster.fabric, options);
    const double share = 1 - faster.period.seconds() / timing.period.seconds();
    if (share > kWorthSaying) out.push_back({replay.name, share, ""});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  std::size_t at = 0;
  for (const Played& played : play_neighbours(job, microbatch_of(job, program))) {
    if (at >= out.size() || !played.memory.fits || played.period.seconds() / timing.period.seconds() > 1 - kWorthSaying)
      continue;
    out[at++].suggestion = gain(played, timing.period);
  }
  return out;
}

std::vector<std::string> ways_to_fit(const Job& job) {
  std::vector<std::string> out;
  const std::int64_t microbatch = job.spec.microbatch > 0 ? job.spec.microbatch : 2;
  for (const Played& played : play_neighbours(job, microbatch))
    if (played.memory.fits && out.size() < 3)
      out.push_back(fmt::format("{} fits: {} of {}, {} a step", played.change,
                                format_bytes(Bytes(static_cast<double>(played.memory.peak_bytes))),
                                format_bytes(Bytes(static_cast<double>(played.memory.capacity_bytes))),
                                format_seconds(played.period.seconds())));
  return out;
}

}  // namespace tpusim::session
