// Sites and stages: one site for each block at each depth of the model.
#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {

void lay_out_sites(Lowering& l) {
  const ScheduleSpec& schedule = l.in.schedule;
  StepProgram& out = l.out;
  out.mesh = l.in.mesh;
  out.stages = static_cast<std::int32_t>(schedule.stages.size());
  out.microbatches = schedule.microbatches;
  TPUSIM_CHECK(out.stages >= 1 && schedule.first_site.size() == schedule.stages.size() + 1,
               "a schedule needs its first sites by stage, plus one");
  const ir::MeshAxes pipeline = out.mesh.find("pipeline");
  TPUSIM_CHECK(pipeline.size() <= 1, "the pipeline axis is not split");
  if (!pipeline.empty()) out.pipeline_axis = pipeline[0];
  TPUSIM_CHECK(out.stages == (pipeline.empty() ? 1 : out.mesh.size(pipeline)),
               "as many stages as the pipeline axis has places");

  l.blocks.resize(l.in.model.blocks.size());
  l.sites_of_block.resize(l.in.model.blocks.size());
  for (const ir::BlockUse& use : l.in.model.uses)
    for (std::int64_t i = 0; i < use.count; ++i) {
      l.sites_of_block[static_cast<std::size_t>(use.block)].push_back(static_cast<std::int32_t>(out.sites.size()));
      out.sites.push_back({use.block, 0});
    }
  TPUSIM_CHECK(
      schedule.first_site.front() == 0 && schedule.first_site.back() == static_cast<std::int64_t>(out.sites.size()),
      "the stages cover all sites");
  for (std::int32_t s = 0; s < out.stages; ++s) {
    const std::int64_t first = schedule.first_site[static_cast<std::size_t>(s)],
                       end = schedule.first_site[static_cast<std::size_t>(s) + 1];
    TPUSIM_CHECK(first < end, "every stage has a site");
    for (std::int64_t i = first; i < end; ++i) out.sites[static_cast<std::size_t>(i)].stage = s;
  }

  out.resources = static_cast<std::int32_t>(l.in.fabric.axes.size());
  for (const fabric::PhysicalAxis& axis : l.in.fabric.axes) out.resource_names.push_back(axis.name);
  for (std::int32_t s = 0; s + 1 < out.stages; ++s) {
    out.resource_names.push_back("stage " + std::to_string(s) + " to " + std::to_string(s + 1));
    out.resource_names.push_back("stage " + std::to_string(s + 1) + " to " + std::to_string(s));
  }
  if (out.stages > 1) out.resource_names.push_back("sums over stages");
  out.resources = static_cast<std::int32_t>(out.resource_names.size());
}

}  // namespace tpusim::plan::passes
