// What a plan holds, against the literature's formulas of memory.
#include <doctest/doctest.h>

#include "models/presets.hpp"
#include "tests/analytic/plan_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

// Bytes of a category that one device holds throughout a step, from the plan's own buffers.
std::int64_t resident(const plan::StepProgram& program, plan::Category category) {
  std::int64_t sum = 0;
  for (const plan::Buffer& b : program.buffers) {
    if (b.category != category || b.scope == plan::Scope::call || b.block < 0) continue;
    for (const plan::Site& site : program.sites) sum += site.block == b.block ? b.bytes : 0;
  }
  return sum;
}

// Bytes that one layer keeps of one microbatch until its backward call: its input and what it saves.
std::int64_t saved(const plan::StepProgram& program) {
  std::int64_t sum = 0;
  for (const plan::Buffer& b : program.buffers) {
    if (b.scope != plan::Scope::microbatch || b.category != plan::Category::activations) continue;
    const bool input = b.block < 0 && b.label == "x";
    const bool layer = b.block >= 0 && program.programs[static_cast<std::size_t>(b.block)].local.name == "layer";
    sum += input || layer ? b.bytes : 0;
  }
  return sum;
}

session::JobSpec gpt(std::int64_t tensor) {
  session::JobSpec s = small_transformer(4, {{"tensor", tensor}});
  s.model.gated_mlp = false;
  s.model.activation = models::Activation::gelu;
  s.model.norm = models::Norm::layer;
  s.model.positions = models::Positions::learned;
  s.model.bias = true;
  s.sequence_length = 128;
  s.global_batch = 8;
  s.microbatch = 2;
  s.attention = ir::AttentionKind::unfused;
  return s;
}

}  // namespace

TEST_CASE("bf16 parameters, f32 gradients, masters and Adam's moments take 6 + 12/d bytes a parameter with ZeRO-1") {
  // NVIDIA/Megatron-LM README, distributed optimizer, "bf16 parameters, fp32 gradients": 18 in all, 6 + 12/d when the
  // masters (4) and moments (8) are shared by d; fp32: 16 and 8 + 8/d. Gradients are accumulated over 2 microbatches;
  // what a reduce-scatter leaves of them (4/d) has room of its own here, where Megatron writes over the whole.
  for (std::int64_t d : {1, 2, 4}) {
    const auto bytes = [&](ir::DType parameters) {
      session::JobSpec s = gpt(1);
      s.model.bias = false;  // everything divides
      s.model.positions = models::Positions::rotary;
      s.model.norm = models::Norm::rms;
      s.mesh = {{"fsdp", d}};
      s.global_batch = 2 * s.microbatch * d;
      s.strategies.zero_stage = 1;
      s.parameter_dtype = parameters;
      const plan::StepProgram p = play(s, ideal_slice({d, 1, 1})).plan.program;
      const auto count = static_cast<double>(models::parameter_count(s.model));
      const auto each = [&](plan::Category c) { return static_cast<double>(resident(p, c)) / count; };
      return std::vector<double>{each(plan::Category::parameters), each(plan::Category::gradients),
                                 each(plan::Category::optimizer)};
    };
    const double share = 1 / static_cast<double>(d), reduced = d > 1 ? 4 * share : 0;
    CHECK(bytes(ir::DType::bf16) == std::vector<double>{2, 4 + reduced, 12 * share});
    CHECK(bytes(ir::DType::f32) == std::vector<double>{4, 4 + reduced, 8 * share});
  }
}

TEST_CASE("parameters split over 4 of 4 x 16 devices are there 16 times in all, over 16 of 2 x 16 twice") {
  // Book, sharding: question 1, A[I_X, ...] on X 4, Y 8, Z 2: 16 copies. Pop quiz, int8[128,2048] over X 2 and Y 8 of a
  // mesh with Z 2: 16,384 of its 262,144 bytes on each device, 524,288 in all. Hybrid sharding is that: fsdp splits,
  // data copies.
  const auto copies = [](std::int64_t split, std::int64_t copied) {
    session::JobSpec s = gpt(1);
    s.model.bias = false;
    s.model.positions = models::Positions::rotary;
    s.model.norm = models::Norm::rms;
    s.mesh = {{"data", copied}, {"fsdp", split}};
    s.global_batch = s.microbatch * split * copied;
    const plan::StepProgram p = play(s, ideal_slice({split, copied, 1})).plan.program;
    return static_cast<double>(resident(p, plan::Category::parameters) * split * copied) /
           static_cast<double>(4 * models::parameter_count(s.model));
  };
  CHECK(copies(4, 16) == 16);
  CHECK(copies(16, 2) == 2);
}

TEST_CASE("a layer keeps s b h (20 + 2 a s / h) bytes, 20 s b h with selective remat, 2 s b h with full, all over t") {
  // V. Korthikanti et al., MLSys 2023, table 2: s b h (34 + 5 a s / h), s b h (10 + 24/t + ...) with tensor
  // parallelism, (34/t + ...) with sequence parallelism, 34/t selective, 2 full. There with dropout, whose masks (1 + 1
  // and a s / h) and second copy of the probabilities (2 a s / h) do not exist here; what an elementwise chain makes
  // again from what is kept (both norms' outputs 2 + 2, GeLU's output 8) is not kept here. So 34 -> 20: inputs of both
  // norms 2 + 2, q k v 6, the attention's result 2, the MLP's inner width 8; and 5 a s / h -> 2 a s / h, the scores.
  // Under tensor parallelism alone the two inputs stay whole: 4 + 16/t. Added: statistics in f32, mean and scale of two
  // norms 16 s b, highest score and sum 8 a s b.
  const std::int64_t s = 128, b = 2, h = 256, a = 8, sbh = s * b * h;
  for (std::int64_t t : {1, 2, 4})
    for (bool sequence : {false, true}) {
      CAPTURE(t);
      CAPTURE(sequence);
      const auto kept = [&](ir::Remat remat) {
        session::JobSpec spec = gpt(t);
        spec.strategies.sequence_parallel = sequence;
        spec.remat = remat;
        return saved(play(spec, ideal_slice({t, 1, 1})).plan.program);
      };
      const std::int64_t split = sequence ? t : 1;  // of the residual stream
      const std::int64_t linear = (4 * sbh + 16 * s * b) / split + 16 * sbh / t, statistics = 8 * a * s * b / t;
      CHECK(kept(ir::Remat::none) == linear + 2 * a * s * s * b / t + statistics);
      CHECK(kept(ir::Remat::selective) == linear + statistics);
      CHECK(kept(ir::Remat::full) == 2 * sbh / split);
    }
}

TEST_CASE("a layer of GPT-3 175B over tensor 8 keeps 20/34 of the 106,954,752 bytes that it takes with dropout") {
  // Same source: 34 s b h / t at s 2048, b 1, h 12288, t 8, selective remat and sequence parallelism. Statistics as
  // above.
  session::JobSpec spec = gpt(8);
  spec.model = models::find_preset("gpt3-175b")->config;
  spec.sequence_length = 2048;
  spec.global_batch = spec.microbatch = 1;
  spec.strategies.sequence_parallel = true;
  spec.remat = ir::Remat::selective;
  CHECK(saved(play(spec, ideal_slice({8, 1, 1})).plan.program) ==
        106'954'752 / 34 * 20 + (16 * 2048 + 8 * 96 * 2048) / 8);
}

TEST_CASE("1F1B keeps the saved values of min(p - s, m) microbatches alive on stage s, GPipe of all, to the byte") {
  // D. Narayanan et al., SC 2021, section 2.2.1. The peak of each stage's activations from the plan's memory order, one
  // layer a stage, values long against gradients so that the peak is where most microbatches are alive. Beside them: in
  // the middle one boundary value on its way in (2 s b h; the layer's output of another microbatch); on the outer
  // stages the batch itself, 4 bytes a token and microbatch (ids there, targets here). GPipe's last stage is left out:
  // there the head's logits are kept as well.
  const std::int64_t token_bytes = 4 * 512 * 8, boundary = 2 * 512 * 8 * 64;
  for (const auto schedule : {strategies::PipelineSchedule::one_f_one_b, strategies::PipelineSchedule::gpipe})
    for (std::int64_t p = 2; p <= 8; ++p)
      for (std::int64_t m : {2, 3, 4, 8, 20}) {
        session::JobSpec spec;
        spec.model.layers = p;
        spec.model.embed = 64;
        spec.model.mlp = 256;
        spec.model.heads = spec.model.kv_heads = 2;
        spec.model.head_dim = 32;
        spec.model.vocab = 128;
        spec.sequence_length = 512;
        spec.microbatch = 8;
        spec.global_batch = 8 * m;
        spec.mesh = {{"pipeline", p}};
        spec.strategies.schedule = schedule;
        const plan::StepProgram program = play(spec, ideal_slice({p, 1, 1})).plan.program;
        const bool gpipe = schedule == strategies::PipelineSchedule::gpipe;
        for (std::int64_t s = 0; s < (gpipe ? p - 1 : p); ++s) {
          CAPTURE(gpipe);
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(s);
          const std::int64_t alive = gpipe ? m : std::min<std::int64_t>(p - s, m);
          const bool outer = s == 0 || s + 1 == p;
          CHECK(program.memory[static_cast<std::size_t>(s)]
                    .at_peak[static_cast<std::size_t>(plan::Category::activations)] ==
                alive * saved(program) + (outer ? m * token_bytes : boundary));
        }
      }
}
