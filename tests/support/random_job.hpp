// Random jobs for the timing reader: any mesh, model, mix of strategies and machine, up to so many devices.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

namespace tpusim::testing {

template <class T, std::size_t N>
T pick(Random& random, const std::array<T, N>& from) {
  return from[random.below(N)];
}

struct RandomJob {
  session::JobSpec spec;
  fabric::Fabric fabric;
  topologies::Chip chip;
};

// Mesh axes in any order, sizes with primes 2 and 3.
inline std::vector<strategies::RequestedAxis> random_mesh(Random& random, std::int64_t most_devices) {
  std::vector<strategies::RequestedAxis> mesh;
  do {
    mesh = {{"pipeline", pick(random, std::array<std::int64_t, 5>{1, 1, 2, 3, 4})},
            {"data", pick(random, std::array<std::int64_t, 5>{1, 2, 3, 4, 8})},
            {"fsdp", pick(random, std::array<std::int64_t, 5>{1, 2, 3, 4, 8})},
            {"tensor", pick(random, std::array<std::int64_t, 5>{1, 1, 2, 4, 8})}};
  } while (mesh[0].size * mesh[1].size * mesh[2].size * mesh[3].size > most_devices);
  random.shuffle(mesh);
  return mesh;
}

// The primes of the device count fall at random into one to four physical axes, so mesh axes may span several of them,
// share one (a part with a stride, an open part), or neither. Outer axes are of slower levels.
inline fabric::Fabric random_fabric(Random& random, std::int64_t devices) {
  fabric::Fabric fabric;
  std::vector<std::int64_t> sizes(1 + random.below(4), 1);
  for (std::int64_t prime : {2, 3})
    for (; devices % prime == 0; devices /= prime) sizes[random.below(sizes.size())] *= prime;
  int level = static_cast<int>(random.below(3));  // 2 slice, 1 host, 0 chip
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (level > 0 && random.below(2) == 0) --level;
    if (i + 1 == sizes.size()) level = 0;
    const auto link = level == 0 ? static_cast<fabric::Link>(random.below(3)) : fabric::Link::switched;
    fabric.axes.push_back({std::string(1, static_cast<char>('w' + i)), sizes[i], static_cast<fabric::Level>(level),
                           link, Seconds(1e-7 * static_cast<double>(1 + random.below(50))),
                           BytesPerSecond(1e9 * static_cast<double>(1 + random.below(60)))});
  }
  fabric.collective_overhead = Seconds(1e-6 * static_cast<double>(random.below(3)));
  return fabric;
}

inline models::ModelConfig random_model(Random& random, std::int64_t stages) {
  models::ModelConfig model;
  model.name = "random";
  model.layers = stages + static_cast<std::int64_t>(random.below(6));
  model.embed = 96 * static_cast<std::int64_t>(1 + random.below(8));
  model.mlp = 4 * model.embed - static_cast<std::int64_t>(random.below(2));  // odd: padded when split
  model.head_dim = 64;
  model.heads = 8;
  model.kv_heads = pick(random, std::array<std::int64_t, 4>{8, 4, 2, 1});
  model.vocab = 1000 + static_cast<std::int64_t>(random.below(500));
  model.tied_embeddings = random.below(2) == 0;
  model.parallel_block = random.below(3) == 0;
  if (random.below(3) == 0) {
    model.positions = models::Positions::learned;
    model.max_positions = 512;
    model.norm = models::Norm::layer;
    model.activation = models::Activation::gelu;
    model.gated_mlp = false;
    model.bias = true;
  }
  return model;
}

inline RandomJob random_job(std::uint64_t seed, std::int64_t most_devices) {
  Random random(seed);
  RandomJob job;
  session::JobSpec& spec = job.spec;
  spec.mesh = random_mesh(random, most_devices);
  job.fabric = random_fabric(random, spec.devices());
  job.chip = *topologies::find_chip(
      pick(random, std::array<const char*, 5>{"tpu-v3", "tpu-v4", "tpu-v5e", "a100-80gb", "h100"}));
  std::int64_t stages = 1, replicas = 1;
  for (const strategies::RequestedAxis& axis : spec.mesh) {
    if (axis.name == "pipeline") stages = axis.size;
    if (axis.name == "data" || axis.name == "fsdp") replicas *= axis.size;
  }
  spec.model = random_model(random, stages);
  spec.sequence_length = 128 * static_cast<std::int64_t>(1 + random.below(4));
  spec.microbatch = 1 + static_cast<std::int64_t>(random.below(2));
  spec.global_batch =
      replicas * spec.microbatch * static_cast<std::int64_t>(1 + random.below(random.below(4) == 0 ? 40 : 9));
  spec.strategies.zero_stage = 1 + static_cast<int>(random.below(3));
  spec.strategies.sequence_parallel = random.below(2) == 0;
  spec.strategies.schedule = static_cast<strategies::PipelineSchedule>(random.below(2));
  spec.remat = static_cast<ir::Remat>(random.below(3));
  spec.attention = static_cast<ir::AttentionKind>(random.below(2));
  spec.prefetch = static_cast<int>(random.below(2));
  spec.overlap = random.below(3) != 0;
  spec.bucket_bytes = pick(random, std::array<std::int64_t, 3>{1, 1 << 20, 26214400});
  spec.gradient_dtype = random.below(2) == 0 ? ir::DType::f32 : ir::DType::bf16;
  spec.optimizer.kind = pick(random, std::array<ir::Optimizer, 4>{ir::Optimizer::sgd, ir::Optimizer::momentum,
                                                                  ir::Optimizer::adamw, ir::Optimizer::adafactor});
  spec.optimizer.clip_norm = random.below(2) == 0 ? 1 : 0;
  return job;
}

inline std::string describe(const RandomJob& job) {
  std::string text;
  for (const strategies::RequestedAxis& axis : job.spec.mesh)
    text += axis.name + " " + std::to_string(axis.size) + ", ";
  text += "on";
  for (const fabric::PhysicalAxis& axis : job.fabric.axes)
    text += " " + std::to_string(axis.size) +
            (axis.link == fabric::Link::ring   ? " ring"
             : axis.link == fabric::Link::line ? " line"
                                               : " switched");
  return text + " of " + job.chip.name;
}

}  // namespace tpusim::testing
