// Each partitioner rule alone, on programs of one to three ops over a mesh of a = 2, b = 4.
#include <doctest/doctest.h>

#include "sim/base/check.hpp"
#include "tests/unit/spmd/transformer_support.hpp"

namespace tpusim::spmd::testing {
namespace {

using ir::Axis;
using ir::DimName;
using ir::Elementwise;
using ir::Place;
using ir::Table;
using ir::ValueId;

constexpr DimName kBatch{Axis::batch, 0}, kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0};

struct Bench {
  Bench() { mesh.axes = {{"a", 2, "a"}, {"b", 4, "b"}}; }
  ValueId input(const ir::DimNames& names, const char* label, Table table = Table::activations,
                Place place = Place::none) {
    ir::TensorType type{ir::DType::f32, {}, place};
    for (const DimName n : names) type.shape.push_back({n, 16, 16});
    return b.input(type, label, table);
  }
  void rule(Axis axis, const MeshAxes& axes, Place place = Place::none) {
    tables.activations.push_back({axis, place, axes, "test"});
  }
  void parameter_rule(Axis axis, const MeshAxes& axes) {
    tables.parameters.push_back({axis, Place::none, axes, "test"});
  }
  std::string partitioned() {
    result = partition(program, tables, mesh);
    for (const std::string& line : ir::verify(result.local)) FAIL(line);
    return lines(collectives(result, mesh));
  }
  std::string spec(ValueId global) const {
    const Placed& p = result.placed[static_cast<std::size_t>(global.index)];
    return to_string(p.spec, result.local.value(p.local).type.shape, mesh);
  }
  int slices() const {
    int n = 0;
    for (const ir::Op& op : result.local.ops) n += std::holds_alternative<ir::Slice>(op.kind) ? 1 : 0;
    return n;
  }
  ir::Program program;
  ir::Builder b{program};
  ShardingTables tables;
  Mesh mesh;
  Partitioned result;
};

TEST_CASE("Rule 1: an axis that both operands have on a contracted dim stays, whatever the result wants") {
  Bench t;
  t.rule(Axis::embed, {1});
  t.rule(Axis::batch, {1});  // the result wants b on batch; the contraction has claimed it
  t.parameter_rule(Axis::embed, {1});
  const ValueId x = t.input({kEmbed, kMlp}, "x");
  const ValueId w = t.input({kEmbed, kBatch}, "w", Table::parameters);
  const ValueId y = t.b.dot(x, w, {kMlp, kBatch}, ir::DType::f32, {"y"});
  CHECK(t.partitioned() == "");
  CHECK(t.spec(y) == "[mlp, batch] partial sum over b");
}

TEST_CASE("Rule 1: where one operand alone is split on a contracted dim it is gathered") {
  Bench t;
  t.rule(Axis::batch, {0});
  t.parameter_rule(Axis::embed, {1});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  const ValueId y = t.b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"y"});
  CHECK(t.partitioned() == "forward AG b embed w f32 64\n");  // 16 x 16 / 4
  CHECK(t.spec(y) == "[batch: a, mlp]");
}

TEST_CASE("Rule 1: operands that share only the major axis of a contracted dim keep that one") {
  Bench t;
  t.rule(Axis::embed, {0, 1});
  t.parameter_rule(Axis::embed, {0});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  const ValueId y = t.b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"y"});
  CHECK(t.partitioned() == "forward AG b embed x f32 32\n");  // 16 x 16 / 8
  CHECK(t.spec(y) == "[batch, mlp] partial sum over a");
}

TEST_CASE("Rule 2: a whole operand is sliced for free into what the result wants") {
  Bench t;
  t.rule(Axis::mlp, {1});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  const ValueId y = t.b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"y"});
  CHECK(t.partitioned() == "");
  CHECK(t.slices() == 1);
  CHECK(t.spec(y) == "[batch, mlp: b]");
}

TEST_CASE("Rule 2: an operand that is split on another dim over the same axis is gathered, then sliced") {
  Bench t;
  t.rule(Axis::mlp, {1}, Place::mlp);
  t.tables.parameters.push_back({Axis::batch, Place::none, {1}, "test"});
  const ValueId x = t.input({kBatch, kMlp}, "x", Table::parameters);
  const ValueId y = t.b.map(Elementwise::exp, x, {"y", Place::mlp});
  CHECK(t.partitioned() == "forward AG b batch x f32 64\n");
  CHECK(t.slices() == 1);
  CHECK(t.spec(y) == "[batch, mlp: b]");
}

TEST_CASE("Rule 2: what can be sliced without a gather is sliced before the gathers, so that less is gathered") {
  Bench t;
  t.rule(Axis::mlp, {1});
  t.tables.parameters.push_back({Axis::batch, Place::none, {0}, "test"});
  const ValueId x = t.input({kBatch, kMlp}, "x", Table::parameters);
  t.b.map(Elementwise::exp, x, {"y"});
  CHECK(t.partitioned() == "forward AG a batch x f32 32\n");  // 8 x 4 entries, not 8 x 16
}

TEST_CASE("Rule 2: a cast copy of a parameter stays as the parameter is, so the gather moves the narrow dtype") {
  Bench t;
  t.parameter_rule(Axis::embed, {1});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  const ValueId cast = t.b.cast(w, ir::DType::bf16, {"w", Place::none, Table::parameters});
  t.b.dot(x, cast, {kBatch, kMlp}, ir::DType::bf16, {"y"});
  CHECK(t.partitioned() == "forward AG b embed w bf16 64\n");
  CHECK(t.spec(cast) == "[embed: b, mlp]");
}

TEST_CASE("Rule 3: users in one phase share a gather, recompute and backward are one call, forward is another") {
  Bench t;
  t.parameter_rule(Axis::embed, {1});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  for (const ir::Phase phase :
       {ir::Phase::forward, ir::Phase::forward, ir::Phase::recompute, ir::Phase::backward, ir::Phase::backward}) {
    t.b.phase = phase;
    t.b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"y"});
  }
  CHECK(t.partitioned() ==
        "forward AG b embed w f32 64\n"
        "recompute AG b embed w f32 64\n");
}

// y = x . w, contracted over embed, which b splits: a partial sum over b.
struct PartialBench : Bench {
  PartialBench() {
    rule(Axis::embed, {1});
    parameter_rule(Axis::embed, {1});
    x = input({kBatch, kEmbed}, "x");
    w = input({kEmbed, kMlp}, "w", Table::parameters);
    y = b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"y"});
  }
  ValueId x, w, y;
};

TEST_CASE("Rule 4: a partial sum passes through what is linear and is reduced where something else needs it") {
  PartialBench t;
  const ValueId scaled = t.b.map(Elementwise::scale, t.y, {"scaled"}, 2);
  const ValueId cast = t.b.cast(scaled, ir::DType::bf16, {"cast"});
  const ValueId sum = t.b.map(Elementwise::add, cast, cast, {"sum"});
  const ValueId z = t.b.map(Elementwise::exp, sum, {"z"});
  const ValueId again = t.b.map(Elementwise::square, sum, {"again"});  // finds the reduced copy
  CHECK(t.partitioned() == "forward AR b sum sum bf16 256\n");
  CHECK(t.spec(sum) == "[batch, mlp] partial sum over b");
  CHECK(t.spec(z) == "[batch, mlp]");
  CHECK(t.spec(again) == "[batch, mlp]");
}

TEST_CASE("Rule 4: a partial sum is reduce-scattered where its wanted spec is split over the axis") {
  PartialBench t;
  t.rule(Axis::batch, {1});
  const ValueId z = t.b.map(Elementwise::exp, t.y, {"z"});
  // x is wanted [batch, embed: b], since embed's rule stands first; y [batch: b, mlp].
  CHECK(t.partitioned() == "forward RS b batch y f32 256\n");
  CHECK(t.spec(z) == "[batch: b, mlp]");
}

TEST_CASE("Rule 4: a partial sum plus a whole value is reduced first") {
  PartialBench t;
  const ValueId whole = t.input({kBatch, kMlp}, "whole");
  const ValueId z = t.b.map(Elementwise::add, whole, t.y, {"z"});
  CHECK(t.partitioned() == "forward AR b sum y f32 256\n");
  CHECK(t.spec(z) == "[batch, mlp]");
}

TEST_CASE("Rule 4: a sum of values partial over different axes is reduced over those that they do not share") {
  Bench t;
  t.rule(Axis::embed, {0, 1});
  t.parameter_rule(Axis::embed, {0, 1});
  t.tables.gradients.push_back({Axis::embed, Place::none, {0}, "test"});
  const ValueId x = t.input({kBatch, kEmbed}, "x");
  const ValueId w = t.input({kEmbed, kMlp}, "w", Table::parameters);
  const ValueId u = t.input({kEmbed, kMlp}, "u", Table::gradients);
  const ValueId both = t.b.dot(x, w, {kBatch, kMlp}, ir::DType::f32, {"both"});  // partial over a, b
  const ValueId one = t.b.dot(x, u, {kBatch, kMlp}, ir::DType::f32, {"one"});    // x gathered over b; partial over a
  const ValueId sum = t.b.map(Elementwise::add, both, one, {"sum"});
  CHECK(t.partitioned() ==
        "forward AG b embed x f32 32\n"
        "forward AR b sum both f32 256\n");
  CHECK(t.spec(one) == "[batch, mlp] partial sum over a");
  CHECK(t.spec(sum) == "[batch, mlp] partial sum over a");
}

TEST_CASE(
    "Rule 4: a product passes a partial sum on only where the other factor is whole over its axes and it is not "
    "spread") {
  SUBCASE("whole factor") {
    PartialBench t;
    const ValueId g = t.input({kMlp}, "g");
    const ValueId z = t.b.map(Elementwise::mul, t.y, g, {"z"});
    CHECK(t.partitioned() == "");
    CHECK(t.spec(z) == "[batch, mlp] partial sum over b");
  }
  SUBCASE("factor split over the axis") {
    PartialBench t;
    t.tables.optimizer.push_back({Axis::mlp, Place::none, {1}, "test"});
    const ValueId g = t.input({kMlp}, "g", Table::optimizer);
    t.b.map(Elementwise::mul, t.y, g, {"z"});
    CHECK(t.partitioned() ==
          "forward AR b sum y f32 256\n"
          "forward AG b mlp g f32 4\n");
  }
  SUBCASE("a small partial would be spread over a large tensor") {
    PartialBench t;
    const ValueId rows = t.b.reduce(ir::Reduction::sum, t.y, {kMlp}, {"rows"});
    const ValueId big = t.input({kBatch, kMlp}, "big");
    t.b.map(Elementwise::mul, rows, big, {"z"});
    CHECK(t.partitioned() == "forward AR b sum rows f32 16\n");
  }
  SUBCASE("the square of a partial sum is not linear") {
    PartialBench t;
    t.b.map(Elementwise::mul, t.y, t.y, {"z"});
    CHECK(t.partitioned() == "forward AR b sum y f32 256\n");
  }
}

TEST_CASE("Rule 4: a maximum over a split dim is a partial maximum and is reduced before any use") {
  Bench t;
  t.rule(Axis::mlp, {1});
  const ValueId x = t.input({kBatch, kMlp}, "x");
  const ValueId largest = t.b.reduce(ir::Reduction::max, x, {kMlp}, {"largest"});
  t.b.map(Elementwise::scale, largest, {"scaled"}, -1);
  CHECK(t.partitioned() == "forward AR b max largest f32 16\n");
  CHECK(t.spec(largest) == "[batch] partial max over b");
}

TEST_CASE("Rule 4: ports are reduced and brought to their wanted spec") {
  PartialBench t;
  t.rule(Axis::batch, {0}, Place::residual);
  const ValueId port = t.b.map(Elementwise::copy, t.y, {"port", Place::residual});
  t.program.x_out = port;
  CHECK(t.partitioned() == "forward AR b sum port f32 128\n");
  CHECK(to_string(t.result.specs[static_cast<std::size_t>(t.result.local.x_out.index)],
                  t.result.local.value(t.result.local.x_out).type.shape, t.mesh) == "[batch: a, mlp]");
  CHECK(t.spec(port) == "[batch: a, mlp] partial sum over b");  // as it was made first
}

TEST_CASE("A dim that an axis does not divide stays whole") {
  Bench t;
  const ValueId x = t.input({kBatch}, "x");
  t.b.map(Elementwise::exp, x, {"y"});
  t.mesh.axes[0].size = 3;  // 16 is no multiple of 3
  t.rule(Axis::batch, {0});
  CHECK(t.partitioned() == "");
  CHECK(t.spec(x) == "[batch]");
}

}  // namespace
}  // namespace tpusim::spmd::testing
