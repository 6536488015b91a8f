// Every collective algorithm on every grid, against the definition of the collective, on real numbers.
#include "sim/numeric/transport.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/random.hpp"

using namespace tpusim;
using numeric::Tensor;
using numeric::Transport;
using plan::CollectiveKind;

namespace {

const ir::DimName kSeq{ir::Axis::seq, 0}, kEmbed{ir::Axis::embed, 0};

plan::GroupAxis axis(int physical, std::int64_t size, fabric::Link link) {
  plan::GroupAxis a;
  a.physical = physical;
  a.size = a.physical_size = size;
  a.link = link;
  a.alpha = Seconds(1e-6);
  a.beta = BytesPerSecond(1e10);
  return a;
}

ir::TensorType matrix(ir::DType dtype, std::int64_t rows, std::int64_t columns) {
  return {dtype, {{kSeq, rows, rows}, {kEmbed, columns, columns}}, ir::Place::none};
}

// Integers, so that sums are exact in any order.
std::vector<Tensor> random_tensors(const ir::TensorType& type, std::size_t members, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> tensors(members, Tensor(type));
  for (Tensor& t : tensors)
    for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(random.below(17)) - 8);
  return tensors;
}

std::vector<std::vector<const Tensor*>> as_operands(const std::vector<std::vector<Tensor>>& by_tensor) {
  std::vector<std::vector<const Tensor*>> operands(by_tensor[0].size());
  for (const auto& tensors : by_tensor)
    for (std::size_t m = 0; m < tensors.size(); ++m) operands[m].push_back(&tensors[m]);
  return operands;
}

// The definitions, entry by entry. Tensors are [rows, columns], gathered and scattered along columns.
Tensor gathered(const std::vector<Tensor>& shards) {
  const std::int64_t rows = shards[0].shape()[0].size, columns = shards[0].shape()[1].size;
  const auto n = static_cast<std::int64_t>(shards.size());
  Tensor whole(matrix(shards[0].dtype(), rows, columns * n));
  for (std::int64_t m = 0; m < n; ++m)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        whole.set(r * columns * n + m * columns + c, shards[static_cast<std::size_t>(m)].at(r * columns + c));
  return whole;
}
Tensor reduced(const std::vector<Tensor>& operands, ir::Reduction kind) {
  Tensor sum = operands[0];
  for (std::size_t m = 1; m < operands.size(); ++m)
    for (std::int64_t i = 0; i < sum.size(); ++i) {
      const double a = sum.at(i), b = operands[m].at(i);
      sum.set(i, kind == ir::Reduction::max ? std::max(a, b) : a + b);
    }
  return sum;
}
Tensor column_block(const Tensor& whole, std::int64_t n, std::int64_t index) {
  const std::int64_t rows = whole.shape()[0].size, columns = whole.shape()[1].size / n;
  Tensor block(matrix(whole.dtype(), rows, columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      block.set(r * columns + c, whole.at(r * columns * n + index * columns + c));
  return block;
}

// Runs every candidate plan of a collective on a bucket of two tensors and compares with the definition.
void check_all_candidates(CollectiveKind kind, ir::Reduction reduction, const std::vector<plan::GroupAxis>& axes,
                          ir::DType dtype) {
  std::int64_t n = 1;
  for (const plan::GroupAxis& a : axes) n *= a.size;
  const auto members = static_cast<std::size_t>(n);
  const bool gather = kind == CollectiveKind::all_gather, scatter = kind == CollectiveKind::reduce_scatter;
  // Odd sizes: parts and halves do not come out even, and an all-reduce of 3 x 5 + 2 x 3 = 21 entries needs padding.
  const std::int64_t split = scatter ? n : 1;
  const std::vector<ir::TensorType> operand_types = {matrix(dtype, 3, 5 * split), matrix(dtype, 2, 3 * split)};
  std::vector<std::vector<Tensor>> tensors;
  for (std::size_t t = 0; t < 2; ++t) tensors.push_back(random_tensors(operand_types[t], members, 7 * t + members));
  ir::OpKind op = ir::AllReduce{reduction, {}};
  if (gather) op = ir::AllGather{kEmbed, {}};
  if (scatter) op = ir::ReduceScatter{kEmbed, {}};
  std::vector<ir::TensorType> types = {matrix(dtype, 3, 5 * (gather ? n : 1)), matrix(dtype, 2, 3 * (gather ? n : 1))};
  const std::int64_t elements = gather || scatter ? 21 * n : 21;

  for (const plan::Candidate& candidate : plan::candidates(kind, reduction, elements, ir::bytes_of(dtype), axes)) {
    CAPTURE(candidate.plan.algorithm);
    CAPTURE(n);
    const Transport transport(candidate.plan);
    std::vector<std::vector<Tensor>> results, other_seed;
    const std::int64_t bytes = transport.run({op, op}, as_operands(tensors), types, 1, results);
    CHECK(bytes == candidate.plan.total_bytes);
    CHECK(transport.run({op, op}, as_operands(tensors), types, 2, other_seed) == bytes);
    CHECK(results == other_seed);
    for (std::size_t t = 0; t < 2; ++t) {
      const Tensor whole = gather ? gathered(tensors[t]) : reduced(tensors[t], reduction);
      for (std::size_t m = 0; m < members; ++m) {
        const Tensor expected = scatter ? column_block(whole, n, static_cast<std::int64_t>(m)) : whole;
        CHECK(results[m][t].to_doubles() == expected.to_doubles());
      }
    }
  }
}

void check_all_kinds(const std::vector<plan::GroupAxis>& axes, ir::DType dtype = ir::DType::f64) {
  check_all_candidates(CollectiveKind::all_gather, ir::Reduction::sum, axes, dtype);
  check_all_candidates(CollectiveKind::reduce_scatter, ir::Reduction::sum, axes, dtype);
  check_all_candidates(CollectiveKind::all_reduce, ir::Reduction::sum, axes, dtype);
  check_all_candidates(CollectiveKind::all_reduce, ir::Reduction::max, axes, dtype);
}

}  // namespace

TEST_CASE("every algorithm on one axis of 2 to 9 members does what its collective is defined to do") {
  for (std::int64_t n = 2; n <= 9; ++n)
    for (fabric::Link link : {fabric::Link::ring, fabric::Link::line, fabric::Link::switched})
      check_all_kinds({axis(0, n, link)});
}

TEST_CASE("every plan on a grid of two axes does what its collective is defined to do") {
  for (std::int64_t a = 2; a <= 4; ++a)
    for (std::int64_t b = 2; b <= 4; ++b) {
      check_all_kinds({axis(0, a, fabric::Link::ring), axis(1, b, fabric::Link::ring)});
      check_all_kinds({axis(0, a, fabric::Link::switched), axis(1, b, fabric::Link::line)});
    }
}

TEST_CASE("every plan on a grid of three axes does what its collective is defined to do") {
  check_all_kinds({axis(0, 2, fabric::Link::ring), axis(1, 2, fabric::Link::ring), axis(2, 2, fabric::Link::ring)});
  check_all_kinds({axis(0, 2, fabric::Link::switched), axis(1, 3, fabric::Link::ring), axis(2, 4, fabric::Link::line)});
}

TEST_CASE("collectives move f32 and bf16 as they move f64") {
  // Sums of up to 4 integers below 9 are exact in bf16.
  for (ir::DType dtype : {ir::DType::f32, ir::DType::bf16}) check_all_kinds({axis(0, 4, fabric::Link::ring)}, dtype);
}

TEST_CASE("a bf16 all-reduce rounds every partial sum") {
  // 256 + 1 is a tie and rounds to 256. The ring's one chunk belongs to member 0 and travels 3, 2, 1, 0, so that each
  // step adds 1 to 256; the exact sum, 259, would round to 260.
  const auto axes = std::vector<plan::GroupAxis>{axis(0, 4, fabric::Link::switched)};
  const plan::CollectivePlan chosen = plan::choose(CollectiveKind::all_reduce, ir::Reduction::sum, 1, 2, axes);
  const ir::TensorType type = matrix(ir::DType::bf16, 1, 1);
  std::vector<std::vector<Tensor>> tensors = {
      {Tensor(type, {1}), Tensor(type, {1}), Tensor(type, {1}), Tensor(type, {256})}};
  std::vector<std::vector<Tensor>> results;
  Transport(chosen).run({ir::AllReduce{}}, as_operands(tensors), {type}, 1, results);
  for (const auto& member : results) CHECK(member[0].at(0) == 256);
}

TEST_CASE("an all-gather of ids keeps them whole") {
  const plan::CollectivePlan chosen =
      plan::choose(CollectiveKind::all_gather, ir::Reduction::sum, 6, 4, {axis(0, 3, fabric::Link::ring)});
  const ir::TensorType type = matrix(ir::DType::i32, 1, 2);
  std::vector<std::vector<Tensor>> tensors = {
      {Tensor(type, {100000007, 1}), Tensor(type, {2, 3}), Tensor(type, {4, -5})}};
  std::vector<std::vector<Tensor>> results;
  Transport(chosen).run({ir::AllGather{kEmbed, {}}}, as_operands(tensors), {matrix(ir::DType::i32, 1, 6)}, 1, results);
  for (const auto& member : results) CHECK(member[0].to_doubles() == std::vector<double>{100000007, 1, 2, 3, 4, -5});
}

TEST_CASE("a plan of another kind or reduction than its op is refused") {
  const plan::CollectivePlan chosen =
      plan::choose(CollectiveKind::all_reduce, ir::Reduction::sum, 4, 8, {axis(0, 2, fabric::Link::ring)});
  const ir::TensorType type = matrix(ir::DType::f64, 1, 4);
  std::vector<std::vector<Tensor>> tensors = {random_tensors(type, 2, 1)}, results;
  const Transport transport(chosen);
  CHECK_THROWS_AS(transport.run({ir::ReduceScatter{kEmbed, {}}}, as_operands(tensors), {type}, 1, results),
                  InternalError);
  CHECK_THROWS_AS(transport.run({ir::AllReduce{ir::Reduction::max, {}}}, as_operands(tensors), {type}, 1, results),
                  InternalError);
}

TEST_CASE("a plan that loses a move is seen: the entries that did not arrive are missing") {
  plan::CollectivePlan broken = plan::choose(CollectiveKind::all_gather, ir::Reduction::sum, 12, 8,
                                             {axis(0, 2, fabric::Link::ring), axis(1, 2, fabric::Link::ring)});
  broken.phases.pop_back();
  const ir::TensorType type = matrix(ir::DType::f64, 1, 3);
  std::vector<std::vector<Tensor>> tensors = {
      {Tensor(type, {1, 2, 3}), Tensor(type, {4, 5, 6}), Tensor(type, {7, 8, 9}), Tensor(type, {1, 2, 3})}};
  std::vector<std::vector<Tensor>> results;
  Transport(broken).run({ir::AllGather{kEmbed, {}}}, as_operands(tensors), {matrix(ir::DType::f64, 1, 12)}, 1, results);
  CHECK(results[0][0].to_doubles() != gathered(tensors[0]).to_doubles());
}
