#include <doctest/doctest.h>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0};
Dim dim(DimName name, std::int64_t size) {
  return {name, size, size};
}
TensorType bf16(Shape shape) {
  return {DType::bf16, shape, Place::none};
}

double flops_of(const OpCost& cost) {
  double total = 0;
  for (const MatrixProduct& p : cost.products)
    total += 2.0 * static_cast<double>(p.count * p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
  return total;
}

OpCost flash_of(std::int64_t batch, std::int64_t seq, std::int64_t keys, std::int64_t kv, std::int64_t group,
                std::int64_t d, Flash flash) {
  const TensorType q =
      bf16({dim(kBatch, batch), dim(kSeq, seq), dim(kKvHeads, kv), dim(kQGroup, group), dim(kHeadDim, d)});
  const TensorType k = bf16({dim(kBatch, batch), dim(kKeySeq, keys), dim(kKvHeads, kv), dim(kHeadDim, d)});
  const Inferred r = infer(flash, {q, k, k}, DType::bf16);
  return cost(flash, {q, k, k}, {r.results[0], r.results[1]});
}
OpCost flash_grad_of(std::int64_t seq, std::int64_t d, FlashGrad flash) {
  const TensorType q = bf16({dim(kBatch, 1), dim(kSeq, seq), dim(kKvHeads, 1), dim(kQGroup, 1), dim(kHeadDim, d)});
  const TensorType k = bf16({dim(kBatch, 1), dim(kKeySeq, seq), dim(kKvHeads, 1), dim(kHeadDim, d)});
  return cost(flash, {q, k, k, q, q, q}, {q, k, k});
}

}  // namespace

TEST_CASE("a product costs two operations per term and names its matrix shape") {
  // [2,3,8] . [3,8,16] with seq batched: batch 3, m 2, k 8, n 16; 2 x 3 x 2 x 8 x 16 = 1536.
  const TensorType x = bf16({dim(kBatch, 2), dim(kSeq, 3), dim(kEmbed, 8)});
  const TensorType w = bf16({dim(kSeq, 3), dim(kEmbed, 8), dim(kMlp, 16)});
  const TensorType y = bf16({dim(kBatch, 2), dim(kSeq, 3), dim(kMlp, 16)});
  const OpCost c = cost(Dot{}, {x, w}, {y});
  CHECK(c.executed_flops == 1536);
  CHECK(c.model_flops == 1536);
  CHECK(c.vector_flops == 0);
  REQUIRE(c.products.size() == 1);
  CHECK(c.products[0].batch == 3);
  CHECK(c.products[0].m == 2);
  CHECK(c.products[0].k == 8);
  CHECK(c.products[0].n == 16);
}

TEST_CASE("causal flash skips the blocks above the diagonal and takes the last ones at their true size") {
  // 5 queries and keys in blocks of 2: query blocks of 2, 2, 1 rows need 2, 4, 5 keys: 4 + 8 + 5 = 17 scores of 25.
  // 2 products x 2 x 17 x 3 (head_dim) x 8 heads (2 batch x 2 x 2).
  const OpCost c = flash_of(2, 5, 5, 2, 2, 3, Flash{1, true, 2, {}});
  CHECK(c.executed_flops == 2 * 2 * 17 * 3 * 8);
  CHECK(c.model_flops == 2 * 2 * 25 * 3 * 8);
  CHECK(c.vector_flops == 5 * 17 * 8);
  CHECK(flops_of(c) == c.executed_flops);
}

TEST_CASE("flash without a causal mask, or with queries split over devices, computes every score") {
  CHECK(flash_of(1, 5, 7, 1, 1, 3, Flash{1, false, 2, {}}).executed_flops == 2 * 2 * 35 * 3);
  const OpCost split = flash_of(1, 5, 7, 1, 1, 3, Flash{1, true, 2, {0}});
  CHECK(split.executed_flops == 2 * 2 * 35 * 3);
  CHECK(flops_of(split) == split.executed_flops);
}

TEST_CASE("a sequence of one block is computed whole, and long ones approach half") {
  CHECK(flash_of(1, 64, 64, 1, 1, 8, Flash{1, true, 128, {}}).executed_flops == 2 * 2 * 64 * 64 * 8);
  // n = 32 blocks of 128: n (n + 1) / 2 = 528 of 1024.
  const OpCost c = flash_of(1, 4096, 4096, 1, 1, 128, Flash{1, true, 128, {}});
  CHECK(c.executed_flops == 2 * 2 * 528.0 * 128 * 128 * 128);
  REQUIRE(c.products.size() == 2);
  CHECK(c.products[0].batch == 528);
  CHECK(c.products[0].m == 128);
  CHECK(c.products[0].n == 128);
  CHECK(c.products[0].k == 128);
}

TEST_CASE("flash's gradient runs five products over the same blocks, of which the model counts four in full") {
  const OpCost c = flash_grad_of(5, 3, FlashGrad{1, true, 2, {}});
  CHECK(c.executed_flops == 5 * 2 * 17 * 3);
  CHECK(c.model_flops == 4 * 2 * 25 * 3);
  CHECK(flops_of(c) == c.executed_flops);
}

TEST_CASE("block counts agree with walking the blocks, for every length up to 40 and several block sizes") {
  for (std::int64_t seq = 1; seq <= 40; ++seq)
    for (const std::int64_t keys : {seq, std::int64_t{7}})
      for (const std::int32_t block : {1, 3, 8, 64}) {
        std::int64_t scores = 0;
        for (std::int64_t i = 0; i < seq; i += block)
          for (std::int64_t j = 0; j < keys; j += block)
            if (j <= std::min(i + block, seq) - 1)
              scores += (std::min(i + block, seq) - i) * (std::min(j + block, keys) - j);
        const OpCost c = flash_of(1, seq, keys, 1, 1, 2, Flash{1, true, block, {}});
        CHECK(c.executed_flops == 8.0 * static_cast<double>(scores));
        CHECK(flops_of(c) == c.executed_flops);
      }
}

TEST_CASE("the vector unit's work is one operation per entry and primitive") {
  const TensorType x = bf16({dim(kBatch, 2), dim(kEmbed, 8)});
  CHECK(cost(Map{Elementwise::mul, 0}, {x, x}, {x}).vector_flops == 16);
  CHECK(cost(Map{Elementwise::silu, 0}, {x}, {x}).vector_flops == 5 * 16);
  CHECK(cost(Map{Elementwise::copy, 0}, {x}, {x}).vector_flops == 0);
  CHECK(cost(Reduce{Reduction::sum, {kEmbed}}, {x}, {bf16({dim(kBatch, 2)})}).vector_flops == 16);
  CHECK(cost(AllReduce{}, {x}, {x}).vector_flops == 0);
  CHECK(cost(Update{Optimizer::adamw}, {x, x, x, x, x, x}, {x, x, x}).vector_flops == 17 * 16);
}

TEST_CASE("a size beyond 64 bits is a named refusal, not a wrap-around") {
  const std::int64_t huge = std::int64_t{1} << 40;
  const TensorType x = bf16({dim(kBatch, huge), dim(kEmbed, huge)});
  CHECK_THROWS_AS(element_count(x.shape), tpusim::CapacityError);
  CHECK_THROWS_AS(cost(Dot{}, {x, x}, {bf16({})}), tpusim::CapacityError);
}
