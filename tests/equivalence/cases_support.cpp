#include "cases_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/random.hpp"

namespace tpusim::tests {

namespace {

enum Option {
  mesh,
  zero,
  sequence_parallel,
  remat,
  schedule,
  accumulation,
  tied,
  clip,
  heads,
  attention,
  style,
  prefetch,
  overlap
};

bool possible(const Case& c) {
  // Full coverage wants every pair; nothing here excludes another choice.
  return c.choice[mesh] < static_cast<int>(meshes().size());
}

}  // namespace

const std::vector<std::array<std::int64_t, 4>>& meshes() {
  static const std::vector<std::array<std::int64_t, 4>> all = [] {
    std::vector<std::array<std::int64_t, 4>> out;
    for (std::int64_t data : {1, 2, 4})
      for (std::int64_t fsdp : {1, 2, 4})
        for (std::int64_t tensor : {1, 2, 4})
          for (std::int64_t pipeline : {1, 2, 4})
            if (data * fsdp * tensor * pipeline <= 16) out.push_back({pipeline, data, fsdp, tensor});
    return out;
  }();
  return all;
}

std::array<int, Case::kOptions> option_sizes() {
  return {static_cast<int>(meshes().size()), 3, 2, 3, 2, 3, 2, 2, 3, 2, 3, 2, 2};
}

std::string to_string(const Case& c) {
  const auto& m = meshes()[static_cast<std::size_t>(c.choice[mesh])];
  static const char* const kRemat[] = {"none", "selective", "full"};
  static const char* const kHeads[] = {"multi-head", "grouped", "multi-query"};
  static const char* const kStyle[] = {"llama", "gpt2", "palm"};
  return fmt::format(
      "pipeline {} data {} fsdp {} tensor {}, zero {}, sequence_parallel {}, remat {}, {}, {} microbatches, tied {}, "
      "clip {}, {} heads, {}, {} style, prefetch {}, overlap {}",
      m[0], m[1], m[2], m[3], c.choice[zero] + 1, c.choice[sequence_parallel], kRemat[c.choice[remat]],
      c.choice[schedule] == 0 ? "gpipe" : "1f1b", to_spec(c).global_batch / m[1] / m[2], c.choice[tied], c.choice[clip],
      kHeads[c.choice[heads]], c.choice[attention] == 0 ? "flash" : "unfused", kStyle[c.choice[style]],
      c.choice[prefetch], c.choice[overlap]);
}

session::JobSpec to_spec(const Case& c) {
  session::JobSpec spec;
  const auto& m = meshes()[static_cast<std::size_t>(c.choice[mesh])];
  spec.mesh = {{"pipeline", m[0]}, {"data", m[1]}, {"fsdp", m[2]}, {"tensor", m[3]}};
  spec.strategies.zero_stage = c.choice[zero] + 1;
  spec.strategies.sequence_parallel = c.choice[sequence_parallel] == 1;
  spec.strategies.schedule =
      c.choice[schedule] == 0 ? strategies::PipelineSchedule::gpipe : strategies::PipelineSchedule::one_f_one_b;
  spec.remat = static_cast<ir::Remat>(c.choice[remat]);
  spec.attention = c.choice[attention] == 0 ? ir::AttentionKind::flash : ir::AttentionKind::unfused;
  spec.prefetch = c.choice[prefetch];
  spec.overlap = c.choice[overlap] == 1;
  spec.bucket_bytes = c.choice[overlap] == 1 ? 1024 : 26214400;
  spec.flash_block = 4;
  spec.compute_dtype = spec.parameter_dtype = spec.gradient_dtype = spec.master_dtype = ir::DType::f64;
  spec.optimizer.kind = ir::Optimizer::adamw;
  spec.optimizer.learning_rate = 1e-2;
  spec.optimizer.eps = 1e-3;  // a gradient that is zero but for rounding is not amplified
  spec.optimizer.clip_norm = c.choice[clip] == 1 ? 0.5 : 0;

  models::ModelConfig& model = spec.model;
  model.name = "small";
  model.layers = std::max<std::int64_t>(2, m[0]);
  model.embed = 8;
  model.mlp = 10;    // not a multiple of 4: padded under tensor 4
  model.vocab = 13;  // prime: padded under any tensor
  model.head_dim = 4;
  const std::int64_t kv[] = {4, 2, 1};
  model.heads = 4;
  model.kv_heads = kv[c.choice[heads]];
  model.tied_embeddings = c.choice[tied] == 1;
  model.norm_eps = 1e-5;
  if (c.choice[style] == 1) {
    model.positions = models::Positions::learned;
    model.max_positions = 9;
    model.norm = models::Norm::layer;
    model.activation = models::Activation::gelu;
    model.gated_mlp = false;
    model.bias = true;
  } else if (c.choice[style] == 2) {
    model.parallel_block = true;
  }
  spec.sequence_length = 8;
  const std::int64_t replicas = m[1] * m[2], times[] = {1, 2, 3};
  spec.microbatch = 1;
  spec.global_batch = replicas * times[c.choice[accumulation]] * std::max<std::int64_t>(m[0], 1);
  return spec;
}

fabric::Fabric fabric_for(const session::JobSpec& spec, std::uint64_t seed) {
  Random random(seed);
  fabric::Fabric fabric;
  fabric.collective_overhead = Seconds(1e-6);
  for (const strategies::RequestedAxis& axis : spec.mesh) {
    if (axis.size == 1) continue;
    const auto link = static_cast<fabric::Link>(random.below(3));
    fabric.axes.push_back({axis.name, axis.size, fabric::Level::chip, link,
                           Seconds(1e-6 * (1 + static_cast<double>(random.below(3)))),
                           BytesPerSecond(1e9 * (1 + static_cast<double>(random.below(4))))});
  }
  if (fabric.axes.empty())
    fabric.axes.push_back({"x", 1, fabric::Level::chip, fabric::Link::line, Seconds(1e-6), BytesPerSecond(1e9)});
  return fabric;
}

std::vector<Case> pairwise_cover(std::uint64_t seed, std::size_t least) {
  const auto sizes = option_sizes();
  Random random(seed);
  std::set<std::array<int, 4>> open;  // (option, value, option, value) not seen yet
  for (int a = 0; a < static_cast<int>(Case::kOptions); ++a)
    for (int b = a + 1; b < static_cast<int>(Case::kOptions); ++b)
      for (int x = 0; x < sizes[static_cast<std::size_t>(a)]; ++x)
        for (int y = 0; y < sizes[static_cast<std::size_t>(b)]; ++y) open.insert({a, x, b, y});
  const auto draw = [&] {
    Case c;
    do
      for (std::size_t i = 0; i < Case::kOptions; ++i)
        c.choice[i] = static_cast<int>(random.below(static_cast<std::uint64_t>(sizes[i])));
    while (!possible(c));
    return c;
  };
  const auto covers = [&](const Case& c) {
    std::vector<std::array<int, 4>> out;
    for (int a = 0; a < static_cast<int>(Case::kOptions); ++a)
      for (int b = a + 1; b < static_cast<int>(Case::kOptions); ++b)
        if (const std::array<int, 4> pair = {a, c.choice[static_cast<std::size_t>(a)], b,
                                             c.choice[static_cast<std::size_t>(b)]};
            open.count(pair) > 0)
          out.push_back(pair);
    return out;
  };
  std::vector<Case> out;
  while (!open.empty()) {
    // The best of a few draws, each made to hold one pair that is still open.
    Case best;
    std::vector<std::array<int, 4>> most;
    for (int attempt = 0; attempt < 12; ++attempt) {
      Case c = draw();
      const auto& must = *open.begin();
      c.choice[static_cast<std::size_t>(must[0])] = must[1];
      c.choice[static_cast<std::size_t>(must[2])] = must[3];
      std::vector<std::array<int, 4>> covered = covers(c);
      if (covered.size() > most.size()) best = c, most = std::move(covered);
    }
    for (const auto& pair : most) open.erase(pair);
    out.push_back(best);
  }
  while (out.size() < least) out.push_back(draw());
  return out;
}

}  // namespace tpusim::tests
