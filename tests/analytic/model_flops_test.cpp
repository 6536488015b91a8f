// Model and executed FLOPs of published models, against the papers' formulas and figures.
#include <doctest/doctest.h>

#include "models/presets.hpp"
#include "tests/analytic/plan_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

session::JobSpec preset(const std::string& name, std::int64_t sequence, std::int64_t batch,
                        const std::vector<strategies::RequestedAxis>& mesh) {
  session::JobSpec s;
  s.model = models::find_preset(name)->config;
  s.sequence_length = sequence;
  s.global_batch = batch;
  s.microbatch = 1;
  s.mesh = mesh;
  return s;
}

}  // namespace

TEST_CASE("PaLM 540B takes 6 N + 12 L H Q T = 3.28e12 model FLOPs a token, and 238,300 tokens/s are 46.2 % MFU") {
  // A. Chowdhery et al., "PaLM", 2022, appendix B: N = 540.35e9, 118 layers of 48 heads of 256, 2,048 tokens; 6,144 v4
  // chips of 275e12 FLOP/s. N with the tied table, which the head multiplies by, and without the 119 norms of 18,432.
  const session::JobSpec s = preset("palm-540b", 2048, 4, {{"fsdp", 4}, {"tensor", 4}});
  const double matrices = static_cast<double>(models::parameter_count(s.model) - 119 * 18432);
  const double token = play(s, ideal_slice({4, 4, 1})).timing.model_flops / (4 * 2048);
  CHECK(token == doctest::Approx(6 * matrices + 12.0 * 118 * 48 * 256 * 2048).epsilon(1e-12));
  CHECK(token == doctest::Approx(3.28e12).epsilon(0.003));
  CHECK(238300 * token / (6144 * 275e12) == doctest::Approx(0.4626).epsilon(0.003));
}

TEST_CASE("Megatron-Turing NLG 530B at 65,430 tokens/s on 2,240 A100 is at 29.8 % MFU when attention is not counted") {
  // PaLM, appendix B (29.7 %): 105 layers of width 20,480, 128 heads, vocab 51,200; 312e12 FLOP/s each. Model FLOPs
  // less attention's 12 L h s a token are 6 for each entry of a matrix.
  session::JobSpec s = preset("gpt3-175b", 2048, 16, {{"tensor", 16}});
  s.model.layers = 105, s.model.embed = 20480, s.model.mlp = 4 * 20480, s.model.vocab = 51200;
  s.model.heads = s.model.kv_heads = 128, s.model.head_dim = 160;
  const double token = play(s, ideal_slice({4, 4, 1})).timing.model_flops / (16 * 2048) - 12.0 * 105 * 20480 * 2048;
  CHECK(token == doctest::Approx(6 * (105 * 12.0 * 20480 * 20480 + 51200.0 * 20480)).epsilon(1e-12));
  CHECK(65430 * token / (2240 * 312e12) == doctest::Approx(0.2977).epsilon(0.003));
}

TEST_CASE("a step of GPT-3 175B with full recomputation takes 4.511e18 FLOPs by Megatron's equation") {
  // D. Narayanan et al., SC 2021, equation 3: 96 B s l h^2 (1 + s/6h + V/16lh) at B 1536, s 2048, l 96, h 12288, V
  // 51200: model FLOPs (three times forward) and the layers' forward once more. Executed here: all of that but the last
  // product of each layer, 8 B s l h^2, whose result no gradient reads.
  const double b = 1536, len = 2048, l = 96, h = 12288, v = 51200;
  session::JobSpec s = preset("gpt3-175b", 2048, 1536, {{"data", 64}, {"tensor", 8}});
  s.model.vocab = 51200;
  s.attention = ir::AttentionKind::unfused;
  s.remat = ir::Remat::full;
  const timing::StepTiming t = play(s, ideal_slice({8, 8, 8})).timing;
  const double head = 6 * b * len * h * v, published = 4.5109707533231063e18;
  CHECK(t.model_flops + (t.model_flops - head) / 3 == doctest::Approx(published).epsilon(1e-9));
  CHECK(t.executed_flops == doctest::Approx(published - 8 * b * len * l * h * h).epsilon(1e-9));
}

TEST_CASE("a token of LLaMA 3 70B takes 6 FLOPs a parameter, 0.915 ms on one v5p at its peak") {
  // Book, applied training: 6 x 70e9 = 4.2e11, / 4.59e14. Exactly: 70,553,706,496 parameters less the table of 128,256
  // x 8,192, which is looked up, and 161 norms; and attention, 12 x 80 x 64 x 128 x 128 FLOPs over 128 tokens.
  const session::JobSpec s = preset("llama3.1-70b", 128, 16, {{"fsdp", 16}});
  const timing::StepTiming t = play(s, ideal_slice({4, 4, 1})).timing;
  const double token = t.model_flops / (16 * 128), attention = 12.0 * 80 * 64 * 128 * 128;
  CHECK(token - attention == doctest::Approx(6.0 * (70'553'706'496 - 128256 * 8192 - 161 * 8192)).epsilon(1e-12));
  CHECK(token == doctest::Approx(4.2e11).epsilon(0.01));
  CHECK(t.compute.value() * 16 / (16 * 128) == doctest::Approx(0.915e-3).epsilon(0.01));
}
