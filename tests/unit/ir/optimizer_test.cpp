#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/ir/naive.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0};
Dim dim(DimName name, std::int64_t size, std::int64_t valid = 0) {
  return {name, size, valid == 0 ? size : valid};
}

Parameter matrix() {
  Parameter p;
  p.name = "w";
  p.input_dims = {kEmbed};
  p.output_dims = {kMlp};
  return p;
}

std::string slots_text(Optimizer kind, const Parameter& p, const TensorType& type, DType master) {
  OptimizerSettings s;
  s.kind = kind;
  std::string out;
  for (const StateSlot& slot : optimizer_slots(s, p, type, master))
    out += std::string(slot.label) + (slot.factored ? "*" : "") + " " + to_string(slot.type) + "\n";
  return out;
}

const Shape kShape = {dim(kEmbed, 3), dim(kMlp, 2)};

// Runs one update; slots start at `start`.
struct Ran {
  std::vector<double> p;
  std::vector<std::vector<double>> slots;
};
Ran run_update(const UpdateProgram& u, const std::vector<double>& p, const std::vector<double>& g, double gscale,
               double step, const std::vector<std::vector<double>>& slots) {
  CHECK(verify(u.program) == std::vector<std::string>{});
  std::map<int, naive::Tensor> in;
  const auto give = [&](ValueId id, const std::vector<double>& data) {
    in[id.index] = {u.program.value(id).type.shape, data};
  };
  give(u.parameter, p);
  give(u.gradient, g);
  give(u.gscale, {gscale});
  give(u.step, {step});
  for (std::size_t i = 0; i < slots.size(); ++i) give(u.slots[i], slots[i]);
  const auto values = naive::run(u.program, in).values;
  Ran out{values.at(u.new_parameter.index).data, {}};
  for (const ValueId id : u.new_slots) out.slots.push_back(values.at(id.index).data);
  return out;
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("each optimizer keeps its slots, and a master copy only of a narrower parameter") {
  const TensorType f32{DType::f32, kShape, Place::none}, bf16{DType::bf16, kShape, Place::none};
  const std::string full = " f32[embed 3, mlp 2]\n";
  CHECK(slots_text(Optimizer::sgd, matrix(), f32, DType::f32) == "");
  CHECK(slots_text(Optimizer::momentum, matrix(), f32, DType::f32) == "v" + full);
  CHECK(slots_text(Optimizer::adamw, matrix(), f32, DType::f32) == "m" + full + "v" + full);
  CHECK(slots_text(Optimizer::adam, matrix(), bf16, DType::f32) == "master" + full + "m" + full + "v" + full);
  CHECK(slots_text(Optimizer::adafactor, matrix(), f32, DType::f32) == "row* f32[embed 3]\ncolumn* f32[mlp 2]\n");
  CHECK(slots_text(Optimizer::adafactor, Parameter(), f32, DType::f32) == "v" + full);
}

TEST_CASE("sgd, momentum and adamw take the steps of their papers") {
  const TensorType type{DType::f64, {dim(kEmbed, 2)}, Place::none};
  OptimizerSettings s;
  s.learning_rate = 0.1;
  s.kind = Optimizer::sgd;
  // p - 0.1 x 0.5 x g
  check_close(run_update(update_program(s, Parameter(), type, DType::f64, DType::f64), {1, 2}, {4, -2}, 0.5, 1, {}).p,
              {0.8, 2.1});
  s.kind = Optimizer::momentum;
  // v = 0.9 v + g, p - 0.1 v
  const Ran m =
      run_update(update_program(s, Parameter(), type, DType::f64, DType::f64), {1, 2}, {4, -2}, 1, 1, {{1, 1}});
  check_close(m.slots[0], {4.9, -1.1});
  check_close(m.p, {0.51, 2.11});
  s.kind = Optimizer::adamw;
  s.eps = 0;
  s.weight_decay = 0.5;
  // First step from zero state: m^ / sqrt(v^) = sign(g); p - 0.1 (sign(g) + 0.5 p).
  const Ran a =
      run_update(update_program(s, Parameter(), type, DType::f64, DType::f64), {1, 2}, {4, -2}, 1, 1, {{0, 0}, {0, 0}});
  check_close(a.p, {1 - 0.1 * 1.5, 2 - 0.1 * (-1 + 1)});
  check_close(a.slots[0], {0.4, -0.2});
  check_close(a.slots[1], {0.05 * 16, 0.05 * 4});
  s.kind = Optimizer::adam;
  // adam does not decay
  check_close(
      run_update(update_program(s, Parameter(), type, DType::f64, DType::f64), {1, 2}, {4, -2}, 1, 1, {{0, 0}, {0, 0}})
          .p,
      {0.9, 2.1});
}

TEST_CASE("with a master copy the step is taken on it, and the parameter is its rounded copy") {
  OptimizerSettings s;
  s.kind = Optimizer::sgd;
  s.learning_rate = 1;
  const UpdateProgram u =
      update_program(s, Parameter(), {DType::bf16, {dim(kEmbed, 2)}, Place::none}, DType::bf16, DType::f32);
  const Ran r = run_update(u, {9, 9}, {1, 2}, 1, 1, {{5, 7}});
  CHECK(r.slots == std::vector<std::vector<double>>{{4, 5}});
  CHECK(r.p == std::vector<double>{4, 5});
  CHECK(u.program.value(u.new_parameter).type.dtype == DType::bf16);
  CHECK(u.program.value(u.new_parameter).table == Table::parameters);
  CHECK(u.program.value(u.new_slots[0]).type.dtype == DType::f32);
  for (const Op& op : u.program.ops) CHECK(op.phase == Phase::update);
}

TEST_CASE("adafactor's factored step is that of Shazeer and Stern, algorithm 4, with means over valid entries") {
  // embed 3 (padded to 4), mlp 2, second step: b2 = 1 - 2^-0.8. Evaluated straight from the paper's formulas.
  for (const std::int64_t rows : {3, 4}) {
    const Shape shape = {dim(kEmbed, rows, 3), dim(kMlp, 2)};
    std::vector<double> g = {1, -2, 3, 0.5, -1, 4}, p = {1, 1, 1, 1, 1, 1}, row0 = {1, 2, 3}, column0 = {2, 1};
    const double scale = 0.5, b2 = 1 - std::pow(2, -0.8), e1 = 1e-30, rate = 0.01;
    double row[3], column[2], row_mean = 0, u[6], square = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      row[i] = b2 * row0[i] + (1 - b2) * (scale * scale * (g[2 * i] * g[2 * i] + g[2 * i + 1] * g[2 * i + 1]) / 2 + e1);
      row_mean += row[i] / 3;
    }
    for (std::size_t j = 0; j < 2; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < 3; ++i) sum += scale * scale * g[2 * i + j] * g[2 * i + j];
      column[j] = b2 * column0[j] + (1 - b2) * (sum / 3 + e1);
    }
    for (std::size_t i = 0; i < 6; ++i) {
      u[i] = scale * g[i] / std::sqrt(row[i / 2] * column[i % 2] / row_mean);
      square += u[i] * u[i] / 6;
    }
    std::vector<double> wanted;
    for (std::size_t i = 0; i < 6; ++i) wanted.push_back(p[i] - rate * u[i] / std::max(1.0, std::sqrt(square)));
    if (rows == 4) {
      for (auto* v : {&g, &p, &wanted}) v->insert(v->end(), {0, 0});
      row0.push_back(0);
    }
    OptimizerSettings s;
    s.kind = Optimizer::adafactor;
    s.eps = 1e-30;
    s.learning_rate = rate;
    const Ran r = run_update(update_program(s, matrix(), {DType::f64, shape, Place::none}, DType::f64, DType::f64), p,
                             g, scale, 2, {row0, column0});
    check_close(r.p, wanted);
    check_close({r.slots[0].begin(), r.slots[0].begin() + 3}, {row[0], row[1], row[2]});
    check_close(r.slots[1], {column[0], column[1]});
  }
}

TEST_CASE("adafactor keeps one moment for a vector, and its first step is clipped to one") {
  // t = 1: b2 = 0, v = g^2, u = sign(g), RMS 1: p - rate x sign(g).
  OptimizerSettings s;
  s.kind = Optimizer::adafactor;
  s.eps = 1e-30;
  s.learning_rate = 0.5;
  const Ran r =
      run_update(update_program(s, Parameter(), {DType::f64, {dim(kEmbed, 2)}, Place::none}, DType::f64, DType::f64),
                 {1, 1}, {3, -4}, 1, 1, {{7, 7}});
  check_close(r.p, {0.5, 1.5});
  check_close(r.slots[0], {9, 16});
}

TEST_CASE("adafactor's reductions go over the declared dims, so a split parameter needs only small all-reduces") {
  OptimizerSettings s;
  s.kind = Optimizer::adafactor;
  s.eps = 1e-30;
  const UpdateProgram u = update_program(s, matrix(), {DType::f32, kShape, Place::none}, DType::f32, DType::f32);
  std::vector<DimNames> reduced;
  for (const Op& op : u.program.ops)
    if (const auto* r = std::get_if<Reduce>(&op.kind)) reduced.push_back(r->dims);
  CHECK(reduced == std::vector<DimNames>{{kMlp}, {kEmbed}, {kEmbed}, {kEmbed, kMlp}});
}
