#include <algorithm>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

std::string mesh_text(const std::vector<MeshAxis>& mesh) {
  std::string out;
  for (const MeshAxis& a : mesh) out += fmt::format("{}{} {}", out.empty() ? "" : " x ", a.name, a.size);
  return out;
}

std::string cluster_text(const ClusterSpec& c) {
  if (c.topology.empty()) return fmt::format("{} hosts of {}", c.hosts.value_or(1), c.chips_per_host.value_or(1));
  std::string shape;
  for (const std::int64_t n : c.topology) shape += (shape.empty() ? "" : "x") + std::to_string(n);
  return c.slices == 1 ? shape : fmt::format("{} slices of {}", c.slices, shape);
}

// The product of the sizes, or 0 beyond every cluster.
std::int64_t product(const std::vector<MeshAxis>& mesh) {
  std::int64_t out = 1;
  for (const MeshAxis& a : mesh) {
    if (a.size > kMaxChips / out) return 0;
    out *= a.size;
  }
  return out;
}

void check_mesh(const Scenario& s, Context& context) {
  if (s.mesh.empty() || !context.clean("/mesh")) return;
  const std::int64_t devices = product(s.mesh);
  if (devices == 0) {
    context.sink.error(Code::too_large, "/mesh",
                       fmt::format("the mesh {} has more than {} devices", mesh_text(s.mesh), kMaxChips));
    return;
  }
  if (!context.clean("/cluster") || !s.cluster.chips()) return;
  const std::int64_t chips = *s.cluster.chips();
  if (devices == chips) return;
  // One axis changed, such that it fits; every such change is a choice.
  std::vector<std::string> fixes;
  for (const MeshAxis& a : s.mesh) {
    const std::int64_t others = devices / a.size;
    if (chips % others == 0) fixes.push_back(fmt::format("{} {}", a.name, chips / others));
  }
  context.sink.error(Code::mesh_mismatch, "/mesh",
                     fmt::format("the mesh {} has {} devices, the cluster ({}) has {} chips", mesh_text(s.mesh),
                                 devices, cluster_text(s.cluster), chips),
                     fixes.empty() ? "" : fixes.front(), fixes);
}

// Up to twelve divisors of n, nearest to `wanted` first.
std::vector<std::int64_t> divisors_near(std::int64_t n, std::int64_t wanted) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= 1'000'000 && d * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d != n / d) out.push_back(n / d);
  }
  const auto distance = [wanted](std::int64_t d) { return d > wanted ? d - wanted : wanted - d; };
  std::sort(out.begin(), out.end(),
            [&](std::int64_t a, std::int64_t b) { return std::pair(distance(a), a) < std::pair(distance(b), b); });
  if (out.size() > 12) out.resize(12);
  return out;
}

void check_batch(const Scenario& s, Context& context) {
  const TrainingSpec& t = s.training;
  if (t.global_batch < 1 || !context.clean("/training/global_batch") || !context.clean("/mesh")) return;
  if (t.sequence_length && t.global_batch > (std::int64_t{1} << 53) / *t.sequence_length) {
    context.sink.error(Code::too_large, "/training/global_batch",
                       fmt::format("{} examples of {} tokens are more than 2^53 tokens in one step", t.global_batch,
                                   *t.sequence_length));
    return;
  }
  if (s.mesh.empty() || product(s.mesh) == 0) return;
  const std::int64_t data = s.mesh_size("data"), fsdp = s.mesh_size("fsdp");
  const std::int64_t replicas = data * fsdp;
  if (t.global_batch % replicas != 0) {
    const std::int64_t below = t.global_batch / replicas * replicas, above = below + replicas;
    const std::int64_t near = below > 0 && t.global_batch - below <= above - t.global_batch ? below : above;
    std::vector<std::string> choices = {std::to_string(above)};
    if (below > 0) choices.insert(choices.begin(), std::to_string(below));
    context.sink.error(Code::not_divisible, "/training/global_batch",
                       fmt::format("{} examples do not divide over {} replicas (data {} x fsdp {})", t.global_batch,
                                   replicas, data, fsdp),
                       std::to_string(near), choices);
    return;
  }
  if (!t.microbatch) return;
  const std::int64_t share = t.global_batch / replicas;
  if (share % *t.microbatch == 0) return;
  std::vector<std::string> choices;
  for (const std::int64_t d : divisors_near(share, *t.microbatch)) choices.push_back(std::to_string(d));
  context.sink.error(
      Code::not_divisible, "/training/microbatch",
      fmt::format("each replica's {} examples do not divide into microbatches of {}", share, *t.microbatch),
      choices.front(), choices);
}

void check_model(const Scenario& s, Context& context) {
  const ModelSpec& m = s.model;
  if (!context.clean("/model")) return;
  if (s.mesh_size("pipeline") > kMaxStages)
    context.sink.error(Code::too_large, "/mesh/pipeline",
                       fmt::format("{} pipeline stages, at most {}", s.mesh_size("pipeline"), kMaxStages),
                       std::to_string(kMaxStages));
  const std::int64_t stages = s.mesh_size("pipeline");
  if (m.layers && stages > *m.layers)
    context.sink.error(Code::conflict, "/mesh/pipeline",
                       fmt::format("{} pipeline stages for {} layers: a stage would have none", stages, *m.layers),
                       std::to_string(*m.layers));
  if (m.positions == Positions::learned && m.max_positions && s.training.sequence_length &&
      *s.training.sequence_length > *m.max_positions)
    context.sink.error(Code::conflict, "/training/sequence_length",
                       fmt::format("{} tokens for {} learned positions", *s.training.sequence_length, *m.max_positions),
                       std::to_string(*m.max_positions));
  if (m.family != Family::fixed) return;
  for (const MeshAxis& a : s.mesh)
    if (a.name != "data" && a.size > 1)
      context.sink.error(Code::conflict, pointer_to("/mesh", a.name),
                         fmt::format("a model of fixed step length has nothing to split over \"{}\"", a.name), "data",
                         {"data"});
  const ShardingSpec& r = s.sharding;
  if (!(r.parameters.empty() && r.gradients.empty() && r.optimizer.empty() && r.activations.empty()))
    context.sink.error(Code::conflict, "/sharding", "a model of fixed step length has no tensors to shard");
  if (s.input && !m.example_bytes && s.input->storage.bandwidth)
    context.sink.error(Code::missing_key, "/model",
                       "\"example_bytes\" is missing: what is read from storage for one example", "example_bytes");
}

}  // namespace

void check_whole(const Scenario& scenario, Context& context) {
  check_mesh(scenario, context);
  check_batch(scenario, context);
  check_model(scenario, context);
}

}  // namespace tpusim::scenario
