#include "ops_support.hpp"

#include <cmath>

#include "sim/base/random.hpp"
#include "sim/numeric/reference_run.hpp"

namespace tpusim::ops_test {

using numeric::Tensor;

ir::Dim dim(ir::DimName name, std::int64_t size) {
  return {name, size, size};
}
ir::Dim padded(ir::DimName name, std::int64_t size, std::int64_t valid) {
  return {name, size, valid};
}
ir::TensorType type(ir::DType dtype, const ir::Shape& shape) {
  return {dtype, shape, ir::Place::none};
}
Tensor tensor(const ir::Shape& shape, const std::vector<double>& values, ir::DType dtype) {
  return Tensor(type(dtype, shape), values);
}
Tensor uniform(const ir::Shape& shape, std::uint64_t seed, ir::DType dtype) {
  Random random(seed);
  Tensor t(type(dtype, shape));
  for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, 2 * random.uniform() - 1);
  return t;
}
Tensor integers(const ir::Shape& shape, std::uint64_t seed, ir::DType dtype) {
  Random random(seed);
  Tensor t(type(dtype, shape));
  for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(random.below(9)) - 4);
  return t;
}

std::vector<Tensor> evaluate(const ir::OpKind& kind, const std::vector<Tensor>& operands, ir::DType dtype,
                             const ir::Shape& like, const numeric::Location& where) {
  std::vector<ir::TensorType> operand_types;
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : operands) {
    operand_types.push_back(t.type());
    pointers.push_back(&t);
  }
  const ir::Inferred inferred = ir::infer(kind, operand_types, dtype, like);
  REQUIRE(inferred.error == "");
  const std::vector<ir::TensorType> result_types(inferred.results.begin(), inferred.results.end());
  numeric::Evaluation evaluation = numeric::evaluate(kind, pointers, result_types, where);
  const ir::OpCost cost = ir::cost(kind, operand_types, result_types);
  CHECK(static_cast<double>(evaluation.flops) == cost.executed_flops);
  double products = 0;
  for (const ir::MatrixProduct& p : cost.products)
    products += 2.0 * static_cast<double>(p.count * p.batch) * static_cast<double>(p.m * p.n * p.k);
  CHECK(products == cost.executed_flops);
  return std::move(evaluation.results);
}

void check_close(const Tensor& a, const std::vector<double>& expected, double tolerance) {
  REQUIRE(a.size() == static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a.at(i) - expected[static_cast<std::size_t>(i)]) <= tolerance);
  }
}

void check_gradient(const ir::OpKind& kind, const std::vector<Tensor>& operands, std::size_t operand,
                    const ir::Shape& like) {
  ir::Program program;
  ir::Builder builder(program);
  InlineVector<ir::ValueId, 8> ids;
  for (const Tensor& t : operands) ids.push_back(builder.input(t.type(), "x"));
  const auto results = builder.add(kind, ids, ir::DType::f64, {"y"}, like);
  const ir::OpId op = program.value(results[0]).producer;
  const ir::ValueId dy = builder.input(program.value(results[0]).type, "dy");
  std::vector<ir::ValueId> again;
  for (std::size_t i = 0; i < program.values.size(); ++i) again.emplace_back(i);
  builder.phase = ir::Phase::backward;
  ir::VjpContext context{builder, program, again, ir::DType::f64};
  InlineVector<ir::ValueId, 4> result_gradients = {dy};
  while (result_gradients.size() < results.size()) result_gradients.push_back(ir::ValueId());
  const ir::Op forward = program.op(op);
  const auto gradients = ir::vjp(forward, result_gradients, context);
  REQUIRE(operand < gradients.size());
  REQUIRE(gradients[operand].valid());

  const Tensor weight = uniform(program.value(results[0]).type.shape, 99);
  const auto weighted_sum = [&](const std::vector<Tensor>& inputs) {
    numeric::ReferenceRun run(program);
    for (std::size_t i = 0; i < inputs.size(); ++i) run.set(ids[i], inputs[i]);
    run.run(ir::Phase::forward, ir::Phase::forward);
    double sum = 0;
    for (std::int64_t i = 0; i < weight.size(); ++i) sum += weight.at(i) * run.value(results[0]).at(i);
    return sum;
  };
  numeric::ReferenceRun run(program);
  for (std::size_t i = 0; i < operands.size(); ++i) run.set(ids[i], operands[i]);
  run.set(dy, weight);
  run.run(ir::Phase::forward, ir::Phase::backward);
  // A gradient may lack dims along which it is constant: adding zeros of the operand's shape spreads it.
  const Tensor zeros(operands[operand].type());
  const Tensor& lean = run.value(gradients[operand]);
  const Tensor gradient =
      std::move(numeric::evaluate(ir::Map{ir::Elementwise::add, 0}, {&zeros, &lean}, {zeros.type()}, {}).results[0]);
  const double h = 1e-5;
  std::vector<Tensor> moved = operands;
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const double x = operands[operand].at(i);
    moved[operand].set(i, x + h);
    const double up = weighted_sum(moved);
    moved[operand].set(i, x - h);
    const double down = weighted_sum(moved);
    moved[operand].set(i, x);
    const double expected = (up - down) / (2 * h);
    CAPTURE(i);
    CAPTURE(operand);
    CHECK(std::abs(gradient.at(i) - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
  }
}

}  // namespace tpusim::ops_test
