#include "sim/plan/step_program.hpp"

#include <algorithm>
#include <tuple>

#include "sim/base/checked.hpp"

namespace tpusim::plan {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::parameters:
      return "parameters";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::workspace:
      return "workspace";
  }
  return "?";
}

std::int64_t Schedule::calls() const {
  std::int64_t sum = 0;
  for (const Segment& segment : segments)
    sum = checked_add(
        sum, checked_mul(static_cast<std::int64_t>(segment.body.size()), segment.repeat, "the calls of a step"),
        "the calls of a step");
  return sum;
}

std::int32_t StepProgram::find_template(std::int32_t kind, std::int32_t previous, std::int32_t next) const {
  const auto key = std::make_tuple(kind, previous, next);
  const auto found = std::lower_bound(
      templates.begin(), templates.end(), key,
      [](const Template& t, const auto& wanted) { return std::make_tuple(t.kind_index, t.previous, t.next) < wanted; });
  if (found == templates.end() || std::make_tuple(found->kind_index, found->previous, found->next) != key) return -1;
  return static_cast<std::int32_t>(found - templates.begin());
}

}  // namespace tpusim::plan
