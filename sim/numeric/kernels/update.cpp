// One optimizer step, elementwise. With g the clipped gradient (gscale times the raw one):
//   sgd       p -= lr (g + wd p)
//   momentum  v = mu v + (g + wd p);  p -= lr v
//   adam      g' = g + wd p;  m = b1 m + (1 - b1) g';  v = b2 v + (1 - b2) g'^2;  p -= lr mhat / (sqrt(vhat) + eps)
//   adamw     as adam with g' = g, and  p -= lr (mhat / (sqrt(vhat) + eps) + wd p)
// where mhat = m / (1 - b1^t), vhat = v / (1 - b2^t) and t is the 1-based step number.
// Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2 (decoupled decay, schedule factor in
// lr).
#include <cmath>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric::kernels {
namespace {

template <class T>
std::vector<Tensor> adam(const ir::Update& op, const Operands& x, const Types& types) {
  const bool decoupled = op.kind == ir::Optimizer::adamw;
  const Read<T> p(*x[0]), g(*x[1]), m(*x[3]), v(*x[4]);
  const T scale = static_cast<T>(x[2]->at(0));
  const double step = x[5]->at(0);
  const T b1 = static_cast<T>(op.beta1), b2 = static_cast<T>(op.beta2), eps = static_cast<T>(op.eps);
  const T lr = static_cast<T>(op.learning_rate), decay = static_cast<T>(op.weight_decay);
  const T correct1 = static_cast<T>(1 - std::pow(op.beta1, step)),
          correct2 = static_cast<T>(1 - std::pow(op.beta2, step));
  std::vector<T> new_p(p.span().begin(), p.span().end()), new_m(new_p.size()), new_v(new_p.size());
  for (std::size_t i = 0; i < new_p.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i);
    const T gradient = decoupled ? scale * g[at] : scale * g[at] + decay * p[at];
    new_m[i] = b1 * m[at] + (T(1) - b1) * gradient;
    new_v[i] = b2 * v[at] + (T(1) - b2) * gradient * gradient;
    T change = (new_m[i] / correct1) / (std::sqrt(new_v[i] / correct2) + eps);
    if (decoupled) change += decay * p[at];
    new_p[i] = p[at] - lr * change;
  }
  std::vector<Tensor> results;
  results.push_back(make_tensor<T>(types[0], std::span<const T>(new_p)));
  results.push_back(make_tensor<T>(types[1], std::span<const T>(new_m)));
  results.push_back(make_tensor<T>(types[2], std::span<const T>(new_v)));
  return results;
}

template <class T>
std::vector<Tensor> sgd(const ir::Update& op, const Operands& x, const Types& types) {
  const bool momentum = op.kind == ir::Optimizer::momentum;
  const Read<T> p(*x[0]), g(*x[1]);
  const T scale = static_cast<T>(x[2]->at(0)), mu = static_cast<T>(op.momentum);
  const T lr = static_cast<T>(op.learning_rate), decay = static_cast<T>(op.weight_decay);
  std::vector<T> new_p(p.span().begin(), p.span().end()), new_v;
  if (momentum) {
    const Read<T> v(*x[3]);
    new_v.assign(v.span().begin(), v.span().end());
  }
  for (std::size_t i = 0; i < new_p.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i);
    T change = scale * g[at] + decay * p[at];
    if (momentum) change = new_v[i] = mu * new_v[i] + change;
    new_p[i] = p[at] - lr * change;
  }
  std::vector<Tensor> results;
  results.push_back(make_tensor<T>(types[0], std::span<const T>(new_p)));
  if (momentum) results.push_back(make_tensor<T>(types[1], std::span<const T>(new_v)));
  return results;
}

}  // namespace

std::vector<Tensor> update(const ir::Update& op, const Operands& operands, const Types& results) {
  const bool has_moments = op.kind == ir::Optimizer::adam || op.kind == ir::Optimizer::adamw;
  const bool has_velocity = op.kind == ir::Optimizer::momentum;
  TPUSIM_CHECK(operands.size() >= (has_moments    ? 6u
                                   : has_velocity ? 4u
                                                  : 3u) &&
                   results.size() >= (has_moments    ? 3u
                                      : has_velocity ? 2u
                                                     : 1u),
               "an update lacks operands or results");
  const std::size_t states = has_moments ? 2 : has_velocity ? 1 : 0;
  TPUSIM_CHECK(op.kind != ir::Optimizer::adafactor, "adafactor is composed of other ops");
  TPUSIM_CHECK(operands[1]->shape() == operands[0]->shape(), "an update's gradient is not like its parameter");
  for (std::size_t i = 3; i < 3 + states; ++i)
    TPUSIM_CHECK(operands[i]->shape() == operands[0]->shape(), "an update's state is not like its parameter");
  return with_compute_type(is_wide(operands, results), [&](auto zero) {
    using T = decltype(zero);
    return has_moments ? adam<T>(op, operands, results) : sgd<T>(op, operands, results);
  });
}

}  // namespace tpusim::numeric::kernels
