// How much of a step is played does not depend on how many microbatches it has: the rest is added. Counted, not timed.
#include <doctest/doctest.h>

#include "models/presets.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/timing_backend.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;

namespace {

// Of the second step, the first being the one that fills the table of outcomes.
run::CallCounts second_step(session::JobSpec spec, std::int64_t microbatches, const topologies::Cluster& machine) {
  std::int64_t replicas = 1;
  for (const strategies::RequestedAxis& axis : spec.mesh)
    if (axis.name == "data" || axis.name == "fsdp") replicas *= axis.size;
  spec.global_batch = replicas * microbatches;
  spec.microbatch = 1;
  const session::Planned planned = session::make_plan(spec, machine.fabric);
  REQUIRE_MESSAGE(planned.verdict, planned.verdict.reason);
  const timing::Durations durations = timing::durations(planned.program, machine.chip, machine.fabric);
  timing::TimingBackend backend(durations, static_cast<std::size_t>(planned.program.stages), {});
  run::Interpreter<timing::TimingBackend> interpreter(planned.program, run::Folding::per_stage, backend);
  interpreter.run(1);
  const run::CallCounts before = interpreter.counts();
  interpreter.run(2);
  return {interpreter.counts().played - before.played, interpreter.counts().replayed - before.replayed,
          interpreter.counts().added - before.added};
}

topologies::Cluster v5p_4x4() {
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip("tpu-v5p");
  request.slice_shape = {4, 4, 1};
  DiagnosticSink sink;
  return *topologies::build(request, sink);
}

}  // namespace

TEST_CASE("a million microbatches are played in as many calls as a thousand, whatever is sharded how") {
  using Mesh = std::vector<strategies::RequestedAxis>;
  const topologies::Cluster machine = v5p_4x4();
  const Mesh meshes[] = {{{"data", 16}},
                         {{"fsdp", 16}},
                         {{"data", 4}, {"fsdp", 4}},
                         {{"fsdp", 4}, {"tensor", 4}},
                         {{"pipeline", 4}, {"fsdp", 4}},
                         {{"pipeline", 2}, {"data", 2}, {"fsdp", 2}, {"tensor", 2}}};
  for (const Mesh& mesh : meshes)
    for (int zero : {1, 2, 3})
      for (bool clip : {false, true}) {
        session::JobSpec spec;
        spec.model = models::find_preset("llama2-7b")->config;
        spec.sequence_length = 2048;
        spec.mesh = mesh;
        spec.strategies.zero_stage = zero;
        spec.optimizer.clip_norm = clip ? 1 : 0;
        std::string name;
        for (const strategies::RequestedAxis& axis : mesh) name += std::string(axis.name) + std::to_string(axis.size);
        CAPTURE(name);
        CAPTURE(zero);
        CAPTURE(clip);
        const run::CallCounts few = second_step(spec, 1000, machine), many = second_step(spec, 1000000, machine);
        CHECK(few.played + few.replayed == many.played + many.replayed);
        CHECK(many.added > 900 * few.added);
        CHECK(few.added > 0);
      }
}
