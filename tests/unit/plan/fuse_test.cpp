#include <doctest/doctest.h>

#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

constexpr ir::DimName kB{ir::Axis::batch, 0}, kE{ir::Axis::embed, 0}, kM{ir::Axis::mlp, 0};
using Groups = std::vector<std::vector<std::int32_t>>;  // op numbers

struct Bench {
  ir::Program program;
  ir::Builder b{program};
  Binding binding;
  std::vector<ir::ValueId> kept;
  std::int64_t bucket_bytes = 26214400;

  static ir::TensorType tensor(std::vector<ir::Dim> dims) {
    ir::TensorType type;
    for (const ir::Dim& dim : dims) type.shape.push_back(dim);
    return type;
  }
  ir::ValueId matrix(const char* label) { return b.input(tensor({{kB, 8, 8}, {kE, 4, 4}}), label); }
  ir::ValueId weight() { return b.input(tensor({{kE, 4, 4}, {kM, 16, 16}}), "w", ir::Table::parameters); }
  ir::ValueId relu(ir::ValueId x) { return b.map(ir::Elementwise::relu, x, {"relu"}); }
  ir::ValueId dot(ir::ValueId x, ir::ValueId w) { return b.dot(x, w, {kB, kM}, ir::DType::f32, {"dot"}); }

  Groups fused() {
    const std::size_t n = program.values.size();
    binding = {std::vector<BufferRef>(n), std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n),
               std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n)};
    for (ir::ValueId v : kept) binding.keep[static_cast<std::size_t>(v.index)] = 1;
    for (std::size_t v = 0; v < n; ++v)
      binding.parameter[v] =
          program.values[v].table == ir::Table::parameters && !program.values[v].producer.valid() ? 1 : 0;
    return run();
  }
  Groups run() {
    std::vector<ir::OpId> ops;
    for (std::size_t i = 0; i < program.ops.size(); ++i) ops.push_back(ir::OpId(i));
    Groups out;
    for (const std::vector<ir::OpId>& group : fuse(program, ops, binding, bucket_bytes)) {
      out.emplace_back();
      for (ir::OpId id : group) out.back().push_back(id.index);
    }
    return out;
  }
};

TEST_CASE("a chain of elementwise ops and a reduction is one kernel") {
  Bench t;
  const ir::ValueId x = t.matrix("x");
  t.kept = {t.b.reduce(ir::Reduction::sum, t.b.map(ir::Elementwise::square, t.relu(x), {"s"}), {kE}, {"r"})};
  CHECK(t.fused() == Groups{{0, 1, 2}});
}

TEST_CASE("a dot stands alone and parts the elementwise ops before it from those after it") {
  Bench t;
  t.kept = {t.relu(t.dot(t.relu(t.matrix("x")), t.weight()))};
  CHECK(t.fused() == Groups{{0}, {1}, {2}});
}

TEST_CASE("an op does not join a kernel that reaches it through another one") {
  // 0: a = relu(x); 1: d = a . w; 2: m = reduce(d); 3: a + m. Op 3 reads a, but also what the dot makes of a: with 0
  // and 3 in one kernel, that kernel and the dot would wait for each other. It joins the reduction instead.
  Bench t;
  const ir::ValueId a = t.relu(t.matrix("x"));
  const ir::ValueId m = t.b.reduce(ir::Reduction::sum, t.dot(a, t.weight()), {kM}, {"m"});
  t.kept = {t.b.map(ir::Elementwise::add, a, m, {"sum"})};
  CHECK(t.fused() == Groups{{0}, {1}, {2, 3}});
}

TEST_CASE("two producers of one op join it when nothing lies between them") {
  Bench t;
  const ir::ValueId x = t.matrix("x"), y = t.matrix("y");
  t.kept = {t.b.map(ir::Elementwise::mul, t.relu(x), t.relu(y), {"p"})};
  CHECK(t.fused() == Groups{{0, 1, 2}});
}

TEST_CASE("a rename joins the dot that makes its operand") {
  Bench t;
  const ir::ValueId d = t.dot(t.matrix("x"), t.weight());
  t.kept = {t.b.add(ir::Rename{kM, {ir::Axis::mlp, 2}}, {d}, ir::DType::f32, {"renamed"})[0]};
  CHECK(t.fused() == Groups{{0, 1}});
}

TEST_CASE("a slice joins the dot that alone reads it, and stands alone where two read it") {
  for (const bool twice : {false, true}) {
    Bench t;
    const ir::ValueId x = t.matrix("x"),
                      w = t.b.input(Bench::tensor({{kE, 2, 4}, {kM, 16, 16}}), "w", ir::Table::activations);
    // The partitioner writes slices with their result types; by hand the type is put in.
    ir::Value half = t.program.value(x);
    half.type.shape[1].size = 2;
    half.producer = ir::OpId(0);
    t.program.values.push_back(half);
    ir::Op slice;
    slice.kind = ir::Slice{kE, {0}};
    slice.operands = {x};
    slice.results = {ir::ValueId(t.program.values.size() - 1)};
    t.program.ops.push_back(slice);
    t.kept = {t.dot(slice.results[0], w)};
    if (twice) t.kept.push_back(t.dot(slice.results[0], w));
    CHECK(t.fused() == (twice ? Groups{{0}, {1}, {2}} : Groups{{0, 1}}));
  }
}

TEST_CASE("a kernel has at most 24 ops") {
  Bench t;
  ir::ValueId x = t.matrix("x");
  for (int i = 0; i < 30; ++i) x = t.relu(x);
  t.kept = {x};
  const Groups groups = t.fused();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].size() == 24);
  CHECK(groups[1].size() == 6);
}

TEST_CASE("phases are not joined") {
  Bench t;
  const ir::ValueId a = t.relu(t.matrix("x"));
  t.b.phase = ir::Phase::backward;
  t.kept = {t.relu(a)};
  CHECK(t.fused() == Groups{{0}, {1}});
}

TEST_CASE("ops that nobody needs are left out, with what only they needed") {
  Bench t;
  const ir::ValueId x = t.matrix("x");
  t.dot(t.relu(x), t.weight());  // 0, 1: unused
  t.kept = {t.relu(x)};          // 2
  CHECK(t.fused() == Groups{{2}});
}

TEST_CASE("a parameter's cast before its gather is not joined with the cast's other user") {
  // 0: c = relu(w) stands for the cast; 1: all-gather(c); 2: relu(c), for which c need not be gathered.
  Bench t;
  const ir::ValueId c = t.relu(t.weight());
  const ir::ValueId g = t.b.add(ir::AllReduce{ir::Reduction::sum, {0}}, {c}, ir::DType::f32, {"g"})[0];
  t.program.ops[1].kind = ir::AllGather{kE, {0}};
  t.kept = {g, t.relu(c)};
  CHECK(t.fused() == Groups{{0}, {1}, {2}});
}

TEST_CASE("gathers of parameters share a bucket behind the casts of all, and a gather of activations stays alone") {
  // 0: cast of w1; 1: its gather; 2: cast of w2; 3: its gather; 4: gather of x; all of one kind, group and dtype.
  Bench t;
  const auto gather = [&](ir::ValueId v) {
    const ir::ValueId g = t.b.add(ir::AllReduce{ir::Reduction::sum, {0}}, {v}, ir::DType::f32, {"g"})[0];
    t.program.ops.back().kind = ir::AllGather{kE, {0}};
    return g;
  };
  const ir::ValueId x = t.matrix("x");
  t.kept = {gather(t.relu(t.weight())), gather(t.relu(t.weight())), gather(x)};
  CHECK(t.fused() == Groups{{0}, {2}, {1, 3}, {4}});
  t.bucket_bytes = 256;  // w1 and w2 have 256 bytes each
  CHECK(t.fused() == Groups{{0}, {1}, {2}, {3}, {4}});
}

TEST_CASE("a gather does not share a bucket with one that waits for it") {
  Bench t;
  ir::ValueId v = t.weight();
  for (int i = 0; i < 2; ++i) {
    v = t.b.add(ir::AllReduce{ir::Reduction::sum, {0}}, {t.relu(v)}, ir::DType::f32, {"g"})[0];
    t.program.ops.back().kind = ir::AllGather{kE, {0}};
  }
  t.kept = {v};
  CHECK(t.fused() == Groups{{0}, {1}, {2}, {3}});
}

TEST_CASE("reductions of gradients share a bucket, and a reduction that the chain of gradients needs stays alone") {
  // 0, 1, 2: sums over a mesh axis in backward; those of 0 and 2 are gradients.
  Bench t;
  t.b.phase = ir::Phase::backward;
  for (const char* label : {"dw1", "dx", "dw2"})
    t.kept.push_back(t.b.add(ir::AllReduce{ir::Reduction::sum, {0}}, {t.matrix(label)}, ir::DType::f32, {label})[0]);
  CHECK(t.fused() == Groups{{0}, {1}, {2}});
  for (std::size_t i : {0, 2}) t.binding.gradient[static_cast<std::size_t>(t.kept[i].index)] = 1;
  CHECK(t.run() == Groups{{0, 2}, {1}});
}

// Sums of tensors of `bytes` over mesh axis `axis`.
ir::OpId sum_of(ir::Program& program, std::int64_t bytes, std::uint8_t axis, ir::DType dtype = ir::DType::f32) {
  ir::Builder b(program);
  ir::TensorType type = Bench::tensor({{kE, bytes / ir::bytes_of(dtype), bytes / ir::bytes_of(dtype)}});
  type.dtype = dtype;
  b.add(ir::AllReduce{ir::Reduction::sum, {axis}}, {b.input(type, "v")}, dtype, {"sum"});
  return ir::OpId(program.ops.size() - 1);
}

TEST_CASE("a bucket holds neighbours up to its size, and a small tensor joins one that is full") {
  // 6,400 bytes: small is up to 6,400 / 64 = 100. 40 and 8,000 share, since 40 is small, and so does 80. 4,000 opens
  // the next, which 2,400 fills. 104 is not small, so it opens the third; 100 joins that.
  ir::Program program;
  Buckets buckets(program, 6400);
  std::vector<std::size_t> dealt;
  for (std::int64_t bytes : {40, 8000, 80, 4000, 2400, 104, 100})
    dealt.push_back(buckets.put(sum_of(program, bytes, 0)));
  CHECK(dealt == std::vector<std::size_t>{0, 0, 0, 1, 1, 2, 2});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets.ops(1) == std::vector<ir::OpId>{ir::OpId(3), ir::OpId(4)});
}

TEST_CASE("collectives of another kind, group, dtype or reduction have buckets of their own") {
  ir::Program program;
  Buckets buckets(program, 6400);
  std::vector<std::size_t> dealt;
  for (int round = 0; round < 2; ++round) {
    dealt.push_back(buckets.put(sum_of(program, 400, 0)));
    dealt.push_back(buckets.put(sum_of(program, 400, 1)));
    dealt.push_back(buckets.put(sum_of(program, 400, 0, ir::DType::bf16)));
    ir::OpId id = sum_of(program, 400, 0);
    std::get<ir::AllReduce>(program.ops.back().kind).kind = ir::Reduction::max;
    dealt.push_back(buckets.put(id));
    id = sum_of(program, 400, 0);
    program.ops.back().kind = ir::ReduceScatter{kE, {0}};
    dealt.push_back(buckets.put(id));
  }
  CHECK(dealt == std::vector<std::size_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
}

TEST_CASE("a kernel that overwrites an instance comes after those that read what was there") {
  // 0: n = relu(old), written over old; 1: d = dot(old, w) reads old as well.
  Bench t;
  const ir::ValueId old = t.matrix("old");
  const ir::ValueId fresh = t.relu(old);
  const ir::ValueId d = t.dot(old, t.weight());
  t.kept = {fresh, d};
  CHECK(t.fused() == Groups{{0}, {1}});
  t.binding.bound[static_cast<std::size_t>(old.index)] = t.binding.bound[static_cast<std::size_t>(fresh.index)] =
      BufferRef{BufferId(0), 0};
  t.binding.in_place[static_cast<std::size_t>(fresh.index)] = 1;
  CHECK(t.run() == Groups{{1}, {0}});
}

}  // namespace
}  // namespace tpusim::plan::passes
