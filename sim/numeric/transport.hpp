// Collectives carried out on real numbers by the steps of their plan.
//
// Each member of a replica group holds one slot per member, a slot being that member's shard, flattened and padded to
// the plan's shard_elements (the tensors of a bucket one after the other). A plan's phases and steps become transfers
// between slots: within a step all sources are read before any target is written, and the transfers are taken in a
// seeded shuffled order; what arrives at one target is applied in plan order, so sums do not depend on the seed.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/numeric/tensor.hpp"
#include "sim/plan/step_program.hpp"

namespace tpusim::numeric {

// The transfers of a plan, resolved once.
class Transport {
 public:
  explicit Transport(const plan::CollectivePlan& plan, plan::LineSteps steps_of = &plan::line_steps);

  // operands[member][tensor] -> results[member][tensor] of `types[tensor]`, for the ops (one a tensor) that the
  // collective carries out. Returns the bytes that the members sent, all together: entries moved times the size of
  // their dtype. InternalError when an op is not of the plan's kind or the tensors do not fit the plan.
  std::int64_t run(const std::vector<ir::OpKind>& ops, const std::vector<std::vector<const Tensor*>>& operands,
                   const std::vector<ir::TensorType>& types, std::uint64_t seed,
                   std::vector<std::vector<Tensor>>& results) const;

 private:
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  struct Transfer {
    std::int32_t from = 0, to = 0;
    std::int32_t target = 0;  // transfers of a step with equal target write the same entries: their order is kept
    std::vector<Range> ranges;
    bool add = false;
    bool free = false;  // not counted: the switch makes the copy
  };
  using Step = std::vector<Transfer>;
  void add_step(std::size_t phase, std::size_t number, std::int64_t part_begin, const plan::LineStep& moves,
                Step& step) const;
  template <class T>
  std::int64_t move(std::vector<std::vector<T>>& held, bool bf16, std::uint64_t seed) const;
  template <class T>
  std::int64_t run_as(const std::vector<ir::OpKind>& ops, const std::vector<std::vector<const Tensor*>>& operands,
                      const std::vector<ir::TensorType>& types, std::uint64_t seed,
                      std::vector<std::vector<Tensor>>& results) const;

  plan::CollectivePlan plan_;
  std::vector<Step> steps_;
};

}  // namespace tpusim::numeric
