#include "tests/unit/spmd/evaluate_support.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "tests/support/plain_elementwise.hpp"

namespace tpusim::spmd::testing {
namespace {

Tensor zeros(const ir::Shape& shape, double fill = 0) {
  return {shape, std::vector<double>(static_cast<std::size_t>(ir::element_count(shape)), fill)};
}
// Stride of `name` in a row-major tensor; 0 where it lacks the dim.
std::int64_t stride_of(const ir::Shape& shape, ir::DimName name) {
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d].name == name) return stride;
    stride *= shape[d].size;
  }
  return 0;
}
// A loop over named dims and the offsets of tensors in it.
struct Loop {
  std::vector<ir::Dim> dims;
  std::vector<std::int64_t> at;
  explicit Loop(std::initializer_list<const ir::Shape*> shapes) {
    for (const ir::Shape* shape : shapes)
      for (const ir::Dim& d : *shape)
        if (std::none_of(dims.begin(), dims.end(), [&d](const ir::Dim& e) { return e.name == d.name; }))
          dims.push_back(d);
  }
  std::int64_t position(ir::DimName name) const {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i].name == name) return at[i];
    throw std::logic_error("no such dim in a loop");
  }
  std::size_t offset(const ir::Shape& shape) const {
    std::int64_t o = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) o += at[i] * stride_of(shape, dims[i].name);
    return static_cast<std::size_t>(o);
  }
  template <class F>
  void run(F body) {
    at.assign(dims.size(), 0);
    while (true) {
      body();
      std::size_t i = dims.size();
      while (i > 0 && ++at[i - 1] == dims[i - 1].size) at[--i] = 0;
      if (i == 0) return;
    }
  }
};

// What one device computes by itself. `out` has the results' shapes and is zero.
struct Device {
  const Mesh& mesh;
  std::int64_t device;
  std::vector<const Tensor*> in;
  std::vector<Tensor> out;

  std::int64_t first(const MeshAxes& axes, const ir::Shape& shape, ir::DimName name) const {
    const int d = ir::find_dim(shape, name);
    return mesh.index_in(device, axes) * shape[static_cast<std::size_t>(d)].size;
  }
  double& o(std::size_t r, const Loop& l) { return out[r].data[l.offset(out[r].shape)]; }
  double x(std::size_t i, const Loop& l) const { return in[i]->data[l.offset(in[i]->shape)]; }

  void operator()(const ir::Dot&) {
    Loop l({&in[0]->shape, &in[1]->shape});
    l.run([&] { o(0, l) += x(0, l) * x(1, l); });
  }
  void operator()(const ir::Map& op) {
    Loop l({&out[0].shape});
    l.run([&] { o(0, l) = tpusim::testing::plain_elementwise(op.kind, op.a, x(0, l), in.size() == 1 ? 0 : x(1, l)); });
  }
  void operator()(const ir::Reduce& op) {
    const bool max = op.kind == ir::Reduction::max;
    if (max) std::fill(out[0].data.begin(), out[0].data.end(), -1e300);
    Loop l({&in[0]->shape});
    l.run([&] { o(0, l) = max ? std::max(o(0, l), x(0, l)) : o(0, l) + x(0, l); });
  }
  void operator()(const ir::Rename&) { out[0].data = in[0]->data; }
  void operator()(const ir::MaskPadding& op) {
    const std::int64_t begin = first(op.axes, in[0]->shape, op.dim);
    const std::int64_t valid = in[0]->shape[static_cast<std::size_t>(ir::find_dim(in[0]->shape, op.dim))].valid;
    Loop l({&in[0]->shape});
    l.run([&] { o(0, l) = begin + l.position(op.dim) < valid ? x(0, l) : op.fill; });
  }
  void operator()(const ir::MaskCausal& op) {
    const std::int64_t q = first(op.query_axes, in[0]->shape, op.query), k = first(op.key_axes, in[0]->shape, op.key);
    Loop l({&in[0]->shape});
    l.run([&] { o(0, l) = k + l.position(op.key) <= q + l.position(op.query) ? x(0, l) : op.fill; });
  }
  void operator()(const ir::Rope& op) {
    const std::int64_t begin = first(op.axes, in[0]->shape, op.positions);
    const std::int64_t d = in[0]->shape[static_cast<std::size_t>(ir::find_dim(in[0]->shape, op.rotated))].size;
    const std::int64_t half = stride_of(in[0]->shape, op.rotated) * d / 2;
    Loop l({&in[0]->shape});
    l.run([&] {
      const std::int64_t i = l.position(op.rotated);
      if (i >= d / 2) return;
      const std::size_t a = l.offset(in[0]->shape), b = a + static_cast<std::size_t>(half);
      const double angle = static_cast<double>(begin + l.position(op.positions)) *
                           std::pow(op.theta, -2.0 * static_cast<double>(i) / static_cast<double>(d));
      const double c = std::cos(angle), s = op.inverse ? -std::sin(angle) : std::sin(angle);
      out[0].data[a] = in[0]->data[a] * c - in[0]->data[b] * s;
      out[0].data[b] = in[0]->data[b] * c + in[0]->data[a] * s;
    });
  }
  // Offset added by the row that an id names, or -1 where another device has it.
  std::int64_t row(double id, std::int64_t begin, std::int64_t rows, std::int64_t stride) const {
    const std::int64_t local = static_cast<std::int64_t>(id) - begin;
    return local >= 0 && local < rows ? local * stride : -1;
  }
  void operator()(const ir::Lookup& op) {
    const ir::Shape& table = in[0]->shape;
    const std::int64_t rows = table[static_cast<std::size_t>(ir::find_dim(table, op.rows))].size;
    Loop l({&out[0].shape});
    l.run([&] {
      const std::int64_t r = row(x(1, l), first(op.axes, table, op.rows), rows, stride_of(table, op.rows));
      o(0, l) = r < 0 ? 0 : in[0]->data[static_cast<std::size_t>(r) + l.offset(table)];
    });
  }
  void operator()(const ir::LookupGrad& op) {
    const ir::Shape& table = out[0].shape;
    Loop l({&in[1]->shape});
    l.run([&] {
      const std::int64_t r =
          row(x(0, l), first(op.axes, table, op.rows.name), op.rows.size, stride_of(table, op.rows.name));
      if (r >= 0) out[0].data[static_cast<std::size_t>(r) + l.offset(table)] += x(1, l);
    });
  }
  void operator()(const ir::Pick& op) {
    const ir::Shape& s = in[0]->shape;
    const std::int64_t classes = s[static_cast<std::size_t>(ir::find_dim(s, op.classes))].size;
    Loop l({&out[0].shape});
    l.run([&] {
      const std::int64_t r = row(x(1, l), first(op.axes, s, op.classes), classes, stride_of(s, op.classes));
      o(0, l) = r < 0 ? 0 : in[0]->data[static_cast<std::size_t>(r) + l.offset(s)];
    });
  }
  void operator()(const ir::PickGrad& op) {
    const ir::Shape& s = out[0].shape;
    Loop l({&in[1]->shape});
    l.run([&] {
      const std::int64_t r =
          row(x(0, l), first(op.axes, s, op.classes.name), op.classes.size, stride_of(s, op.classes.name));
      if (r >= 0) out[0].data[static_cast<std::size_t>(r) + l.offset(s)] = x(1, l);
    });
  }

  // Attention row by row: q, k, v in; probabilities of one query over the keys.
  template <class Row>
  void attention(double scale, bool causal, const MeshAxes& axes, Row body) {
    const ir::DimName seq{ir::Axis::seq, 0}, key{ir::Axis::seq, 1}, head{ir::Axis::head_dim, 0};
    ir::Shape outer;
    for (const ir::Dim& d : in[0]->shape)
      if (d.name != head) outer.push_back(d);
    const std::int64_t keys = in[1]->shape[static_cast<std::size_t>(ir::find_dim(in[1]->shape, key))].size;
    const std::int64_t dims = in[0]->shape[static_cast<std::size_t>(ir::find_dim(in[0]->shape, head))].size;
    const std::int64_t begin = first(axes, in[0]->shape, seq);
    Loop l({&outer});
    l.run([&] {
      std::vector<double> p(static_cast<std::size_t>(keys));
      double sum = 0;
      const auto entry = [&](const Tensor& t, std::int64_t j, std::int64_t h) {
        return l.offset(t.shape) + static_cast<std::size_t>(j * stride_of(t.shape, key) + h * stride_of(t.shape, head));
      };
      for (std::int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (std::int64_t h = 0; h < dims; ++h)
          score += in[0]->data[entry(*in[0], 0, h)] * in[1]->data[entry(*in[1], j, h)];
        const bool seen = !causal || j <= begin + l.position(seq);
        p[static_cast<std::size_t>(j)] = seen ? std::exp(score * scale) : 0;
        sum += p[static_cast<std::size_t>(j)];
      }
      for (double& e : p) e /= sum;
      body(l, p, std::log(sum), dims, entry);
    });
  }
  void operator()(const ir::Flash& op) {
    attention(
        op.scale, op.causal, op.query_axes, [&](Loop& l, const auto& p, double lse, std::int64_t dims, auto entry) {
          o(1, l) = lse;
          for (std::size_t j = 0; j < p.size(); ++j)
            for (std::int64_t h = 0; h < dims; ++h)
              out[0].data[entry(out[0], 0, h)] += p[j] * in[2]->data[entry(*in[2], static_cast<std::int64_t>(j), h)];
        });
  }
  void operator()(const ir::FlashGrad& op) {
    attention(op.scale, op.causal, op.query_axes, [&](Loop&, const auto& p, double, std::int64_t dims, auto entry) {
      const Tensor &q = *in[0], &k = *in[1], &v = *in[2], &y = *in[3], &dy = *in[5];
      double delta = 0;
      for (std::int64_t h = 0; h < dims; ++h) delta += y.data[entry(y, 0, h)] * dy.data[entry(dy, 0, h)];
      for (std::size_t jj = 0; jj < p.size(); ++jj) {
        const std::int64_t j = static_cast<std::int64_t>(jj);
        double dp = 0;
        for (std::int64_t h = 0; h < dims; ++h) dp += dy.data[entry(dy, 0, h)] * v.data[entry(v, j, h)];
        const double ds = p[jj] * (dp - delta) * op.scale;
        for (std::int64_t h = 0; h < dims; ++h) {
          out[0].data[entry(out[0], 0, h)] += ds * k.data[entry(k, j, h)];
          out[1].data[entry(out[1], j, h)] += ds * q.data[entry(q, 0, h)];
          out[2].data[entry(out[2], j, h)] += p[jj] * dy.data[entry(dy, 0, h)];
        }
      }
    });
  }
  void operator()(const ir::Fill& op) { std::fill(out[0].data.begin(), out[0].data.end(), op.value); }
  void operator()(const ir::Update& op) {
    Loop l({&out[0].shape});
    l.run([&] {
      const double p = x(0, l), g = x(1, l) * x(2, l);
      if (op.kind == ir::Optimizer::sgd) {
        o(0, l) = p - op.learning_rate * g;
      } else if (op.kind == ir::Optimizer::adamw) {
        const double m = op.beta1 * x(3, l) + (1 - op.beta1) * g, v = op.beta2 * x(4, l) + (1 - op.beta2) * g * g;
        const double mh = m / (1 - std::pow(op.beta1, x(5, l))), vh = v / (1 - std::pow(op.beta2, x(5, l)));
        o(0, l) = p - op.learning_rate * (mh / (std::sqrt(vh) + op.eps) + op.weight_decay * p);
        o(1, l) = m;
        o(2, l) = v;
      } else {
        throw std::logic_error("an optimizer that this evaluator lacks");
      }
    });
  }
  template <class Collective>
  void operator()(const Collective&) {
    throw std::logic_error("a collective is not local");
  }
};

// Copies between a tensor and the part of a longer one that begins at `begin` on dim `d`.
void copy_part(Tensor& to, const Tensor& from, ir::DimName name, std::int64_t begin, bool into) {
  Loop l({into ? &from.shape : &to.shape});
  l.run([&] {
    const Tensor& whole = into ? to : from;
    const std::size_t part = l.offset(into ? from.shape : to.shape);
    const std::size_t at = l.offset(whole.shape) + static_cast<std::size_t>(begin * stride_of(whole.shape, name));
    if (into)
      to.data[at] = from.data[part];
    else
      to.data[part] = from.data[at];
  });
}
std::int64_t size_of(const Tensor& t, ir::DimName name) {
  return t.shape[static_cast<std::size_t>(ir::find_dim(t.shape, name))].size;
}
Tensor reduced(const PerDevice& x, const std::vector<std::int64_t>& group, ir::Reduction kind) {
  Tensor sum = x[static_cast<std::size_t>(group[0])];
  for (std::size_t i = 1; i < group.size(); ++i)
    for (std::size_t e = 0; e < sum.data.size(); ++e) {
      const double other = x[static_cast<std::size_t>(group[i])].data[e];
      sum.data[e] = kind == ir::Reduction::max ? std::max(sum.data[e], other) : sum.data[e] + other;
    }
  return sum;
}

// Collectives by their mathematical definition. False for other ops.
bool collective(const ir::OpKind& kind, const Mesh& mesh, const PerDevice& x, PerDevice& y, const ir::Shape& shape) {
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    Tensor& out = y[static_cast<std::size_t>(d)];
    const Tensor& own = x[static_cast<std::size_t>(d)];
    if (const auto* gather = std::get_if<ir::AllGather>(&kind)) {
      out = zeros(shape);
      const std::vector<std::int64_t> group = mesh.group_of(d, gather->axes);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Tensor& part = x[static_cast<std::size_t>(group[i])];
        copy_part(out, part, gather->dim, static_cast<std::int64_t>(i) * size_of(part, gather->dim), true);
      }
    } else if (const auto* slice = std::get_if<ir::Slice>(&kind)) {
      out = zeros(shape);
      copy_part(out, own, slice->dim, mesh.index_in(d, slice->axes) * size_of(out, slice->dim), false);
    } else if (const auto* all = std::get_if<ir::AllReduce>(&kind)) {
      out = reduced(x, mesh.group_of(d, all->axes), all->kind);
    } else if (const auto* scatter = std::get_if<ir::ReduceScatter>(&kind)) {
      out = zeros(shape);
      const Tensor sum = reduced(x, mesh.group_of(d, scatter->axes), ir::Reduction::sum);
      copy_part(out, sum, scatter->dim, mesh.index_in(d, scatter->axes) * size_of(out, scatter->dim), false);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Tensor> random_inputs(const ir::Program& global, Random& random, std::int64_t ids) {
  std::vector<Tensor> inputs(global.values.size());
  for (std::size_t v = 0; v < global.values.size(); ++v) {
    const ir::Value& value = global.values[v];
    if (value.producer.valid()) continue;
    Tensor t = zeros(value.type.shape);
    Loop l({&value.type.shape});
    l.run([&] {
      bool valid = true;
      for (std::size_t i = 0; i < l.dims.size(); ++i) valid = valid && l.at[i] < l.dims[i].valid;
      const double entry = value.type.dtype == ir::DType::i32
                               ? static_cast<double>(random.below(static_cast<std::uint64_t>(ids)))
                               : 0.5 * random.normal();
      if (valid) t.data[l.offset(t.shape)] = entry;
    });
    inputs[v] = t;
  }
  return inputs;
}

Tensor shard(const Tensor& whole, const PartitionSpec& spec, const Mesh& mesh, std::int64_t device) {
  Tensor part = whole;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    ir::Shape shape = part.shape;
    shape[d].size /= mesh.size(spec.dims[d]);
    Tensor next = zeros(shape);
    copy_part(next, part, shape[d].name, mesh.index_in(device, spec.dims[d]) * shape[d].size, false);
    part = next;
  }
  return part;
}

void evaluate(const ir::Program& program, const Mesh& mesh, std::vector<PerDevice>& values) {
  for (const ir::Op& op : program.ops) {
    PerDevice& y = values[static_cast<std::size_t>(op.results[0].index)];
    y.resize(static_cast<std::size_t>(mesh.devices()));
    if (!op.operands.empty() && collective(op.kind, mesh, values[static_cast<std::size_t>(op.operands[0].index)], y,
                                           program.value(op.results[0]).type.shape))
      continue;
    for (const ir::ValueId r : op.results)
      values[static_cast<std::size_t>(r.index)].resize(static_cast<std::size_t>(mesh.devices()));
    for (std::int64_t d = 0; d < mesh.devices(); ++d) {
      Device one{mesh, d, {}, {}};
      for (const ir::ValueId i : op.operands)
        one.in.push_back(&values[static_cast<std::size_t>(i.index)][static_cast<std::size_t>(d)]);
      for (const ir::ValueId r : op.results) one.out.push_back(zeros(program.value(r).type.shape));
      std::visit(one, op.kind);
      for (std::size_t r = 0; r < op.results.size(); ++r)
        values[static_cast<std::size_t>(op.results[r].index)][static_cast<std::size_t>(d)] = one.out[r];
    }
  }
}

std::string first_difference(const ir::Program& global, const std::vector<PerDevice>& whole, const Partitioned& p,
                             const std::vector<PerDevice>& local, const Mesh& mesh) {
  for (std::size_t v = 0; v < global.values.size(); ++v) {
    const Placed& placed = p.placed[v];
    const PerDevice& parts = local[static_cast<std::size_t>(placed.local.index)];
    double largest = 1;
    for (const double e : whole[v][0].data) largest = std::max(largest, std::abs(e));
    for (std::int64_t d = 0; d < mesh.devices(); ++d) {
      const Tensor expected = shard(whole[v][0], placed.spec, mesh, d);
      const Tensor found = reduced(parts, mesh.group_of(d, placed.spec.partial), placed.spec.partial_kind);
      for (std::size_t e = 0; e < expected.data.size(); ++e)
        if (!(std::abs(found.data[e] - expected.data[e]) <= 1e-9 * largest))
          return "value " + std::to_string(v) + " " + std::string(global.values[v].label) + " on device " +
                 std::to_string(d) + ": " + std::to_string(found.data[e]) + ", not " + std::to_string(expected.data[e]);
    }
  }
  return "";
}

std::string compare(const ir::Program& global, const Partitioned& p, const Mesh& mesh, Random& random,
                    std::int64_t ids) {
  const std::vector<Tensor> inputs = random_inputs(global, random, ids);
  const Mesh one;
  std::vector<PerDevice> whole(global.values.size()), local(p.local.values.size());
  for (std::size_t v = 0; v < global.values.size(); ++v) {
    if (global.values[v].producer.valid()) continue;
    whole[v] = {inputs[v]};
    const Placed& placed = p.placed[v];
    for (std::int64_t d = 0; d < mesh.devices(); ++d)
      local[static_cast<std::size_t>(placed.local.index)].push_back(shard(inputs[v], placed.spec, mesh, d));
  }
  evaluate(global, one, whole);
  evaluate(p.local, mesh, local);
  return first_difference(global, whole, p, local, mesh);
}

}  // namespace tpusim::spmd::testing
