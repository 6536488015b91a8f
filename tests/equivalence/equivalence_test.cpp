// A sharded run equals the one-device run, and what is executed equals what is charged.
//
// Cases: a pairwise cover of meshes x ZeRO stage x sequence parallelism x remat x schedule x accumulation x tied
// embeddings x clipping x kinds of heads x attention x model style x prefetch x overlap. Each: losses and all
// parameters after 3 AdamW steps within 1e-12 of one device in f64 (per tensor: largest difference <= 1e-12 x max(1,
// largest magnitude)), under two shuffles and in the timing's order; bytes per collective kind, executed FLOPs and peak
// live bytes counted = charged under each.
#include <doctest/doctest.h>

#include <cstdlib>

#include "cases_support.hpp"
#include "sim/session/verification.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;
using namespace tpusim::tests;

namespace {

constexpr std::size_t kCases = 320;
// Sanitizers want every path once, not every pair: an eighth of the cases, which still meets every value of every
// option.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStride = 8;
#else
constexpr std::size_t kStride = 1;
#endif

void prove(const session::JobSpec& spec, std::uint64_t seed, const session::Proof& proof) {
  const topologies::Chip chip = *topologies::find_chip("tpu-v4");
  const result::Verification v = session::verify_spec(spec, fabric_for(spec, seed), chip, seed, proof);
  for (const result::Check& check : v.checks) {
    INFO(check.name, ": ", check.detail);
    CHECK(check.passed);
  }
  CHECK(v.checks.size() >= 3);
}

// Cases are split over test cases, so that a run on two cores can share them.
void prove_quarter(std::size_t quarter) {
  const std::vector<Case> cases = pairwise_cover(2026, kCases);
  REQUIRE(cases.size() >= 300);
  session::Proof proof;
  proof.gradient = false;
  proof.shuffles = 2;
  const char* only = std::getenv("TPUSIM_CASE");  // one case by number, to look into it
  for (std::size_t i = quarter; i < cases.size(); i += 4 * kStride) {
    if (only != nullptr && std::to_string(i) != only) continue;
    INFO("case ", i, ": ", to_string(cases[i]));
    proof.values = i % 3 == 0;
    REQUIRE_NOTHROW(prove(to_spec(cases[i]), i + 1, proof));
  }
}

}  // namespace

TEST_CASE("sharded runs equal one device and their tallies what is charged, first quarter of the cover") {
  prove_quarter(0);
}
TEST_CASE("sharded runs equal one device and their tallies what is charged, second quarter of the cover") {
  prove_quarter(1);
}
TEST_CASE("sharded runs equal one device and their tallies what is charged, third quarter of the cover") {
  prove_quarter(2);
}
TEST_CASE("sharded runs equal one device and their tallies what is charged, last quarter of the cover") {
  prove_quarter(3);
}

TEST_CASE("with sgd, integer data and steps that are powers of two, every mesh gives one device's parameters exactly") {
  // Parameters, features and labels are small integers, the loss is a sum of squares over a power of two and the
  // learning rate a power of two: every intermediate is a multiple of a fixed power of two far inside 53 bits, so no
  // order of summation can change a bit.
  for (std::size_t i = 0; i < meshes().size(); i += kStride) {
    const auto& m = meshes()[i];
    session::JobSpec spec;
    spec.mesh = {{"pipeline", m[0]}, {"data", m[1]}, {"fsdp", m[2]}, {"tensor", m[3]}};
    spec.strategies.zero_stage = static_cast<int>(i % 3) + 1;
    spec.model.family = models::Family::mlp;
    spec.model.layers = std::max<std::int64_t>(m[0], 1);
    spec.model.embed = 4;
    spec.model.mlp = 8;
    spec.model.gated_mlp = false;
    spec.model.activation = models::Activation::relu;
    spec.sequence_length = 1;
    spec.microbatch = 1;
    spec.global_batch = m[1] * m[2] * std::max<std::int64_t>(m[0], 1);
    spec.compute_dtype = spec.parameter_dtype = spec.gradient_dtype = spec.master_dtype = ir::DType::f64;
    spec.optimizer.kind = ir::Optimizer::sgd;
    spec.optimizer.learning_rate = 0x1p-10;
    spec.optimizer.clip_norm = 0;
    session::Proof proof;
    proof.gradient = proof.values = false;
    proof.integers = true;
    proof.tolerance = 0;
    proof.steps = 1;
    INFO("pipeline ", m[0], " data ", m[1], " fsdp ", m[2], " tensor ", m[3]);
    prove(spec, i + 1, proof);
  }
}

TEST_CASE("fsdp that divides neither embed nor mlp nor vocab pads, alone and under tensor, at every ZeRO stage") {
  for (const int stage : {1, 2, 3})
    for (const std::int64_t tensor : {1, 2}) {
      Case c{};
      session::JobSpec spec = to_spec(c);
      spec.mesh = {{"fsdp", 4}, {"tensor", tensor}};
      spec.strategies.zero_stage = stage;
      spec.model.embed = 6;   // shared by 2 of the 4
      spec.model.mlp = 5;     // padded to 6, or to 8 with tensor
      spec.model.vocab = 13;  // padded to 14, or to 16
      spec.global_batch = 4 * spec.microbatch;
      INFO("zero_stage ", stage, " tensor ", tensor);
      prove(spec, 1, session::Proof{});
    }
}

TEST_CASE("a run that is not finite on one device either proves nothing, and verification does not pass") {
  session::JobSpec spec = to_spec({});
  spec.mesh = {{"data", 2}};
  spec.global_batch = 2 * spec.microbatch;
  spec.optimizer.kind = ir::Optimizer::sgd;
  spec.optimizer.learning_rate = 1e300;
  session::Proof proof;
  proof.gradient = proof.values = false;
  const topologies::Chip chip = *topologies::find_chip("tpu-v4");
  const result::Verification v = session::verify_spec(spec, fabric_for(spec, 1), chip, 1, proof);
  CHECK_FALSE(v.passed);
  INFO(v.culprit);
  CHECK(v.culprit.find("not finite on one device either") != std::string::npos);
}
