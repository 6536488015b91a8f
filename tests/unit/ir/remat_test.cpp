#include "sim/ir/remat.hpp"

#include <doctest/doctest.h>

#include "sim/ir/compose.hpp"
#include "sim/ir/flash_dims.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0};
Dim dim(DimName name, std::int64_t size) {
  return {name, size, size};
}

std::vector<std::string_view> labels(const Program& p) {
  std::vector<std::string_view> out;
  for (const ValueId v : saved_values(p)) out.push_back(p.value(v).label);
  return out;
}

int count(const Program& p, Phase phase, std::string_view name) {
  int n = 0;
  for (const Op& op : p.ops) n += op.phase == phase && op_name(op.kind) == name;
  return n;
}

// y = silu(x w) . v with x [4, 8], w [8, 16], v [16, 8], all in bf16.
Program two_products() {
  Program p;
  p.name = "two";
  Builder b(p);
  p.x_in = b.input({DType::bf16, {dim(kBatch, 4), dim(kEmbed, 8)}, Place::residual}, "x_in");
  for (const char* name : {"w", "v"}) {
    Parameter q;
    q.name = name;
    const Shape shape = name[0] == 'w' ? Shape{dim(kEmbed, 8), dim(kMlp, 16)} : Shape{dim(kMlp, 16), dim(kEmbed, 8)};
    q.value = b.input({DType::f32, shape, Place::none}, "parameter", Table::parameters);
    p.parameters.push_back(q);
  }
  const ValueId w = b.cast(p.parameters[0].value, DType::bf16, {"w", Place::none, Table::parameters});
  const ValueId v = b.cast(p.parameters[1].value, DType::bf16, {"v", Place::none, Table::parameters});
  const ValueId up = b.dot(p.x_in, w, {kBatch, kMlp}, DType::bf16, {"up", Place::mlp});
  const ValueId hidden = b.map(Elementwise::silu, up, {"hidden", Place::mlp});
  p.x_out = b.dot(hidden, v, {kBatch, kEmbed}, DType::bf16, {"y", Place::residual});
  return p;
}

}  // namespace

TEST_CASE("a minimum cut takes the cheapest edges and, of equal cuts, the one nearest to the sink") {
  // 0 -5-> 1 -5-> 2 -5-> 3: three equal cuts.
  MinCut chain(4);
  for (int i = 0; i < 3; ++i) chain.edge(i, i + 1, 5);
  CHECK(chain.sink_side(0, 3) == std::vector<bool>{false, false, false, true});
  CHECK(chain.flow() == 5);
  // Two paths of 3 and 4 that join in an edge of 6: the joint is cheaper than 3 + 4.
  MinCut joined(5);
  joined.edge(0, 1, 3);
  joined.edge(0, 2, 4);
  joined.edge(1, 3, 10);
  joined.edge(2, 3, 10);
  joined.edge(3, 4, 6);
  CHECK(joined.sink_side(0, 4) == std::vector<bool>{false, false, false, false, true});
  CHECK(joined.flow() == 6);
  // And with a joint of 8 they are cut before it.
  MinCut apart(5);
  apart.edge(0, 1, 3);
  apart.edge(0, 2, 4);
  apart.edge(1, 3, 10);
  apart.edge(2, 3, 10);
  apart.edge(3, 4, 8);
  CHECK(apart.sink_side(0, 4) == std::vector<bool>{false, true, true, true, true});
  CHECK(apart.flow() == 7);
}

TEST_CASE("a minimum cut takes back flow that blocked a better way") {
  // 0 -> 1 -> 3 -> 5 and 0 -> 2 -> 3 -> 5 share 3 -> 5; 1 has another, longer way 1 -> 4 -> 6 -> 5. Whichever of 1 and
  // 2 is tried first, both units get through.
  for (const bool one_first : {false, true}) {
    MinCut cut(7);
    cut.edge(0, one_first ? 2 : 1, 1);
    cut.edge(0, one_first ? 1 : 2, 1);
    for (const auto& [from, to] : {std::pair{1, 3}, {2, 3}, {3, 5}, {1, 4}, {4, 6}, {6, 5}}) cut.edge(from, to, 1);
    CHECK(cut.sink_side(0, 5) == std::vector<bool>{false, false, false, false, false, true, false});
    CHECK(cut.flow() == 2);
  }
}

TEST_CASE("without remat the product is kept and its activation made again; no product runs twice") {
  Program p = two_products();
  differentiate(p, {Remat::none, DType::f32});
  // backward reads x_in (dw), up (silu's slope) and hidden (dv); hidden follows from up.
  CHECK(labels(p) == std::vector<std::string_view>{"x_in", "up"});
  CHECK(count(p, Phase::recompute, "dot") == 0);
  CHECK(count(p, Phase::recompute, "map.silu") == 1);
  CHECK(count(p, Phase::recompute, "map.cast") == 2);  // the parameters', always
  CHECK(count(p, Phase::backward, "dot") == 4);
}

TEST_CASE("full remat keeps x_in alone and runs what backward reads again") {
  Program p = two_products();
  differentiate(p, {Remat::full, DType::f32});
  CHECK(labels(p) == std::vector<std::string_view>{"x_in"});
  CHECK(count(p, Phase::recompute, "dot") == 1);  // up; nobody reads y
  CHECK(count(p, Phase::recompute, "map.silu") == 1);
  CHECK(verify(p) == std::vector<std::string>{});
}

TEST_CASE("a recomputed op is the forward op again: same kind, types, labels and tables") {
  Program p = two_products();
  differentiate(p, {Remat::full, DType::f32});
  for (const Op& op : p.ops) {
    if (op.phase != Phase::recompute) continue;
    bool found = false;
    for (const Op& forward : p.ops) {
      if (forward.phase != Phase::forward || !(forward.kind == op.kind) || forward.results.size() != op.results.size())
        continue;
      const Value &a = p.value(forward.results[0]), &b = p.value(op.results[0]);
      found = found || (a.type == b.type && a.label == b.label && a.table == b.table);
    }
    CHECK(found);
  }
}

TEST_CASE("where two kept tensors follow from one smaller one, the smaller one is kept") {
  // sigmoid(x) and tanh(x) of a bf16 product are read as f32: the product, at 2 bytes, replaces two at 4.
  Program p;
  Builder b(p);
  p.x_in = b.input({DType::bf16, {dim(kBatch, 4), dim(kEmbed, 8)}, Place::residual}, "x_in");
  Parameter q;
  q.name = "w";
  q.value = b.input({DType::bf16, {dim(kEmbed, 8), dim(kMlp, 8)}, Place::none}, "w", Table::parameters);
  p.parameters.push_back(q);
  const ValueId y = b.dot(p.x_in, q.value, {kBatch, kMlp}, DType::bf16, {"y", Place::mlp});
  const ValueId wide = b.cast(y, DType::f32, {"wide"});
  p.x_out =
      b.map(Elementwise::mul, b.map(Elementwise::sigmoid, wide, {"s"}), b.map(Elementwise::tanh, wide, {"t"}), {"z"});
  differentiate(p, {Remat::none, DType::f32});
  CHECK(labels(p) == std::vector<std::string_view>{"x_in", "y"});
}

TEST_CASE("data and parameters are never saved, however often backward reads them") {
  Program p;
  Builder b(p);
  const ValueId x = b.input({DType::f32, {dim(kBatch, 4), dim(kEmbed, 8)}, Place::none}, "features");
  p.data.push_back({x, DataKind::features});
  Parameter q;
  q.name = "w";
  q.value = b.input({DType::f32, {dim(kEmbed, 8)}, Place::none}, "w", Table::parameters);
  p.parameters.push_back(q);
  p.x_out = b.map(Elementwise::square, b.map(Elementwise::mul, x, q.value, {"xw"}), {"y"});
  differentiate(p, {Remat::none, DType::f32});
  CHECK(labels(p).empty());  // xw follows from data and parameter
}

TEST_CASE("differentiating twice, or a block with no successor and no loss, is our own fault") {
  Program p = two_products();
  differentiate(p, {});
  CHECK_THROWS_AS(differentiate(p, {}), tpusim::InternalError);
  Program q = two_products();
  q.x_out = ValueId();
  CHECK_THROWS_AS(differentiate(q, {}), tpusim::InternalError);
}
