#include "sim/plan/lower.hpp"

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan {

StepProgram lower(const LowerInput& input) {
  TPUSIM_CHECK(input.options.prefetch == 0 || input.options.prefetch == 1, "prefetch is 0 or 1 blocks");
  passes::Lowering l(input);
  passes::lay_out_sites(l);
  passes::partition_blocks(l);
  passes::add_clipping(l);
  passes::make_buffers(l);
  passes::make_nodes(l);
  passes::make_schedules(l);
  passes::summarize_memory(l);
  if (input.options.verify) {
    const std::vector<std::string> broken = verify(l.out);
    TPUSIM_CHECK(broken.empty(), broken.front());
  }
  return std::move(l.out);
}

}  // namespace tpusim::plan
