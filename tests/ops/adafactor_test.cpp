// Adafactor is no op of its own: its composition, evaluated by the kernels.
#include <cmath>

#include "ops_support.hpp"
#include "sim/numeric/reference_run.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {
struct Result {
  Tensor parameter;
  std::vector<Tensor> slots;
};
Result adafactor(const ir::Parameter& parameter, const Tensor& p, const Tensor& g, double step,
                 std::vector<Tensor> slots) {
  ir::OptimizerSettings settings;
  settings.kind = ir::Optimizer::adafactor;
  settings.eps = 1e-30;
  settings.learning_rate = 0.5;
  const ir::UpdateProgram u = ir::update_program(settings, parameter, p.type(), ir::DType::f64, ir::DType::f64);
  numeric::ReferenceRun run(u.program);
  run.set(u.parameter, p);
  run.set(u.gradient, g);
  run.set(u.gscale, tensor({}, {1}));
  run.set(u.step, tensor({}, {step}));
  for (std::size_t i = 0; i < slots.size(); ++i) run.set(u.slots[i], slots[i]);
  run.run();
  Result result{run.value(u.new_parameter), {}};
  for (ir::ValueId slot : u.new_slots) result.slots.push_back(run.value(slot));
  return result;
}
}  // namespace

TEST_CASE("adafactor's factored second moment is that of rows times columns") {
  ir::Parameter parameter;
  parameter.input_dims = {kEmbed};
  parameter.output_dims = {kMlp};
  const ir::Shape shape = {dim(kEmbed, 2), dim(kMlp, 2)};
  const Tensor g = tensor(shape, {1, 2, 3, 4});
  const Result r = adafactor(parameter, tensor(shape, {0, 0, 0, 0}), g, 1,
                             {tensor({dim(kEmbed, 2)}, {0, 0}), tensor({dim(kMlp, 2)}, {0, 0})});
  // Step 1: 1 - b2 = 1, so the moments are the means of g^2 themselves: rows (1+4)/2, (9+16)/2; columns (1+9)/2,
  // (4+16)/2.
  check_close(r.slots[0], {2.5, 12.5}, 1e-14);
  check_close(r.slots[1], {5, 10}, 1e-14);
  // u = g / sqrt(row column / mean row), mean row 7.5; v = {5/3, 10/3, 25/3, 50/3}.
  const double u[4] = {1 / std::sqrt(5.0 / 3), 2 / std::sqrt(10.0 / 3), 3 / std::sqrt(25.0 / 3),
                       4 / std::sqrt(50.0 / 3)};
  double square = 0;
  for (double x : u) square += x * x / 4;
  const double clip = std::min(1.0, 1 / std::sqrt(square));  // RMS(u) at most 1
  check_close(r.parameter, {-0.5 * clip * u[0], -0.5 * clip * u[1], -0.5 * clip * u[2], -0.5 * clip * u[3]}, 1e-14);
}

TEST_CASE("adafactor's later steps average with weight t^-0.8, and a vector keeps one moment") {
  ir::Parameter parameter;
  const ir::Shape shape = {dim(kEmbed, 2)};
  const Result r = adafactor(parameter, tensor(shape, {1, 1}), tensor(shape, {2, 4}), 32, {tensor(shape, {4, 0})});
  const double w = 1.0 / 16;  // 32^-0.8 = 2^-4
  check_close(r.slots[0], {4 + w * (4 - 4), w * 16}, 1e-14);
  // u = {2 / 2, 4 / 1}; RMS = sqrt(17/2), above 1.
  const double clip = 1 / std::sqrt(8.5);
  check_close(r.parameter, {1 - 0.5 * clip, 1 - 0.5 * clip * 4}, 1e-14);
}
