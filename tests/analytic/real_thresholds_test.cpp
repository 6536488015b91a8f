// The scaling book's thresholds beside those of the machine as it is and of a whole model: what moves each, found by
// switching one effect on at a time. Printed, not asserted: nothing published says what they should be.
//
// A threshold is the tokens per chip at which all collectives of forward and backward are busy as long as they
// compute, on the settings of thresholds_test.cpp (sequences as long as a replica's tokens, bf16 gradients, SGD).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "models/presets.hpp"
#include "tests/analytic/phase_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

struct Case {
  std::string name;
  topologies::Shape shape;
  std::vector<strategies::RequestedAxis> mesh;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{"fsdp 16 on 16", {16, 1, 1}, {{"fsdp", 16}}},
                                        {"fsdp 256 on 16x16", {16, 16, 1}, {{"fsdp", 256}}},
                                        {"fsdp 4096 on 16x16x16", {16, 16, 16}, {{"fsdp", 4096}}},
                                        {"fsdp 256, tensor 4 on 4x16x16", {4, 16, 16}, {{"fsdp", 256}, {"tensor", 4}}}};
  return all;
}

session::JobSpec plain(const Case& c) {
  session::JobSpec spec;
  spec.mesh = c.mesh;
  spec.model.family = models::Family::mlp;
  spec.model.layers = 2;
  spec.model.embed = 8192;
  spec.model.mlp = 32768;
  spec.model.gated_mlp = false;
  spec.model.activation = models::Activation::relu;
  spec.strategies.sequence_parallel = true;
  spec.gradient_dtype = ir::DType::bf16;
  spec.optimizer.kind = ir::Optimizer::sgd;
  return spec;
}

// Busy time over compute at so many tokens a chip.
double ratio(session::JobSpec spec, const topologies::Shape& shape, const topologies::Chip& chip, double tokens) {
  std::int64_t replicas = 1, tensor = 1;
  for (const strategies::RequestedAxis& axis : spec.mesh) (axis.name == "tensor" ? tensor : replicas) *= axis.size;
  spec.sequence_length = std::llround(tokens) * tensor;
  spec.global_batch = replicas;
  spec.microbatch = 1;
  topologies::ClusterRequest request;
  request.chip = chip;
  request.slice_shape = shape;
  DiagnosticSink sink;
  const auto cluster = topologies::build(request, sink);
  TPUSIM_CHECK(cluster.has_value(), "no such slice");
  const PhasePart part = split_by_phase(play(spec, *cluster), *cluster).forward_and_backward();
  return part.all_busy() / part.compute;
}

// Busy time hardly grows with tokens and compute grows in proportion, so the next guess is the last one times its
// ratio; where the part over tensor grows too, bisection in between. 0: communication is longer whatever the batch.
double threshold(const session::JobSpec& spec, const topologies::Shape& shape, const topologies::Chip& chip) {
  double low = 1, high = 16;
  while (ratio(spec, shape, chip, high) > 1) {
    low = high, high *= 4;
    if (high > 1e5) return 0;
  }
  while (high - low > std::max(1.0, 0.001 * low)) {
    const double middle = std::round((low + high) / 2);
    (ratio(spec, shape, chip, middle) > 1 ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::string text(double tokens) {
  return tokens == 0 ? "none" : fmt::format("{:.0f}", tokens);
}

using Effect = std::pair<std::string, std::function<void(topologies::Chip&, const topologies::Chip&)>>;
// What a real chip has and the ideal one has not, one by one.
std::vector<Effect> effects() {
  using C = topologies::Chip;
  return {
      {"matrix unit below peak", [](C& c, const C& r) { c.matrix_efficiency = r.matrix_efficiency; }},
      {"tiles",
       [](C& c, const C& r) {
         c.matrix_tile_m = r.matrix_tile_m, c.matrix_tile_n = r.matrix_tile_n, c.matrix_tile_k = r.matrix_tile_k;
       }},
      {"vector unit", [](C& c, const C& r) { c.vector_flops = r.vector_flops; }},
      {"HBM roofline",
       [](C& c, const C& r) { c.hbm_bandwidth = r.hbm_bandwidth, c.hbm_efficiency = r.hbm_efficiency; }},
      {"kernel floor", [](C& c, const C& r) { c.kernel_floor = r.kernel_floor; }},
      {"hop latency", [](C& c, const C& r) { c.link_latency = r.link_latency; }},
      {"start of a collective", [](C& c, const C& r) { c.collective_overhead = r.collective_overhead; }},
      {"link below rate", [](C& c, const C& r) { c.link_rate = r.link_rate, c.link_efficiency = r.link_efficiency; }},
      {"axes that do not close", [](C& c, const C& r) { c.slices.wrap = r.slices.wrap; }}};
}

struct Step {
  std::string name;
  std::function<void(session::JobSpec&)> change;
};
// From the plain MLP to llama3.1-70b; each step is on top of those before it.
std::vector<Step> towards_llama() {
  const models::ModelConfig llama = models::find_preset("llama3.1-70b")->config;
  return {{"its MLP: gated, 28,672",
           [=](session::JobSpec& s) {
             s.model.mlp = llama.mlp, s.model.gated_mlp = true, s.model.activation = llama.activation;
           }},
          {"its attention, norms and residuals",
           [=](session::JobSpec& s) {
             s.model = llama;
             s.model.vocab = 128;
           }},
          {"its embedding and head, vocab 128,256", [=](session::JobSpec& s) { s.model = llama; }},
          {"f32 gradients", [](session::JobSpec& s) { s.gradient_dtype = ir::DType::f32; }},
          {"full remat", [](session::JobSpec& s) { s.remat = ir::Remat::full; }}};
}

}  // namespace

TEST_CASE("the thresholds on a real v5p and on llama3.1-70b are printed, with what moves them") {
  const topologies::Chip ideal = *topologies::find_chip("ideal-v5p"), real = *topologies::find_chip("tpu-v5p");
  std::string out = "\nTokens a chip at which collectives are busy as long as forward and backward compute\n";
  for (const Case& c : cases()) {
    const session::JobSpec spec = plain(c);
    const double base = threshold(spec, c.shape, ideal), whole = threshold(spec, c.shape, real);
    CHECK(base > 0);
    out += fmt::format("{}\n  MLP 8,192 x 32,768 on the ideal chip      {:>6}\n", c.name, text(base));
    for (const Effect& effect : effects()) {
      topologies::Chip chip = ideal;
      effect.second(chip, real);
      const double with = threshold(spec, c.shape, chip);
      if (std::abs(with - base) > 0.005 * base)
        out +=
            fmt::format("    {:<40}{:>6}  {:+.1f} %\n", effect.first + " alone", text(with), 100 * (with / base - 1));
    }
    out += fmt::format("  the same on a tpu-v5p                     {:>6}\n", text(whole));
    session::JobSpec grown = spec;
    for (const Step& step : towards_llama()) {
      step.change(grown);
      out += fmt::format("    + {:<38}ideal {:>6}, tpu-v5p {:>6}\n", step.name, text(threshold(grown, c.shape, ideal)),
                         text(threshold(grown, c.shape, real)));
    }
  }
  out += "(an effect alone that moves less than 0.5 % is left out; none: communication is longer whatever the batch)\n";
  std::fputs(out.c_str(), stdout);
}
