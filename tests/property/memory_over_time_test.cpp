// The memory of the timeline against the plan's own account of it.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/presets.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;

TEST_CASE("memory over time never passes the plan's peak, reaches it where nothing overlaps, and ends at its lowest") {
  using Mesh = std::vector<strategies::RequestedAxis>;
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip("tpu-v5p");
  request.slice_shape = {4, 4, 1};
  DiagnosticSink sink;
  const topologies::Cluster machine = *topologies::build(request, sink);
  const Mesh meshes[] = {{{"data", 16}}, {{"fsdp", 16}}, {{"fsdp", 4}, {"tensor", 4}}, {{"pipeline", 4}, {"fsdp", 4}}};
  for (const Mesh& mesh : meshes)
    for (ir::Remat remat : {ir::Remat::none, ir::Remat::full}) {
      session::JobSpec spec;
      spec.model = models::find_preset("llama2-7b")->config;
      spec.model.layers = 4;
      spec.sequence_length = 2048;
      spec.mesh = mesh;
      spec.remat = remat;
      spec.global_batch = 64;
      spec.microbatch = 1;
      const session::Planned planned = session::make_plan(spec, machine.fabric);
      REQUIRE(planned.verdict);
      timing::TimingOptions options;
      options.timeline = true;
      const result::Timeline timeline =
          timing::time_step(planned.program, machine.chip, machine.fabric, options).timeline;
      REQUIRE(timeline.memory_class >= 0);
      REQUIRE(timeline.memory.size() > 10);
      const std::int64_t peak = planned.program.memory[static_cast<std::size_t>(timeline.memory_class)].peak_bytes;
      for (const plan::MemorySummary& stage : planned.program.memory) CHECK(stage.peak_bytes <= peak);
      std::int64_t highest = 0, lowest = peak;
      for (const result::MemorySample& sample : timeline.memory) {
        highest = std::max(highest, sample.bytes);
        lowest = std::min(lowest, sample.bytes);
      }
      CHECK(timeline.memory.back().bytes == lowest);
      CHECK(lowest > 0);
      CHECK(highest <= peak);
      // A buffer that a gather fills is planned where the gather is issued and is there when it starts, which links
      // that are still busy put off: then not all that the plan counts together is ever there together.
      if (mesh.size() == 1 && mesh.front().name == "data") CHECK(highest == peak);
      CHECK(2 * highest > peak);
    }
}
