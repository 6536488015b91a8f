// A program on one device, op by op, without sharding, plan or interpreter: what every other run is compared with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/ir/ops.hpp"
#include "sim/numeric/initial.hpp"

namespace tpusim::numeric {

// Values of one program by ValueId.
class ReferenceRun {
 public:
  explicit ReferenceRun(const ir::Program& program);
  // An input (a value without producer; its place does not matter), or any value to be taken as given: its producer is
  // then not run.
  void set(ir::ValueId id, Tensor value);
  // Runs all ops of these phases in order, skipping those whose results are given. InternalError when an operand is not
  // known.
  void run(ir::Phase first, ir::Phase last);
  void run() { run(ir::Phase::forward, ir::Phase::update); }
  bool has(ir::ValueId id) const { return known_[static_cast<std::size_t>(id.index)]; }
  const Tensor& value(ir::ValueId id) const;
  std::int64_t flops() const { return flops_; }  // of matrix products, all runs together

 private:
  const ir::Program& program_;
  std::vector<Tensor> values_;
  std::vector<bool> known_, given_;
  std::int64_t flops_ = 0;
};

// A whole model's training on one device: microbatches accumulate, gradients are clipped by their global norm,
// parameters updated. The arithmetic that a strategy must reproduce.
class ReferenceModel {
 public:
  // `model` is differentiated; it must outlive this.
  ReferenceModel(const ir::Model& model, const ir::OptimizerSettings& optimizer, ir::DType gradient_dtype,
                 ir::DType master_dtype, const InitialSettings& settings);
  // One optimizer step over microbatches 0 .. count - 1 of step `step` (0-based); returns the loss, the sum of the
  // microbatches' shares.
  double step(std::int64_t step, std::int64_t microbatches);
  // The loss alone, parameters unchanged, nothing differentiated.
  double loss(std::int64_t step, std::int64_t microbatches);

  // By parameter_key: whole values, and gradients of the last step, accumulated and not clipped.
  const std::map<std::string, Tensor>& parameters() const { return parameters_; }
  std::map<std::string, Tensor>& parameters() { return parameters_; }
  const std::map<std::string, Tensor>& gradients() const { return gradients_; }
  // Scale that clipping applied in the last step, 1 without.
  double gscale() const { return gscale_; }
  std::int64_t sites() const { return static_cast<std::int64_t>(site_block_.size()); }
  const ir::Program& block(std::int64_t site) const;

  // Every value of one microbatch of the last step, by site: kept only when asked for before the step.
  void keep_values(bool keep) { keep_ = keep; }
  const ReferenceRun& values(std::int64_t microbatch, std::int64_t site) const;

 private:
  struct Slots {
    const ir::Parameter* parameter = nullptr;
    ir::TensorType type;
    std::vector<Tensor> values;
  };
  double microbatch(std::int64_t step, std::int64_t index, bool backward);
  void update(std::int64_t step);
  void accumulate(const std::string& key, const Tensor& gradient);

  const ir::Model& model_;
  ir::OptimizerSettings optimizer_;
  ir::DType gradient_dtype_, master_dtype_;
  InitialSettings settings_;
  std::vector<std::int32_t> site_block_;
  std::map<std::string, Tensor> parameters_, gradients_;
  std::map<std::string, Slots> slots_;
  double gscale_ = 1;
  bool keep_ = false;
  std::vector<std::vector<ReferenceRun>> kept_;  // by microbatch and site
};

}  // namespace tpusim::numeric
