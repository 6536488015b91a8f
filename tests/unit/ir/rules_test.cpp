// Each numbered rule of the program verifier broken once. (Rules of single ops: infer_test.cpp.)
#include <doctest/doctest.h>

#include <functional>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0};
Dim dim(DimName name, std::int64_t size) {
  return {name, size, size};
}

// x_in . w -> mean square loss and x_out, with tokens as unused data; differentiated. Ops: 0 dot, 1 square, 2 sum,
// backward...
Program sound() {
  Program p;
  p.name = "block";
  Builder b(p);
  p.x_in = b.input({DType::f32, {dim(kBatch, 4), dim(kEmbed, 8)}, Place::residual}, "x_in");
  Parameter q;
  q.name = "w";
  q.value = b.input({DType::f32, {dim(kEmbed, 8), dim(kMlp, 2)}, Place::none}, "w", Table::parameters);
  p.parameters.push_back(q);
  p.data.push_back({b.input({DType::i32, {dim(kBatch, 4)}, Place::none}, "tokens"), DataKind::tokens});
  p.x_out = b.dot(p.x_in, q.value, {kBatch, kMlp}, DType::f32, {"y", Place::mlp});
  p.loss = b.reduce(Reduction::sum, b.map(Elementwise::square, p.x_out, {"square"}), {kBatch, kMlp}, {"loss"});
  differentiate(p, {});
  return p;
}

// The rules that a broken program breaks, without what follows them.
std::vector<std::string> broken(const std::function<void(Program&)>& damage) {
  Program p = sound();
  damage(p);
  std::vector<std::string> out;
  for (const std::string& line : verify(p)) {
    const std::string rule = line.substr(0, line.find(':'));
    if (out.empty() || out.back() != rule) out.push_back(rule);
  }
  return out;
}

using Rules = std::vector<std::string>;
Value& at(Program& p, ValueId id) {
  return p.value(id);
}

}  // namespace

TEST_CASE("a sound program breaks no rule") {
  CHECK(verify(sound()) == Rules{});
}

TEST_CASE("program.c1: ids are of existing values") {
  CHECK(broken([](Program& p) { p.ops[0].operands[0] = ValueId(99); }) == Rules{"program.c1"});
  CHECK(broken([](Program& p) { p.ops[0].results[0] = ValueId(); }) == Rules{"program.c1"});
  CHECK(broken([](Program& p) { p.x_out = ValueId(99); }) == Rules{"program.c1"});
  CHECK(broken([](Program& p) { p.parameters[0].value = ValueId(); }) == Rules{"program.c1"});
  CHECK(broken([](Program& p) { p.data[0].value = ValueId(99); }) == Rules{"program.c1"});
}

TEST_CASE("program.c2: every value has a label") {
  CHECK(broken([](Program& p) { at(p, p.x_out).label = ""; }) == Rules{"program.c2"});
}

TEST_CASE("program.c3: sizes are at least 1") {
  CHECK(broken([](Program& p) { at(p, p.data[0].value).type.shape[0].valid = 0; }) == Rules{"program.c3"});
}

TEST_CASE("program.c4: a dim name is once in a tensor") {
  CHECK(broken([](Program& p) { at(p, p.data[0].value).type.shape.push_back(dim(kBatch, 4)); }) == Rules{"program.c4"});
}

TEST_CASE("program.c5: a value's producer makes it") {
  CHECK(broken([](Program& p) { at(p, p.data[0].value).producer = OpId(0); }).at(0) == "program.c5");
}

TEST_CASE("program.c6: phases ascend") {
  CHECK(broken([](Program& p) { p.ops[0].phase = Phase::update; }) == Rules{"program.c6"});
}

TEST_CASE("program.c7: an op has a result") {
  const Rules found = broken([](Program& p) { p.ops[0].results.clear(); });
  CHECK(std::find(found.begin(), found.end(), "program.c7") != found.end());
}

TEST_CASE("program.c8: an operand is made before it is read") {
  const Rules found = broken([](Program& p) { p.ops[0].operands[0] = p.ops[1].results[0]; });
  CHECK(found.at(0) == "program.c8");
}

TEST_CASE("program.c9: a value is assigned once") {
  const Rules found = broken([](Program& p) { p.ops[1].results[0] = p.ops[0].results[0]; });
  CHECK(std::find(found.begin(), found.end(), "program.c9") != found.end());
}

TEST_CASE("program.c10: result types are those of inference") {
  CHECK(broken([](Program& p) { at(p, p.x_out).type.shape[0] = dim(kBatch, 5); }).at(0) == "program.c10");
  CHECK(broken([](Program& p) {
          Value extra = at(p, p.loss);
          p.values.push_back(extra);
          p.ops[2].results.push_back(ValueId(p.values.size() - 1));
        }) == Rules{"program.c10"});
}

TEST_CASE("an op that breaks a rule of its own is named by that rule") {
  CHECK(broken([](Program& p) { p.ops[0].operands.erase_at(1); }) == Rules{"dot.c1"});
}

TEST_CASE("program.c11: x_in is an input of table activations") {
  CHECK(broken([](Program& p) { at(p, p.x_in).table = Table::optimizer; }) == Rules{"program.c11"});
}

TEST_CASE("program.c12: the loss is a floating-point scalar") {
  CHECK(broken([](Program& p) { p.loss = p.x_out; }) == Rules{"program.c12"});
}

TEST_CASE("program.c13: dx_out is an input with the dims of x_out") {
  CHECK(broken([](Program& p) { p.dx_out = p.x_in; }) == Rules{"program.c13"});
}

TEST_CASE("program.c14: dx_in has the dims of x_in") {
  CHECK(broken([](Program& p) { p.dx_in = p.x_out; }) == Rules{"program.c14"});
}

TEST_CASE("program.c15: a parameter is an input of table parameters") {
  CHECK(broken([](Program& p) { at(p, p.parameters[0].value).table = Table::activations; }) == Rules{"program.c15"});
}

TEST_CASE("program.c16: parameter names are unique") {
  CHECK(broken([](Program& p) { p.parameters.push_back(p.parameters[0]); }) == Rules{"program.c16"});
}

TEST_CASE("program.c17: a gradient has its parameter's dims and table gradients") {
  CHECK(broken([](Program& p) { p.parameters[0].gradient = p.dx_in; }) == Rules{"program.c17"});
}

TEST_CASE("program.c18: ids are i32 inputs") {
  CHECK(broken([](Program& p) { at(p, p.data[0].value).type.dtype = DType::f32; }) == Rules{"program.c18"});
  CHECK(broken([](Program& p) { p.data[0].kind = DataKind::features; }) == Rules{"program.c18"});
}
