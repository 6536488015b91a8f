#include "sim/numeric/reference_run.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/random.hpp"
#include "tests/unit/numeric/small_model_support.hpp"

using namespace tpusim;
using namespace tpusim::numeric;
using tpusim::numeric::testing::SmallModel;

namespace {

const ir::DimName kEmbed{ir::Axis::embed, 0};
const ir::TensorType kRow{ir::DType::f64, {{kEmbed, 2, 2}}, ir::Place::none};

// y = x * x in forward, dx = 2 x dy in backward.
struct Square {
  ir::Program program;
  ir::ValueId x, y, dy, dx;
  Square() {
    ir::Builder b(program);
    x = b.input(kRow, "x");
    dy = b.input(kRow, "dy");
    y = b.map(ir::Elementwise::square, x, {"y"});
    b.phase = ir::Phase::backward;
    dx = b.map(ir::Elementwise::scale, b.map(ir::Elementwise::mul, x, dy, {"x dy"}), {"dx"}, 2);
  }
};

const InitialSettings kSettings{11, 0.5, false};

ReferenceModel reference_of(const SmallModel& small) {
  return ReferenceModel(small.model, small.options.optimizer, small.options.gradient_dtype, small.options.master_dtype,
                        kSettings);
}

}  // namespace

TEST_CASE("a run computes the phases asked for and knows no others") {
  const Square s;
  ReferenceRun run(s.program);
  run.set(s.x, Tensor(kRow, {3, -1}));
  run.run(ir::Phase::forward, ir::Phase::forward);
  CHECK(run.value(s.y).to_doubles() == std::vector<double>{9, 1});
  CHECK(!run.has(s.dx));
  CHECK_THROWS_AS(run.value(s.dx), InternalError);
  CHECK_THROWS_AS(run.run(ir::Phase::backward, ir::Phase::backward), InternalError);  // dy is not known
  run.set(s.dy, Tensor(kRow, {1, 10}));
  run.run(ir::Phase::backward, ir::Phase::backward);
  CHECK(run.value(s.dx).to_doubles() == std::vector<double>{6, -20});
}

TEST_CASE("a value that is given is not computed, and its readers see it") {
  Square s;
  ir::Builder b(s.program);
  const ir::ValueId z = b.map(ir::Elementwise::neg, s.y, {"z"});
  ReferenceRun run(s.program);
  run.set(s.x, Tensor(kRow, {3, -1}));
  run.set(s.y, Tensor(kRow, {100, 200}));
  run.run(ir::Phase::forward, ir::Phase::forward);
  CHECK(run.value(z).to_doubles() == std::vector<double>{-100, -200});
  CHECK_THROWS_AS(run.set(s.x, Tensor({ir::DType::f32, kRow.shape, ir::Place::none})), InternalError);
}

TEST_CASE("a model's gradient along a direction is the difference of its losses") {
  for (bool tied : {false, true}) {
    const SmallModel small({.mesh = {{"data", 1}}, .tied = tied, .microbatches = 2});
    ReferenceModel model = reference_of(small);
    model.step(0, 2);
    Random random(5);
    std::map<std::string, Tensor> direction;
    double slope = 0;
    for (const auto& [key, gradient] : model.gradients()) {
      Tensor d(gradient.type());
      for (std::int64_t i = 0; i < d.size(); ++i) {
        d.set(i, 2 * random.uniform() - 1);
        slope += d.at(i) * gradient.at(i);
      }
      direction.emplace(key, d);
    }
    // Central differences with h = 1e-5: truncation about h^2 and rounding about 1e-16/h, each 1e-10 or less of a loss
    // near 3.
    const auto loss_at = [&](double h) {
      ReferenceModel moved = reference_of(small);
      for (auto& [key, value] : moved.parameters())
        for (std::int64_t i = 0; i < value.size(); ++i) value.set(i, value.at(i) + h * direction.at(key).at(i));
      return moved.loss(0, 2);
    };
    const double h = 1e-5, expected = (loss_at(h) - loss_at(-h)) / (2 * h);
    CHECK(std::abs(slope - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
    CHECK(std::abs(expected) > 1e-3);
  }
}

TEST_CASE("training lowers the loss") {
  const SmallModel small({.mesh = {{"data", 1}}});
  ReferenceModel model = reference_of(small);
  const double first = model.loss(0, 1);
  for (int i = 0; i < 20; ++i) model.step(0, 1);  // the same batch again and again
  CHECK(model.loss(0, 1) < first / 2);
}

TEST_CASE("clipping scales by the global norm, a tied parameter counted once") {
  const SmallModel small({.mesh = {{"data", 1}}, .tied = true, .clip = 0.05, .optimizer = ir::Optimizer::sgd});
  ReferenceModel model = reference_of(small);
  model.step(0, 1);
  double square = 0;
  for (const auto& [key, gradient] : model.gradients())
    for (double g : gradient.to_doubles()) square += g * g;
  CHECK(model.gradients().count("table") == 1);
  CHECK(std::abs(model.gscale() * std::sqrt(square) - 0.05) < 1e-6);  // torch's 1e-6 in the denominator
  CHECK(model.gscale() < 1);
}

TEST_CASE("kept values are those of each microbatch and site") {
  const SmallModel small({.mesh = {{"data", 1}}, .microbatches = 2});
  ReferenceModel model = reference_of(small);
  model.keep_values(true);
  const double loss = model.step(0, 2);
  double sum = 0;
  for (std::int64_t m : {0, 1}) sum += model.values(m, 3).value(model.block(3).loss).at(0);
  CHECK(sum == loss);
  CHECK(model.sites() == 4);
}
