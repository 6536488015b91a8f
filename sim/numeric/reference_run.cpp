#include "sim/numeric/reference_run.hpp"

#include <algorithm>

namespace tpusim::numeric {

ReferenceRun::ReferenceRun(const ir::Program& program)
    : program_(program),
      values_(program.values.size()),
      known_(program.values.size(), false),
      given_(program.values.size(), false) {}

void ReferenceRun::set(ir::ValueId id, Tensor value) {
  const ir::TensorType& type = program_.value(id).type;
  TPUSIM_CHECK(
      value.dtype() == type.dtype && value.shape() == type.shape,
      std::string(program_.value(id).label) + " is " + ir::to_string(type) + ", not " + ir::to_string(value.type()));
  const std::size_t at = static_cast<std::size_t>(id.index);
  values_[at] = std::move(value);
  known_[at] = given_[at] = true;
}

void ReferenceRun::run(ir::Phase first, ir::Phase last) {
  for (const ir::Op& op : program_.ops) {
    if (op.phase < first || op.phase > last) continue;
    if (std::all_of(op.results.begin(), op.results.end(),
                    [&](ir::ValueId id) { return given_[static_cast<std::size_t>(id.index)]; }))
      continue;
    std::vector<const Tensor*> operands;
    for (ir::ValueId id : op.operands) operands.push_back(&value(id));
    std::vector<ir::TensorType> types;
    for (ir::ValueId id : op.results) types.push_back(program_.value(id).type);
    Evaluation evaluation = evaluate(op.kind, operands, types, {});
    flops_ += evaluation.flops;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(op.results[i].index);
      if (given_[at]) continue;
      values_[at] = std::move(evaluation.results[i]);
      known_[at] = true;
    }
  }
}

const Tensor& ReferenceRun::value(ir::ValueId id) const {
  TPUSIM_CHECK(has(id),
               "the value " + std::string(program_.value(id).label) + " of " + program_.name + " is not known");
  return values_[static_cast<std::size_t>(id.index)];
}

}  // namespace tpusim::numeric
