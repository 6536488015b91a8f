#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/ir/flash_dims.hpp"
#include "tests/support/plain_elementwise.hpp"
#include "tests/unit/ir/naive.hpp"

namespace naive {
namespace {

using namespace tpusim::ir;
using tpusim::testing::plain_elementwise;

std::int64_t stride_of(const Shape& shape, int dim) {
  std::int64_t s = 1;
  for (std::size_t i = shape.size(); i-- > static_cast<std::size_t>(dim) + 1;) s *= shape[i].size;
  return s;
}

// Visits all index tuples of the union of shapes; offsets[i] is the flat index into shapes[i] (dims it lacks are
// ignored).
void visit(const std::vector<Shape>& shapes, const std::function<void(const std::vector<std::int64_t>&)>& body) {
  std::vector<Dim> all;
  for (const Shape& s : shapes)
    for (const Dim& d : s)
      if (std::none_of(all.begin(), all.end(), [&](const Dim& e) { return e.name == d.name; })) all.push_back(d);
  std::vector<std::vector<std::int64_t>> strides(shapes.size(), std::vector<std::int64_t>(all.size(), 0));
  for (std::size_t t = 0; t < shapes.size(); ++t)
    for (std::size_t k = 0; k < all.size(); ++k)
      if (const int i = find_dim(shapes[t], all[k].name); i >= 0) strides[t][k] = stride_of(shapes[t], i);
  std::vector<std::int64_t> at(all.size(), 0), offsets(shapes.size(), 0);
  while (true) {
    body(offsets);
    std::size_t k = all.size();
    while (k > 0) {
      --k;
      ++at[k];
      for (std::size_t t = 0; t < shapes.size(); ++t) offsets[t] += strides[t][k];
      if (at[k] < all[k].size) break;
      for (std::size_t t = 0; t < shapes.size(); ++t) offsets[t] -= strides[t][k] * at[k];
      at[k] = 0;
      if (k == 0) return;
    }
    if (all.empty()) return;
  }
}

std::int64_t coordinate(const Shape& shape, DimName name, std::int64_t flat) {
  const int i = find_dim(shape, name);
  return flat / stride_of(shape, i) % shape[static_cast<std::size_t>(i)].size;
}

const Dim& dim_at(const Shape& shape, DimName name) {
  return shape[static_cast<std::size_t>(find_dim(shape, name))];
}

// One op: operands -> results.
struct Runner {
  const std::vector<const Tensor*>& x;
  std::vector<Tensor>& y;  // of the right shapes, zero
  std::int64_t& multiplies;

  void operator()(const Dot&) {
    visit({x[0]->shape, x[1]->shape, y[0].shape}, [&](const auto& o) {
      y[0].data[at(o[2])] += x[0]->data[at(o[0])] * x[1]->data[at(o[1])];
      ++multiplies;
    });
  }
  void operator()(const Map& m) {
    if (x.size() == 1)
      for (std::size_t i = 0; i < y[0].data.size(); ++i) y[0].data[i] = plain_elementwise(m.kind, m.a, x[0]->data[i]);
    else
      visit({x[0]->shape, x[1]->shape, y[0].shape}, [&](const auto& o) {
        y[0].data[at(o[2])] = plain_elementwise(m.kind, m.a, x[0]->data[at(o[0])], x[1]->data[at(o[1])]);
      });
  }
  void operator()(const Reduce& r) {
    if (r.kind == Reduction::max) std::fill(y[0].data.begin(), y[0].data.end(), -1e300);
    visit({x[0]->shape, y[0].shape}, [&](const auto& o) {
      double& to = y[0].data[at(o[1])];
      const double from = x[0]->data[at(o[0])];
      to = r.kind == Reduction::sum ? to + from : std::max(to, from);
    });
  }
  void operator()(const Rename&) { y[0].data = x[0]->data; }
  void operator()(const MaskPadding& m) {
    const std::int64_t valid = dim_at(x[0]->shape, m.dim).valid;
    for (std::size_t i = 0; i < y[0].data.size(); ++i)
      y[0].data[i] = coordinate(x[0]->shape, m.dim, static_cast<std::int64_t>(i)) < valid ? x[0]->data[i] : m.fill;
  }
  void operator()(const MaskCausal& m) {
    for (std::size_t i = 0; i < y[0].data.size(); ++i) {
      const auto flat = static_cast<std::int64_t>(i);
      y[0].data[i] =
          coordinate(x[0]->shape, m.key, flat) <= coordinate(x[0]->shape, m.query, flat) ? x[0]->data[i] : m.fill;
    }
  }
  void operator()(const Rope& r) {
    const Shape& shape = x[0]->shape;
    const std::int64_t d = dim_at(shape, r.rotated).size, step = stride_of(shape, find_dim(shape, r.rotated));
    for (std::size_t i = 0; i < y[0].data.size(); ++i) {
      const auto flat = static_cast<std::int64_t>(i);
      const std::int64_t k = coordinate(shape, r.rotated, flat);
      if (k >= d / 2) continue;
      const double angle = static_cast<double>(coordinate(shape, r.positions, flat)) *
                           std::pow(r.theta, -2.0 * static_cast<double>(k) / static_cast<double>(d));
      const double c = std::cos(angle), s = r.inverse ? -std::sin(angle) : std::sin(angle);
      const std::size_t j = at(flat + step * (d / 2));
      y[0].data[i] = c * x[0]->data[i] - s * x[0]->data[j];
      y[0].data[j] = s * x[0]->data[i] + c * x[0]->data[j];
    }
  }
  void operator()(const Lookup& l) {
    const std::int64_t step = stride_of(x[0]->shape, find_dim(x[0]->shape, l.rows));
    Shape rest;
    for (const Dim& d : x[0]->shape)
      if (d.name != l.rows) rest.push_back(d);
    const Shape table = x[0]->shape;
    visit({x[1]->shape, rest, y[0].shape}, [&](const auto& o) {
      // rest has one dim, of stride 1 or rows' size.
      const std::int64_t rest_step = rest.empty() ? 0 : stride_of(table, find_dim(table, rest[0].name));
      y[0].data[at(o[2])] = x[0]->data[at(static_cast<std::int64_t>(x[1]->data[at(o[0])]) * step + o[1] * rest_step)];
    });
  }
  void operator()(const LookupGrad&) {
    const std::int64_t step = stride_of(y[0].shape, 0);
    Shape rest;
    for (std::size_t i = 1; i < y[0].shape.size(); ++i) rest.push_back(y[0].shape[i]);
    visit({x[0]->shape, rest, x[1]->shape}, [&](const auto& o) {
      y[0].data[at(static_cast<std::int64_t>(x[0]->data[at(o[0])]) * step + o[1])] += x[1]->data[at(o[2])];
    });
  }
  void operator()(const Pick& p) {
    const std::int64_t step = stride_of(x[0]->shape, find_dim(x[0]->shape, p.classes));
    Shape rest = x[1]->shape;
    visit({rest, x[0]->shape}, [&](const auto& o) {
      const auto id = static_cast<std::int64_t>(x[1]->data[at(o[0])]);
      if (o[1] / step % dim_at(x[0]->shape, p.classes).size == id) y[0].data[at(o[0])] = x[0]->data[at(o[1])];
    });
  }
  void operator()(const PickGrad& p) {
    const std::int64_t step = stride_of(y[0].shape, find_dim(y[0].shape, p.classes.name));
    visit({x[0]->shape, y[0].shape}, [&](const auto& o) {
      const auto id = static_cast<std::int64_t>(x[0]->data[at(o[0])]);
      if (o[1] / step % p.classes.size == id) y[0].data[at(o[1])] = x[1]->data[at(o[0])];
    });
  }
  void operator()(const Flash& f) { attend(f.scale, f.causal, f.block, false); }
  void operator()(const FlashGrad& f) { attend(f.scale, f.causal, f.block, true); }
  void operator()(const Fill& f) { std::fill(y[0].data.begin(), y[0].data.end(), f.value); }
  void operator()(const Update& u) {
    const double gscale = x[2]->data[0];
    for (std::size_t i = 0; i < y[0].data.size(); ++i) {
      const double p = x[0]->data[i], g = x[1]->data[i] * gscale;
      if (u.kind == Optimizer::sgd) y[0].data[i] = p - u.learning_rate * g;
      if (u.kind == Optimizer::momentum) {
        y[1].data[i] = u.momentum * x[3]->data[i] + g;
        y[0].data[i] = p - u.learning_rate * y[1].data[i];
      }
      if (u.kind != Optimizer::adam && u.kind != Optimizer::adamw) continue;
      const double t = x[5]->data[0];
      const double m = y[1].data[i] = u.beta1 * x[3]->data[i] + (1 - u.beta1) * g;
      const double v = y[2].data[i] = u.beta2 * x[4]->data[i] + (1 - u.beta2) * g * g;
      const double step = m / (1 - std::pow(u.beta1, t)) / (std::sqrt(v / (1 - std::pow(u.beta2, t))) + u.eps);
      y[0].data[i] = p - u.learning_rate * (step + u.weight_decay * p);
    }
  }
  template <class Collective>
  void operator()(const Collective&) {
    TPUSIM_CHECK(false, "one device has no collectives");
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Blocked attention of one head at a time; skips blocks whose keys all follow their queries.
  void attend(double scale, bool causal, std::int64_t block, bool gradient) {
    const Shape& q = x[0]->shape;
    const std::int64_t S = dim_at(q, kSeq).size, T = dim_at(x[1]->shape, kKeySeq).size, D = dim_at(q, kHeadDim).size;
    Shape heads;
    for (const Dim& d : q)
      if (d.name != kSeq && d.name != kHeadDim) heads.push_back(d);
    const Shape lse_shape = gradient ? x[4]->shape : y[1].shape;
    const auto step = [](const Shape& s, DimName n) { return stride_of(s, find_dim(s, n)); };
    const std::int64_t qs = step(q, kSeq), qd = step(q, kHeadDim), ks = step(x[1]->shape, kKeySeq),
                       kd = step(x[1]->shape, kHeadDim), ls = step(lse_shape, kSeq);
    Shape key_heads;
    for (const Dim& d : x[1]->shape)
      if (d.name != kKeySeq && d.name != kHeadDim) key_heads.push_back(d);
    const auto base = [&](const Shape& full, const Shape& part, std::int64_t flat) {
      std::int64_t offset = 0;
      for (const Dim& d : part)
        if (find_dim(full, d.name) >= 0) offset += coordinate(part, d.name, flat) * step(full, d.name);
      return offset;
    };
    for (std::int64_t h = 0; h < element_count(heads); ++h) {
      const std::int64_t q0 = base(q, heads, h), k0 = base(x[1]->shape, heads, h), l0 = base(lse_shape, heads, h);
      std::vector<double> score(at(S * T), -1e300);
      for (std::int64_t i0 = 0; i0 < S; i0 += block)
        for (std::int64_t j0 = 0; j0 < T; j0 += block) {
          const std::int64_t i1 = std::min(S, i0 + block), j1 = std::min(T, j0 + block);
          if (causal && j0 > i1 - 1) continue;
          multiplies += (i1 - i0) * (j1 - j0) * D * (gradient ? 5 : 2);
          for (std::int64_t i = i0; i < i1; ++i)
            for (std::int64_t j = j0; j < j1; ++j) {
              if (causal && j > i) continue;
              double s = 0;
              for (std::int64_t d = 0; d < D; ++d)
                s += x[0]->data[at(q0 + i * qs + d * qd)] * x[1]->data[at(k0 + j * ks + d * kd)];
              score[at(i * T + j)] = scale * s;
            }
        }
      for (std::int64_t i = 0; i < S; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < T; ++j) sum += std::exp(score[at(i * T + j)]);
        if (!gradient) y[1].data[at(l0 + i * ls)] = std::log(sum);
        std::vector<double> p(at(T)), dp(at(T), 0.0);
        double mean = 0;
        for (std::int64_t j = 0; j < T; ++j) {
          p[at(j)] = std::exp(score[at(i * T + j)]) / sum;
          for (std::int64_t d = 0; d < D; ++d) {
            const std::size_t v = at(k0 + j * ks + d * kd), o = at(q0 + i * qs + d * qd);
            if (gradient) {
              dp[at(j)] += x[5]->data[o] * x[2]->data[v];
              y[2].data[v] += p[at(j)] * x[5]->data[o];
            } else {
              y[0].data[o] += p[at(j)] * x[2]->data[v];
            }
          }
          mean += p[at(j)] * dp[at(j)];
        }
        if (!gradient) continue;
        for (std::int64_t j = 0; j < T; ++j) {
          const double ds = scale * p[at(j)] * (dp[at(j)] - mean);
          for (std::int64_t d = 0; d < D; ++d) {
            const std::size_t k = at(k0 + j * ks + d * kd), o = at(q0 + i * qs + d * qd);
            y[0].data[o] += ds * x[1]->data[k];
            y[1].data[k] += ds * x[0]->data[o];
          }
        }
      }
    }
  }
};

Result run_phases(const Program& program, const std::map<int, Tensor>& inputs, bool all) {
  Result out;
  out.values = inputs;
  for (const Op& op : program.ops) {
    out.multiplies.push_back(0);
    if (!all && op.phase != Phase::forward) continue;
    std::vector<const Tensor*> x;
    for (const ValueId id : op.operands) {
      TPUSIM_CHECK(out.values.count(id.index) == 1,
                   "a value that nothing made: " + std::string(program.value(id).label));
      x.push_back(&out.values.at(id.index));
    }
    std::vector<Tensor> y;
    for (const ValueId id : op.results) y.push_back(zeros(program.value(id).type.shape));
    std::visit(Runner{x, y, out.multiplies.back()}, op.kind);
    for (std::size_t i = 0; i < y.size(); ++i) out.values[op.results[i].index] = y[i];
  }
  return out;
}

bool is_valid(const Shape& shape, std::int64_t flat) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (flat / stride_of(shape, static_cast<int>(i)) % shape[i].size >= shape[i].valid) return false;
  return true;
}

}  // namespace

Tensor zeros(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<std::size_t>(element_count(shape)), 0.0)};
}

Tensor random_tensor(const Shape& shape, tpusim::Random& random, double size) {
  Tensor t = zeros(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    if (is_valid(shape, static_cast<std::int64_t>(i))) t.data[i] = size * random.normal();
  return t;
}

Tensor random_ids(const Shape& shape, tpusim::Random& random, std::int64_t below) {
  Tensor t = zeros(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    if (is_valid(shape, static_cast<std::int64_t>(i)))
      t.data[i] = static_cast<double>(random.below(static_cast<std::uint64_t>(below)));
  return t;
}

double dot(const Tensor& a, const Tensor& b) {
  TPUSIM_CHECK(a.data.size() == b.data.size(), "tensors of two sizes");
  double sum = 0;
  visit({a.shape, b.shape},
        [&](const auto& o) { sum += a.data[static_cast<std::size_t>(o[0])] * b.data[static_cast<std::size_t>(o[1])]; });
  return sum;
}

Result run(const Program& program, const std::map<int, Tensor>& inputs) {
  return run_phases(program, inputs, true);
}
Result run_forward(const Program& program, const std::map<int, Tensor>& inputs) {
  return run_phases(program, inputs, false);
}

std::map<int, Tensor> random_inputs(const Program& program, std::uint64_t seed, std::int64_t vocab, double size) {
  tpusim::Random random(seed);
  std::map<int, Tensor> out;
  for (const Parameter& p : program.parameters) {
    Tensor t = random_tensor(program.value(p.value).type.shape, random, size);
    if (p.init == Init::ones)
      for (std::size_t i = 0; i < t.data.size(); ++i)
        if (is_valid(t.shape, static_cast<std::int64_t>(i))) t.data[i] = 1 + 0.3 * t.data[i];
    out[p.value.index] = t;
  }
  for (const DataInput& d : program.data) {
    const Shape& shape = program.value(d.value).type.shape;
    if (d.kind == DataKind::positions) {
      Tensor t = zeros(shape);
      for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<double>(i);
      out[d.value.index] = t;
    } else if (program.value(d.value).type.dtype == DType::i32) {
      out[d.value.index] = random_ids(shape, random, vocab);
    } else {
      out[d.value.index] = random_tensor(shape, random);
    }
  }
  if (program.x_in.valid()) out[program.x_in.index] = random_tensor(program.value(program.x_in).type.shape, random);
  if (program.dx_out.valid())
    out[program.dx_out.index] = random_tensor(program.value(program.dx_out).type.shape, random);
  return out;
}

}  // namespace naive
