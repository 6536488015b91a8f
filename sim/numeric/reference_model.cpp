#include <cmath>

#include "sim/numeric/reference_run.hpp"

namespace tpusim::numeric {

ReferenceModel::ReferenceModel(const ir::Model& model, const ir::OptimizerSettings& optimizer, ir::DType gradient_dtype,
                               ir::DType master_dtype, const InitialSettings& settings)
    : model_(model),
      optimizer_(optimizer),
      gradient_dtype_(gradient_dtype),
      master_dtype_(master_dtype),
      settings_(settings) {
  for (const ir::BlockUse& use : model.uses)
    for (std::int64_t i = 0; i < use.count; ++i) site_block_.push_back(use.block);
  for (std::int64_t site = 0; site < sites(); ++site)
    for (const ir::Parameter& parameter : block(site).parameters) {
      const std::string key = parameter_key(parameter, site);
      if (parameters_.count(key) > 0) continue;
      const ir::TensorType& type = block(site).value(parameter.value).type;
      const Tensor& first =
          parameters_.emplace(key, initial_parameter(type, parameter.init, key, settings)).first->second;
      if (!parameter.gradient.valid()) continue;
      Slots& slots = slots_[key];
      slots.parameter = &parameter;
      slots.type = type;
      for (const ir::StateSlot& slot : ir::optimizer_slots(optimizer, parameter, type, master_dtype))
        slots.values.push_back(slot.label == "master" ? Tensor(slot.type, first.to_doubles()) : Tensor(slot.type));
    }
}

const ir::Program& ReferenceModel::block(std::int64_t site) const {
  return model_.blocks[static_cast<std::size_t>(site_block_.at(static_cast<std::size_t>(site)))];
}

const ReferenceRun& ReferenceModel::values(std::int64_t microbatch, std::int64_t site) const {
  return kept_.at(static_cast<std::size_t>(microbatch)).at(static_cast<std::size_t>(site));
}

void ReferenceModel::accumulate(const std::string& key, const Tensor& gradient) {
  const auto known = gradients_.find(key);
  if (known == gradients_.end()) {
    gradients_.emplace(key, gradient);
    return;
  }
  Evaluation sum = evaluate(ir::Map{ir::Elementwise::add, 0}, {&known->second, &gradient}, {gradient.type()}, {});
  known->second = std::move(sum.results[0]);
}

double ReferenceModel::microbatch(std::int64_t step, std::int64_t index, bool backward) {
  std::vector<ReferenceRun> runs;
  runs.reserve(site_block_.size());
  double loss = 0;
  for (std::int64_t site = 0; site < sites(); ++site) {
    const ir::Program& program = block(site);
    ReferenceRun& run = runs.emplace_back(program);
    for (const ir::Parameter& parameter : program.parameters)
      run.set(parameter.value, parameters_.at(parameter_key(parameter, site)));
    for (const ir::DataInput& data : program.data) {
      const ir::TensorType& type = program.value(data.value).type;
      const bool ids = type.dtype == ir::DType::i32 && data.kind != ir::DataKind::positions;
      run.set(data.value,
              initial_batch(type, data.kind, ids ? id_bound(program, data.value) : 0, step, index, settings_));
    }
    if (site > 0 && program.x_in.valid())
      run.set(program.x_in, runs[static_cast<std::size_t>(site - 1)].value(block(site - 1).x_out));
    run.run(ir::Phase::forward, ir::Phase::forward);
    if (program.loss.valid()) loss += run.value(program.loss).at(0);
  }
  for (std::int64_t site = sites(); backward && site-- > 0;) {
    const ir::Program& program = block(site);
    ReferenceRun& run = runs[static_cast<std::size_t>(site)];
    if (site + 1 < sites() && program.dx_out.valid())
      run.set(program.dx_out, runs[static_cast<std::size_t>(site + 1)].value(block(site + 1).dx_in));
    run.run(ir::Phase::recompute, ir::Phase::backward);
    for (const ir::Parameter& parameter : program.parameters)
      if (parameter.gradient.valid()) accumulate(parameter_key(parameter, site), run.value(parameter.gradient));
  }
  if (keep_) kept_.push_back(std::move(runs));
  return loss;
}

double ReferenceModel::loss(std::int64_t step, std::int64_t microbatches) {
  double sum = 0;
  for (std::int64_t i = 0; i < microbatches; ++i) sum += microbatch(step, i, false);
  return sum;
}

double ReferenceModel::step(std::int64_t step, std::int64_t microbatches) {
  gradients_.clear();
  kept_.clear();
  double sum = 0;
  for (std::int64_t i = 0; i < microbatches; ++i) sum += microbatch(step, i, true);
  update(step);
  return sum;
}

// Clipping by global norm (Pascanu et al. 2013) as torch.nn.utils.clip_grad_norm_ does it: scale = min(1, clip / (norm
// + 1e-6)), each distinct parameter counted once.
void ReferenceModel::update(std::int64_t step) {
  gscale_ = 1;
  if (optimizer_.clip_norm > 0) {
    double square = 0;
    for (const auto& [key, gradient] : gradients_)
      for (std::int64_t i = 0; i < gradient.size(); ++i) square += gradient.at(i) * gradient.at(i);
    gscale_ = std::min(1.0, optimizer_.clip_norm / (std::sqrt(square) + 1e-6));
  }
  for (auto& [key, slots] : slots_) {
    const ir::UpdateProgram u =
        ir::update_program(optimizer_, *slots.parameter, slots.type, gradient_dtype_, master_dtype_);
    ReferenceRun run(u.program);
    run.set(u.parameter, parameters_.at(key));
    run.set(u.gradient, gradients_.at(key));
    run.set(u.gscale, Tensor(u.program.value(u.gscale).type, {gscale_}));
    run.set(u.step, Tensor(u.program.value(u.step).type, {static_cast<double>(step + 1)}));
    for (std::size_t i = 0; i < u.slots.size(); ++i) run.set(u.slots[i], slots.values[i]);
    run.run();
    parameters_.at(key) = run.value(u.new_parameter).relabelled(slots.type);
    for (std::size_t i = 0; i < u.new_slots.size(); ++i) slots.values[i] = run.value(u.new_slots[i]);
  }
}

}  // namespace tpusim::numeric
