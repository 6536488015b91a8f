// Directional derivative of a block against central differences, by the naive loops. Header for the tests of ir and
// models.
#pragma once

#include <cmath>

#include "tests/unit/ir/naive.hpp"

namespace naive {

// The scalar whose gradient backward computes: the loss, plus x_out weighted with dx_out.
inline double objective(const Program& program, const std::map<int, Tensor>& inputs) {
  const Result r = run_forward(program, inputs);
  double sum = 0;
  if (program.loss.valid()) sum += r.values.at(program.loss.index).data[0];
  if (program.x_out.valid()) sum += dot(r.values.at(program.x_out.index), inputs.at(program.dx_out.index));
  return sum;
}

struct Slopes {
  double backward = 0;     // gradient . direction
  double differences = 0;  // (f(+h) - f(-h)) / 2h
};
// `program` is differentiated. The direction moves all parameters and x_in, valid entries only. Step 1e-5: the
// truncation error is about 1e-10 of the slope and the rounding error about 1e-16 / 1e-5 = 1e-11 of the objective.
inline Slopes slopes(const Program& program, const std::map<int, Tensor>& inputs, std::uint64_t seed) {
  constexpr double kStep = 1e-5;
  tpusim::Random random(seed);
  const Result r = run(program, inputs);
  Slopes out;
  std::map<int, Tensor> plus = inputs, minus = inputs;
  const auto move = [&](ValueId value, ValueId gradient) {
    const Tensor direction = random_tensor(program.value(value).type.shape, random);
    out.backward += dot(r.values.at(gradient.index), direction);
    for (std::size_t i = 0; i < direction.data.size(); ++i) {
      plus[value.index].data[i] += kStep * direction.data[i];
      minus[value.index].data[i] -= kStep * direction.data[i];
    }
  };
  for (const auto& p : program.parameters) move(p.value, p.gradient);
  if (program.x_in.valid()) move(program.x_in, program.dx_in);
  out.differences = (objective(program, plus) - objective(program, minus)) / (2 * kStep);
  return out;
}

// |backward - differences| / max(1, |differences|)
inline double slope_error(const Program& program, const std::map<int, Tensor>& inputs, std::uint64_t seed) {
  const Slopes s = slopes(program, inputs, seed);
  return std::abs(s.backward - s.differences) / std::max(1.0, std::abs(s.differences));
}

}  // namespace naive
