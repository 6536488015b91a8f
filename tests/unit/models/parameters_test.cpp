#include <doctest/doctest.h>

#include "models/builders.hpp"
#include "models/presets.hpp"

using namespace tpusim;

namespace {

models::ModelConfig preset(const char* name) {
  return models::find_preset(name)->config;
}

std::int64_t built_count(const models::ModelConfig& c) {
  return models::build(c, models::BuildOptions{}).parameter_count();
}

}  // namespace

TEST_CASE("published models have exactly their published number of parameters") {
  // The counts of the checkpoints themselves: the sum of the sizes of all their tensors.
  const std::pair<const char*, std::int64_t> counts[] = {
      {"gpt2", 124'439'808},
      {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320},
      {"llama2-70b", 68'976'648'192},
      {"llama3.1-8b", 8'030'261'248},
      {"llama3.1-70b", 70'553'706'496},
      {"llama3.1-405b", 405'853'388'800},
  };
  for (const auto& known : counts) {
    const char* name = known.first;
    CAPTURE(name);
    CHECK(models::parameter_count(preset(name)) == known.second);
    CHECK(built_count(preset(name)) == known.second);
  }
}

TEST_CASE("gpt3 and palm have the parameters that their papers round") {
  // GPT-3: 96 layers of 12 h^2 + 13 h, h = 12288 (4 h^2 + 4 h attention, 8 h^2 + 5 h MLP, 4 h norms), final norm 2 h,
  // tables (50257 + 2048) h: 96 x (12 x 150,994,944 + 159,744) + 24,576 + 642,723,840 = 174,604,259,328... evaluated
  // here:
  const std::int64_t h = 12288;
  CHECK(built_count(preset("gpt3-175b")) == 96 * (12 * h * h + 13 * h) + 2 * h + (50257 + 2048) * h);
  // PaLM, table 1 of the paper: 8.63 B, 62.50 B, 540.35 B.
  // Per layer: q and o 2 x embed x heads x 256, k and v 2 x embed x 256, MLP 3 x embed x 4 embed, one norm.
  const auto palm = [](std::int64_t layers, std::int64_t e, std::int64_t heads) {
    return layers * (2 * e * heads * 256 + 2 * e * 256 + 12 * e * e + e) + e + 256'000 * e;
  };
  CHECK(built_count(preset("palm-8b")) == palm(32, 4096, 16));
  CHECK(built_count(preset("palm-62b")) == palm(64, 8192, 32));
  CHECK(built_count(preset("palm-540b")) == palm(118, 18432, 48));
  CHECK(static_cast<double>(palm(32, 4096, 16)) == doctest::Approx(8.63e9).epsilon(0.001));
  CHECK(static_cast<double>(palm(64, 8192, 32)) == doctest::Approx(62.50e9).epsilon(0.001));
  CHECK(static_cast<double>(palm(118, 18432, 48)) == doctest::Approx(540.35e9).epsilon(0.0001));
}

TEST_CASE("padding never counts as parameters, and a tied embedding counts once") {
  models::ModelConfig c = preset("gpt2");
  models::BuildOptions o;
  o.padded[static_cast<std::size_t>(ir::Axis::vocab)] = 50304;
  CHECK(models::build(c, o).parameter_count() == 124'439'808);
  c.tied_embeddings = false;
  CHECK(built_count(c) == 124'439'808 + 50257 * 768);
  CHECK(models::parameter_count(c) == 124'439'808 + 50257 * 768);
}

TEST_CASE("the counts of config and program agree for every combination of options") {
  models::ModelConfig c;
  c.layers = 3;
  c.embed = 8;
  c.heads = 4;
  c.head_dim = 2;
  c.mlp = 12;
  c.vocab = 10;
  c.max_positions = 6;
  for (int bits = 0; bits < 128; ++bits) {
    c.kv_heads = (bits & 1) != 0 ? 2 : 4;
    c.gated_mlp = (bits & 2) != 0;
    c.tied_embeddings = (bits & 4) != 0;
    c.positions = (bits & 8) != 0 ? models::Positions::learned : models::Positions::rotary;
    c.norm = (bits & 16) != 0 ? models::Norm::layer : models::Norm::rms;
    c.parallel_block = (bits & 32) != 0;
    c.bias = (bits & 64) != 0;
    CAPTURE(bits);
    CHECK(built_count(c) == models::parameter_count(c));
    c.family = models::Family::mlp;
    CHECK(built_count(c) == models::parameter_count(c));
    c.family = models::Family::transformer;
  }
}
