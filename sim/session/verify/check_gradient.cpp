// Finite differences: the derivative of the loss along a seeded direction must be the gradient's product with it.
#include <fmt/format.h>

#include <cmath>

#include "sim/base/random.hpp"
#include "sim/session/verify/parts.hpp"

namespace tpusim::session {

namespace {

constexpr double kStep = 1e-5;  // central differences: error about step^2 times the third derivative, plus 1e-16 / step

struct Attempt {
  std::uint64_t seed;
  double step;
};
// A kink (relu) between the two points, or strong curvature, spoils one direction, step or point but not all; a wrong
// gradient fails them all. A kink closer than a step to some activation is rare (of 20,000 activations of size 0.3 one
// in ten models has one within 1e-6), so a finer step or other parameters are without it. Finer than 1e-8 the rounding
// of the losses, 1e-16 / step, comes near the tolerance.
constexpr Attempt kAttempts[] = {{1, kStep}, {1, kStep / 10}, {2, kStep / 100}, {3, kStep / 1000}};
constexpr int kPoints = 3;

using Values = std::map<std::string, numeric::Tensor>;

numeric::Tensor direction_of(const numeric::Tensor& like, Random& random) {
  numeric::Tensor out(like.type());
  const ir::Shape& shape = like.shape();
  for (std::int64_t i = 0; i < out.size(); ++i) {
    bool counts = true;
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      counts = counts && rest % shape[d].size < shape[d].valid;
      rest /= shape[d].size;
    }
    const double draw = random.normal();
    out.set(i, counts ? draw : 0);
  }
  return out;
}

double dot(const numeric::Tensor& a, const numeric::Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// Entries that a step would not change by rounding (what a mask has filled) say nothing about a derivative.
void leave_out_huge(const numeric::Tensor& values, numeric::Tensor& direction) {
  for (std::int64_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values.at(i)) < 1e6)) direction.set(i, 0);
}

void move(numeric::Tensor& x, const numeric::Tensor& direction, double step) {
  for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, x.at(i) + step * direction.at(i));
}

// The op alone: every real operand a parameter, its first result weighted at random. Returns the relative error of its
// derivative, 0 for an op without one.
double op_error(const ir::Program& block, const ir::Op& op, const numeric::ReferenceRun& values, std::uint64_t seed,
                double step, ir::Vjp vjp) {
  ir::Program alone;
  ir::Builder builder(alone);
  InlineVector<ir::ValueId, 8> operands;
  for (ir::ValueId v : op.operands) operands.push_back(builder.input(block.value(v).type, block.value(v).label));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (block.value(op.operands[i]).type.dtype == ir::DType::i32) continue;
    ir::Parameter parameter;
    parameter.value = operands[i];
    parameter.name = fmt::format("operand{}", i);
    alone.parameters.push_back(parameter);
  }
  if (alone.parameters.empty()) return 0;
  const ir::ValueId result = builder.add(op.kind, operands, block.value(op.results[0]).type.dtype, {"result"},
                                         block.value(op.results[0]).type.shape)[0];
  // Its own gradient comes in from outside, so that no other op's derivative has a part in it.
  alone.x_out = result;
  ir::differentiate(alone, {ir::Remat::none, ir::DType::f64, vjp});
  Random random(seed);
  numeric::ReferenceRun run(alone);
  std::vector<numeric::Tensor> start, direction;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    start.push_back(values.value(op.operands[i]));
    direction.push_back(start.back().dtype() == ir::DType::i32 ? start.back() : direction_of(start.back(), random));
    if (start.back().dtype() != ir::DType::i32) leave_out_huge(start.back(), direction.back());
  }
  numeric::Tensor weights = direction_of(numeric::Tensor(alone.value(result).type), random);
  const auto moved = [&](double by) {
    numeric::ReferenceRun at(alone);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      numeric::Tensor x = start[i];
      if (x.dtype() != ir::DType::i32) move(x, direction[i], by);
      at.set(operands[i], x);
    }
    at.run(ir::Phase::forward, ir::Phase::forward);
    return at.value(result);
  };
  for (std::size_t i = 0; i < operands.size(); ++i) run.set(operands[i], start[i]);
  leave_out_huge(moved(0), weights);
  run.set(alone.dx_out, weights);
  run.run();
  double along = 0;
  for (const ir::Parameter& p : alone.parameters)
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] == p.value && p.gradient.valid()) along += dot(run.value(p.gradient), direction[i]);
  numeric::Tensor change = moved(step);
  move(change, moved(-step), -1);
  const double differences = dot(change, weights) / (2 * step);
  return std::abs(differences - along) / std::max(1.0, std::abs(differences));
}

std::string blame_op(const numeric::ReferenceModel& model, double tolerance, ir::Vjp vjp) {
  for (std::int64_t site = 0; site < model.sites(); ++site) {
    const ir::Program& block = model.block(site);
    for (const ir::Op& op : block.ops) {
      if (op.phase != ir::Phase::forward || op.operands.empty()) continue;
      if (const auto* reduce = std::get_if<ir::Reduce>(&op.kind);
          reduce != nullptr && reduce->kind == ir::Reduction::max)
        continue;  // counts as a constant
      bool agrees = false;
      for (const Attempt& attempt : kAttempts)
        agrees =
            agrees || op_error(block, op, model.values(0, site), 16 + attempt.seed, attempt.step, vjp) <= tolerance;
      if (!agrees)
        return fmt::format("the derivative of {} \"{}\" in block {}", ir::op_name(op.kind),
                           block.value(op.results[0]).label, block.name);
    }
  }
  return "the derivative of the whole; no single op fails on its own";
}

}  // namespace

Finding check_gradient(const Planned& planned, const JobSpec& spec, const numeric::InitialSettings& settings,
                       double tolerance, ir::Vjp vjp) {
  Finding out;
  const std::int64_t microbatches = planned.program.microbatches;
  for (int point = 0; point < kPoints; ++point) {
    numeric::InitialSettings here = settings;
    here.seed += 1000 * static_cast<std::uint64_t>(point);
    const auto fresh = [&] {
      return numeric::ReferenceModel(planned.model, spec.optimizer, spec.gradient_dtype, spec.master_dtype, here);
    };
    numeric::ReferenceModel model = fresh();
    model.keep_values(true);
    model.step(0, microbatches);
    out.compared = static_cast<std::int64_t>(model.gradients().size());
    for (const Attempt& attempt : kAttempts) {
      Random random(settings.seed + attempt.seed);
      Values direction;
      double along = 0;
      for (const auto& [key, gradient] : model.gradients()) {
        direction.emplace(key, direction_of(gradient, random));
        along += dot(gradient, direction.at(key));
      }
      const auto loss = [&](double step) {
        numeric::ReferenceModel moved = fresh();
        for (auto& [key, value] : moved.parameters())
          if (const auto d = direction.find(key); d != direction.end()) move(value, d->second, step);
        return moved.loss(0, microbatches);
      };
      const double differences = (loss(attempt.step) - loss(-attempt.step)) / (2 * attempt.step);
      out.error = std::abs(differences - along) / std::max(1.0, std::abs(differences));
      if (out.error <= tolerance) return out;
    }
    if (point + 1 == kPoints) out.culprit = blame_op(model, tolerance, vjp);
  }
  return out;
}

}  // namespace tpusim::session
