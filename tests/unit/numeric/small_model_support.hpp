// A small model in f64 and everything that lower() wants beside it: for tests that run a whole StepProgram.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/numeric/initial.hpp"
#include "sim/plan/lower.hpp"

namespace tpusim::numeric::testing {

struct Asked {
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // pipeline, data, fsdp, tensor; major to minor
  int zero = 3;
  bool tied = false;
  bool gpipe = false;
  std::int64_t layers = 2, microbatches = 1;
  double clip = 0;
  ir::Optimizer optimizer = ir::Optimizer::adamw;
  ir::DType dtype = ir::DType::f64;  // of activations and parameters
  bool squared = false;              // the loss is the sum of the squared target logits: exact on integers
};

// embedding: x = table[tokens].  layer: x + relu(x w1) w2.  head: cross-entropy of x . table^T (or its own table)
// against targets, written as log-sum-exp minus the picked logit, averaged over the global batch (or, on request, the
// squared picked logits).
struct SmallModel {
  explicit SmallModel(const Asked& asked);
  ir::Model model;
  spmd::Mesh mesh;
  spmd::ShardingTables tables;
  spmd::Placement placement;
  fabric::Fabric fabric;
  plan::ScheduleSpec schedule;
  plan::LowerOptions options;
  plan::StepProgram lower() const { return plan::lower({model, tables, mesh, placement, fabric, schedule, options}); }
};

// Whole parameters of a backend by parameter_key, as its devices hold them; `replica_difference` is raised to the
// largest found.
std::map<std::string, Tensor> whole_parameters(const plan::StepProgram& program, const NumericBackend& backend,
                                               double& replica_difference);
// Sum over the microbatches of the loss.
double whole_loss(const plan::StepProgram& program, const NumericBackend& backend);

}  // namespace tpusim::numeric::testing
