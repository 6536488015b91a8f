// What the collectives of a plan move, against the literature. Nothing in the code states these volumes: they follow
// from the tables.
#include <doctest/doctest.h>

#include <map>

#include "tests/analytic/plan_support.hpp"

using namespace tpusim;
using namespace tpusim::testing;

namespace {

session::JobSpec transformer(const std::vector<strategies::RequestedAxis>& mesh) {
  session::JobSpec s = small_transformer(3, mesh);
  s.sequence_length = 64;
  s.global_batch = 32;
  s.microbatch = 4;
  return s;
}

struct Volumes {
  std::map<std::pair<std::string, std::string>, double> bytes;  // by (kind, axes): sent by one device in one step
  std::map<std::pair<std::string, ir::Phase>, double>
      layer_calls;  // of the layer's own program: for each layer and microbatch
};

Volumes volumes(const Played& p, std::int64_t layers) {
  Volumes out;
  const plan::StepProgram& program = p.plan.program;
  for (std::size_t i = 0; i < program.collectives.size(); ++i) {
    const plan::Collective& c = program.collectives[i];
    const std::string kind(plan::name_of(program.plans[static_cast<std::size_t>(c.plan)].kind));
    out.bytes[{kind, program.mesh.to_string(c.mesh_axes)}] += p.timing.transfers[i].bytes;
    const ir::Program& local = program.programs[static_cast<std::size_t>(c.program)].local;
    if (local.name != "layer" || local.op(c.ops[0]).phase == ir::Phase::update || p.timing.transfers[i].count == 0)
      continue;
    out.layer_calls[{kind, local.op(c.ops[0]).phase}] +=
        p.timing.transfers[i].count / static_cast<double>(layers * program.microbatches);
  }
  return out;
}

using Calls = std::map<std::pair<std::string, ir::Phase>, double>;

Calls tensor_calls(bool sequence_parallel, ir::Remat remat, bool parallel_block) {
  session::JobSpec s = transformer({{"tensor", 4}});
  s.strategies.sequence_parallel = sequence_parallel;
  s.remat = remat;
  s.model.parallel_block = parallel_block;
  return volumes(play(s, ideal_slice({4, 1, 1})), s.model.layers).layer_calls;
}

}  // namespace

TEST_CASE("data parallelism all-reduces each gradient once a step: 2 (n-1)/n of their bytes from each device") {
  // P. Patarasuk, X. Yuan, JPDC 2009: a ring's reduce-scatter and all-gather, (n-1)/n each. Gradients are f32; every
  // size divides by n.
  for (std::int64_t n : {2, 4, 8}) {
    session::JobSpec s = transformer({{"data", n}});
    const Played p = play(s, ideal_slice({n, 1, 1}));
    const Volumes v = volumes(p, s.model.layers);
    const double gradients = static_cast<double>(models::parameter_count(s.model)) * 4;
    CHECK(v.bytes ==
          std::map<std::pair<std::string, std::string>, double>{
              {{"all-reduce", "data"}, 2 * static_cast<double>(n - 1) / static_cast<double>(n) * gradients}});
  }
}

TEST_CASE("gradients that are accumulated over microbatches are reduced once, not once for each") {
  session::JobSpec s = transformer({{"data", 4}});
  s.microbatch = 2;  // 32 / 4 / 2 = 4 microbatches
  const Played p = play(s, ideal_slice({4, 1, 1}));
  CHECK(p.plan.program.microbatches == 4);
  CHECK(volumes(p, s.model.layers).bytes[{"all-reduce", "data"}] ==
        2 * 0.75 * static_cast<double>(models::parameter_count(s.model)) * 4);
}

TEST_CASE("ZeRO-3 gathers parameters forward and backward and reduce-scatters gradients, in every microbatch") {
  // S. Rajbhandari et al., SC 2020, section 5.3: (n-1)/n of the parameters twice and of the gradients once. Parameters
  // travel as bf16 (2 bytes), gradients as f32 (4). The embedding's table is not needed backward: it is gathered once.
  for (std::int64_t microbatch : {4, 2}) {
    const std::int64_t n = 8, microbatches = 32 / n / microbatch;
    session::JobSpec s = transformer({{"fsdp", n}});
    s.microbatch = microbatch;
    const Volumes v = volumes(play(s, ideal_slice({n, 1, 1})), s.model.layers);
    const double parameters = static_cast<double>(models::parameter_count(s.model)),
                 table = static_cast<double>(s.model.vocab * s.model.embed);
    const double sent = static_cast<double>(n - 1) / static_cast<double>(n) * static_cast<double>(microbatches);
    CHECK(v.bytes == std::map<std::pair<std::string, std::string>, double>{
                         {{"all-gather", "fsdp"}, sent * 2 * (2 * parameters - table)},
                         {{"reduce-scatter", "fsdp"}, sent * 4 * parameters}});
  }
}

TEST_CASE("ZeRO-1 and ZeRO-2 move what data parallelism moves, split into a reduce-scatter and a gather") {
  // Section 5.2 there: gradients reduce-scattered, then the new parameters gathered: (n-1)/n each (parameters are f32
  // here, as stored).
  for (int stage : {1, 2}) {
    session::JobSpec s = transformer({{"fsdp", 8}});
    s.strategies.zero_stage = stage;
    const Volumes v = volumes(play(s, ideal_slice({8, 1, 1})), s.model.layers);
    const double bytes = 7.0 / 8 * 4 * static_cast<double>(models::parameter_count(s.model));
    CHECK(v.bytes == std::map<std::pair<std::string, std::string>, double>{{{"all-gather", "fsdp"}, bytes},
                                                                           {{"reduce-scatter", "fsdp"}, bytes}});
  }
}

TEST_CASE("tensor parallelism has 4 all-reduces for each layer and microbatch, 2 forward and 2 backward") {
  // M. Shoeybi et al., "Megatron-LM", 2019, section 3: one after attention, one after the MLP, and their conjugates
  // backward.
  CHECK(tensor_calls(false, ir::Remat::none, false) ==
        Calls{{{"all-reduce", ir::Phase::forward}, 2}, {{"all-reduce", ir::Phase::backward}, 2}});
}

TEST_CASE("attention and MLP side by side need half as many") {
  // A. Chowdhery et al., "PaLM", 2022, section 2: one sum of both branches, forward and backward.
  CHECK(tensor_calls(false, ir::Remat::none, true) ==
        Calls{{{"all-reduce", ir::Phase::forward}, 1}, {{"all-reduce", ir::Phase::backward}, 1}});
}

TEST_CASE(
    "full remat adds those of the forward pass that a gradient needs: the attention's, not the last of the layer") {
  // The MLP's input follows from the attention's sum, so that is computed again; no gradient reads the layer's own
  // output.
  CHECK(tensor_calls(false, ir::Remat::full, false) == Calls{{{"all-reduce", ir::Phase::forward}, 2},
                                                             {{"all-reduce", ir::Phase::recompute}, 1},
                                                             {{"all-reduce", ir::Phase::backward}, 2}});
  // Side by side there is one sum, and it is the layer's own output: nothing is added.
  CHECK(tensor_calls(false, ir::Remat::full, true) == tensor_calls(false, ir::Remat::none, true));
}

TEST_CASE("sequence parallelism has 4 gathers and 4 reduce-scatters instead, and 2 more gathers backward") {
  // V. Korthikanti et al., MLSys 2023, section 4.2.2: an all-reduce becomes a reduce-scatter and a gather; what was
  // gathered is not kept, so each of the two blocks gathers its input again for its weights' gradients.
  CHECK(tensor_calls(true, ir::Remat::none, false) == Calls{{{"all-gather", ir::Phase::forward}, 2},
                                                            {{"reduce-scatter", ir::Phase::forward}, 2},
                                                            {{"all-gather", ir::Phase::backward}, 4},
                                                            {{"reduce-scatter", ir::Phase::backward}, 2}});
}
