// Jobs at random, through the command: each is answered or refused for a reason, and never ends in a fault of our own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/cli/cli.hpp"
#include "sim/result/json.hpp"

using namespace tpusim;

namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  // Sound as far as a scenario can tell on its own; whether heads, layers, sequence and memory fit is left to chance.
  std::string scenario() {
    std::vector<std::string> axes = {"data", "fsdp", "tensor", "pipeline"};
    random_.shuffle(axes);
    axes.resize(1 + random_.below(4));
    std::string mesh;
    std::int64_t chips = 1, replicas = 1;
    const std::int64_t layers = pick<std::int64_t>({2, 4, 6, 12});
    for (const std::string& axis : axes) {
      const std::int64_t size =
          axis == "pipeline" ? pick<std::int64_t>({1, 2}) : pick<std::int64_t>({1, 2, 2, 3, 4, 8});
      mesh += fmt::format("{}\"{}\": {}", mesh.empty() ? "" : ", ", axis, size);
      chips *= size;
      if (axis == "data" || axis == "fsdp") replicas *= size;
    }
    const bool mlp = random_.below(5) == 0;
    return fmt::format("{{\"model\": {}, \"cluster\": {}, \"mesh\": {{{}}}, \"training\": {}}}",
                       mlp ? mlp_model(layers) : transformer(layers), cluster(chips), mesh, training(replicas, mlp));
  }

 private:
  template <class T>
  T pick(const std::vector<T>& of) {
    return of[random_.below(of.size())];
  }
  std::string flag() { return random_.below(2) == 0 ? "true" : "false"; }
  std::string name(const std::vector<std::string>& of) { return pick(of); }

  std::string transformer(std::int64_t layers) {
    if (random_.below(2) == 0)
      return fmt::format("{{\"preset\": \"{}\", \"layers\": {}}}",
                         name({"gpt2", "llama2-7b", "llama3.1-8b", "palm-8b", "llama2-70b"}), layers);
    const std::int64_t heads = pick<std::int64_t>({4, 8, 12});
    return fmt::format(
        "{{\"family\": \"transformer\", \"layers\": {}, \"embed\": {}, \"heads\": {}, \"kv_heads\": {}, \"mlp\": {}, "
        "\"vocab\": {}, \"gated_mlp\": {}, \"tied_embeddings\": {}, \"positions\": \"{}\", \"norm\": \"{}\", "
        "\"activation\": \"{}\", \"parallel_block\": {}, \"bias\": {}}}",
        layers, heads * pick<std::int64_t>({8, 16, 64}), heads, pick<std::int64_t>({1, 2, heads}),
        pick<std::int64_t>({64, 100, 1001}), pick<std::int64_t>({7, 1000, 50257}), flag(), flag(),
        name({"rotary", "learned", "none"}), name({"rms", "layer"}), name({"silu", "gelu", "relu"}), flag(), flag());
  }
  std::string mlp_model(std::int64_t layers) {
    return fmt::format(
        "{{\"family\": \"mlp\", \"layers\": {}, \"embed\": {}, \"mlp\": {}, \"gated_mlp\": {}, \"bias\": {}}}", layers,
        pick<std::int64_t>({16, 64, 100}), pick<std::int64_t>({64, 100}), flag(), flag());
  }
  std::string cluster(std::int64_t chips) {
    switch (random_.below(5)) {
      case 3:
        return torus(chips);
      case 4: {
        const std::int64_t per_host = chips % 8 == 0 ? 8 : chips % 4 == 0 ? 4 : chips % 2 == 0 ? 2 : 1;
        return fmt::format("{{\"chip\": \"{}\", \"hosts\": {}, \"chips_per_host\": {}}}", name({"h100", "b200"}),
                           chips / per_host, per_host);
      }
      case 0:
        return fmt::format("{{\"chip\": \"a100-80gb\", \"hosts\": 1, \"chips_per_host\": {}}}", chips);
      case 1:
        return fmt::format("{{\"chip\": \"h100\", \"hosts\": {}, \"chips_per_host\": 1}}", chips);
      default:
        return chips <= 16 ? fmt::format("{{\"chip\": \"tpu-v5e\", \"topology\": \"1x{}\"}}", chips)
                           : fmt::format("{{\"chip\": \"h200\", \"hosts\": {}, \"chips_per_host\": 1}}", chips);
    }
  }
  // Slices of three axes, whose sizes are the prime factors of `chips` dealt out at random.
  std::string torus(std::int64_t chips) {
    std::int64_t sizes[4] = {1, 1, 1, 1};
    for (std::int64_t factor : {2, 3})
      for (; chips % factor == 0; chips /= factor) sizes[random_.below(4)] *= factor;
    return fmt::format("{{\"chip\": \"{}\", \"topology\": \"{}x{}x{}\", \"slices\": {}}}", name({"tpu-v4", "tpu-v5p"}),
                       sizes[0], sizes[1], sizes[2], sizes[3]);
  }
  std::string training(std::int64_t replicas, bool mlp) {
    const std::int64_t microbatch = pick<std::int64_t>({1, 2, 3});
    const std::int64_t microbatches = pick<std::int64_t>({1, 2, 4, 7});
    std::string out = fmt::format(
        "{{\"global_batch\": {}, \"microbatch\": {}, \"sequence_length\": {}, \"optimizer\": \"{}\", \"remat\": "
        "\"{}\", \"compute_dtype\": \"{}\", \"gradient_dtype\": \"{}\", \"clip_norm\": {}",
        replicas * microbatch * microbatches, microbatch, pick<std::int64_t>({1, 8, 16, 128, 1024}),
        name({"sgd", "momentum", "adam", "adamw", "adafactor"}),
        mlp ? name({"none", "full"}) : name({"none", "selective", "full"}), name({"bf16", "f32"}),
        name({"bf16", "f32"}), name({"0", "1", "1e9"}));
    if (!mlp) out += fmt::format(", \"attention\": \"{}\"", name({"flash", "unfused"}));
    return out + "}";
  }

  Random random_;
};

struct Said {
  int status = -1;
  std::string out, err;
};

Said simulate(const std::string& scenario, bool verify = false) {
  std::istringstream in(scenario);
  std::ostringstream out, err;
  cli::Streams streams{in, out, err};
  std::vector<std::string> words = {"run", "-", "--json"};
  if (!verify) words.push_back("--no-verify");
  const int status = cli::run_command(words, streams);
  return {status, out.str(), err.str()};
}

}  // namespace

TEST_CASE("a random job is answered or refused for a reason, its parts sum to its whole, and twice is the same") {
  Generator generator(1);
  int answered = 0, refused = 0;
  for (int job = 0; job < 200; ++job) {
    const std::string scenario = generator.scenario();
    CAPTURE(scenario);
    const Said said = simulate(scenario);
    CAPTURE(said.err);
    REQUIRE((said.status == cli::exit_done || said.status == cli::exit_impossible));
    REQUIRE(said.err == "");
    const result::Result r = result::from_json(said.out);
    if (said.status == cli::exit_impossible) {
      ++refused;
      CHECK(r.verdict.reason != "");
      CHECK(r.verdict.needed != "");
      continue;
    }
    ++answered;
    CHECK(r.step.time.value() > 0);
    // Sums of at most a few thousand parts, each rounded once to a double of about the step's size.
    CHECK(std::abs(result::step_parts_minus_time(r.step).value()) <= 1e-9 * r.step.time.value());
    CHECK(result::memory_parts_minus_peak(r.memory) == 0);
    CHECK(r.memory.peak_bytes <= r.memory.capacity_bytes);
    if (job % 10 == 0) CHECK(simulate(scenario).out == said.out);
  }
  CHECK(answered > 50);
  CHECK(refused > 20);
}

TEST_CASE("verification passes for every random job that can be planned: it never raises a false alarm") {
  Generator generator(2);
  int passed = 0;
  for (int job = 0; job < 150; ++job) {
    const std::string scenario = generator.scenario();
    CAPTURE(scenario);
    const Said said = simulate(scenario, true);
    CAPTURE(said.err);
    REQUIRE((said.status == cli::exit_done || said.status == cli::exit_impossible));
    const result::Result r = result::from_json(said.out);
    if (!r.verification) continue;
    CAPTURE(r.verification->culprit);
    CHECK(r.verification->passed);
    ++passed;
  }
  CHECK(passed > 50);
}

TEST_CASE("jobs whose small copy would run away are verified all the same") {
  // A gated MLP without norms or clipping grows from layer to layer; Adam without a memory of squares amplifies
  // rounding; slices and heads in numbers that a small copy cannot keep.
  for (const char* scenario :
       {R"({"model": {"family": "mlp", "layers": 2, "embed": 64, "mlp": 16, "gated_mlp": true},
            "cluster": {"chip": "h100", "hosts": 1, "chips_per_host": 2}, "mesh": {"pipeline": 2},
            "training": {"global_batch": 4, "optimizer": "sgd", "clip_norm": 0}})",
        R"({"model": {"family": "mlp", "layers": 4, "embed": 64, "mlp": 1000, "gated_mlp": true},
            "cluster": {"chip": "h200", "hosts": 1, "chips_per_host": 2}, "mesh": {"pipeline": 2},
            "training": {"global_batch": 5, "clip_norm": 1e9, "optimizer": "momentum"}})",
        R"({"model": {"family": "transformer", "layers": 4, "embed": 64, "heads": 4, "mlp": 64, "vocab": 100,
            "activation": "relu", "norm": "layer"}, "cluster": {"chip": "h100", "hosts": 1, "chips_per_host": 4},
            "mesh": {"pipeline": 2, "tensor": 2}, "training": {"global_batch": 8, "sequence_length": 16,
            "learning_rate": 0.01, "clip_norm": 0, "optimizer": {"name": "adam", "beta1": 0.9, "beta2": 0}}})",
        R"({"model": {"family": "transformer", "layers": 2, "embed": 32, "heads": 2, "kv_heads": 2, "mlp": 128,
            "vocab": 100}, "cluster": {"chip": "h100", "hosts": 1, "chips_per_host": 2}, "mesh": {"tensor": 2},
            "training": {"global_batch": 4, "sequence_length": 16}})",
        R"({"model": "gpt2", "cluster": {"chip": "tpu-v4", "topology": "4x4x8", "slices": 2}, "mesh": {"fsdp": 256},
            "training": {"global_batch": 256, "sequence_length": 16}})",
        R"({"model": "gpt2", "cluster": {"chip": {"preset": "tpu-v5e", "peak_f32": 1e-12}, "topology": "4x4"},
            "mesh": {"fsdp": 16}, "training": {"global_batch": 16, "sequence_length": 16}})"}) {
    CAPTURE(scenario);
    const Said said = simulate(scenario, true);
    CAPTURE(said.err);
    REQUIRE(said.status == cli::exit_done);
    const result::Result r = result::from_json(said.out);
    REQUIRE(r.verification.has_value());
    CHECK(r.verification->passed);
  }
}
