// Random small jobs through models, strategies and lower(): the plan breaks no rule, plays to its end on every device
// without a stall, and its peak is what the interpreter allocates.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/builders.hpp"
#include "models/presets.hpp"
#include "sim/base/random.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/run/null_backend.hpp"
#include "sim/strategies/strategies.hpp"

namespace tpusim {
namespace {

struct Drawn {
  models::ModelConfig config;
  strategies::Request request;
  ir::Remat remat = ir::Remat::none;
  ir::AttentionKind attention = ir::AttentionKind::flash;
  plan::LowerOptions options;
  std::string text;
};

std::int64_t pick(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
}

void draw_model(Random& random, Drawn& d) {
  const char* presets[] = {"llama2-7b", "gpt2", "palm-8b", "llama3.1-70b"};
  d.config = models::find_preset(presets[pick(random, 4)])->config;
  d.config.layers = 4;
  d.config.embed = 32;
  d.config.heads = 8;
  d.config.kv_heads = std::int64_t{1} << pick(random, 4);
  d.config.head_dim = 8;
  d.config.mlp = 64;
  d.config.vocab = 96;
  d.config.max_positions = 64;
  d.config.tied_embeddings = pick(random, 2) == 1;
  const auto set = [&](ir::Axis axis, std::int64_t size) { d.request.sizes[static_cast<std::size_t>(axis)] = size; };
  set(ir::Axis::embed, d.config.embed);
  set(ir::Axis::seq, 16);
  set(ir::Axis::kv_heads, d.config.kv_heads);
  set(ir::Axis::q_group, d.config.heads / d.config.kv_heads);
  set(ir::Axis::head_dim, d.config.head_dim);
  set(ir::Axis::mlp, d.config.mlp);
  set(ir::Axis::vocab, d.config.vocab);
  d.request.sites.layers = d.config.layers;
}

Drawn draw(Random& random) {
  Drawn d;
  draw_model(random, d);
  std::int64_t devices = 1, replicas = 1;
  for (const char* axis : {"pipeline", "data", "fsdp", "tensor"}) {
    const std::int64_t size = std::int64_t{1} << pick(random, 3);
    if (size == 1 || devices * size > 16) continue;
    devices *= size;
    if (axis[0] == 'd' || axis[0] == 'f') replicas *= size;
    d.request.mesh.push_back({axis, size});
    d.text += std::string(axis) + std::to_string(size) + " ";
  }
  d.request.microbatch = 1;
  d.request.global_batch = replicas * (1 + pick(random, 9));
  d.request.options.zero_stage = static_cast<int>(1 + pick(random, 3));
  d.request.options.sequence_parallel = pick(random, 2) == 1;
  d.request.options.schedule =
      pick(random, 2) == 1 ? strategies::PipelineSchedule::gpipe : strategies::PipelineSchedule::one_f_one_b;
  d.remat = static_cast<ir::Remat>(pick(random, 3));
  d.attention = pick(random, 2) == 1 ? ir::AttentionKind::unfused : ir::AttentionKind::flash;
  d.options.prefetch = static_cast<int>(pick(random, 2));
  d.options.overlap = pick(random, 4) != 0;
  d.options.bucket_bytes = pick(random, 2) == 1 ? 4096 : 26214400;
  d.options.optimizer.kind = static_cast<ir::Optimizer>(pick(random, 5));
  d.options.optimizer.clip_norm = pick(random, 2) == 1 ? 1.0 : 0.0;
  d.options.verify = false;
  d.text += d.config.name + ", zero " + std::to_string(d.request.options.zero_stage) + ", kv_heads " +
            std::to_string(d.config.kv_heads) + ", microbatches " + std::to_string(d.request.global_batch / replicas) +
            ", prefetch " + std::to_string(d.options.prefetch);
  return d;
}

plan::StepProgram plan_of(const Drawn& d, const strategies::Setup& setup) {
  models::BuildOptions build;
  build.batch = setup.replicas * setup.microbatch;
  build.seq = 16;
  build.global_tokens = static_cast<double>(d.request.global_batch * 16);
  build.attention = d.attention;
  build.padded = setup.padded;
  build.padded[static_cast<std::size_t>(ir::Axis::batch)] = 0;
  ir::Model model = models::build(d.config, build);
  for (ir::Program& block : model.blocks) ir::differentiate(block, {d.remat, ir::DType::f32});
  fabric::Fabric fabric;
  spmd::Placement placement;
  for (const spmd::MeshAxis& axis : setup.mesh.axes) {
    placement.parts.push_back({{static_cast<int>(fabric.axes.size()), axis.size, 1}});
    fabric::PhysicalAxis physical;
    physical.name = axis.name;
    physical.size = axis.size;
    physical.alpha = Seconds(1e-6);
    physical.beta = BytesPerSecond(1e11);
    fabric.axes.push_back(physical);
  }
  return plan::lower({model, setup.tables, setup.mesh, placement, fabric, setup.schedule, d.options});
}

// Counts live bytes of each class in plan order.
struct MemoryMeter : run::NullBackend {
  const plan::StepProgram* program = nullptr;
  std::vector<std::int64_t> live = std::vector<std::int64_t>(64), peak = std::vector<std::int64_t>(64);
  std::int64_t bytes(const run::Instance& i) const {
    return program->buffers[static_cast<std::size_t>(i.buffer.index)].bytes;
  }
  Token allocate(std::int32_t c, const run::Instance& i, Token) {
    const auto k = static_cast<std::size_t>(c);
    live[k] += bytes(i);
    peak[k] = std::max(peak[k], live[k]);
    return {};
  }
  Token release(std::int32_t c, const run::Instance& i, Token, Token) {
    live[static_cast<std::size_t>(c)] -= bytes(i);
    return {};
  }
};

std::int64_t resident(const plan::StepProgram& p, std::int32_t stage) {
  std::int64_t sum = 0;
  for (const plan::Buffer& b : p.buffers) {
    if (!b.persistent) continue;
    if (b.scope == plan::Scope::step) {
      if (b.stages.empty() || std::count(b.stages.begin(), b.stages.end(), stage) > 0) sum += b.bytes;
      continue;
    }
    for (const plan::Site& site : p.sites)
      if (site.block == b.block && site.stage == stage)
        sum += b.bytes * (b.scope == plan::Scope::microbatch ? p.microbatches : 1);
  }
  return sum;
}

TEST_CASE("random jobs give plans that break no rule, never stall, and allocate what their summary says") {
  Random random(20);
  int planned = 0;
  for (int i = 0; i < 200; ++i) {
    const Drawn d = draw(random);
    const strategies::Setup setup = strategies::decide(d.request);
    if (!setup.verdict.feasible) continue;
    ++planned;
    CAPTURE(d.text);
    const plan::StepProgram p = plan_of(d, setup);
    const std::vector<std::string> broken = plan::verify(p);
    CHECK_MESSAGE(broken.empty(), (broken.empty() ? "" : broken.front()));
    for (const run::Folding folding : {run::Folding::per_stage, run::Folding::per_device}) {
      MemoryMeter meter;
      meter.program = &p;
      run::Interpreter<MemoryMeter> interpreter(p, folding, meter);
      REQUIRE(!interpreter.run(2).has_value());
      for (std::size_t c = 0; c < interpreter.classes().size(); ++c) {
        const std::int32_t stage = interpreter.classes()[c].stage;
        CHECK(meter.live[c] == 0);
        CHECK(meter.peak[c] + resident(p, stage) == p.memory[static_cast<std::size_t>(stage)].peak_bytes);
      }
    }
  }
  CHECK(planned >= 150);
}

}  // namespace
}  // namespace tpusim
