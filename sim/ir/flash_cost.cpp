// Cost of blocked attention (Dao 2023, "FlashAttention-2", section 3.1.1 on skipped blocks).
//
// Scores are computed in blocks of `block` queries x `block` keys; the last block of either side has its true size.
// With causal attention a block is skipped when all its keys lie after all its queries. Query block i (queries i B .. i
// B + r - 1) then needs the key blocks 0..i, so min(i + 1, number of key blocks) of them. Forward: 2 products a block,
// Q K^T and P V. Backward: 5, Q K^T again, dP = dO V^T, dV = P^T dO, dQ = dS K, dK = dS^T Q. Model FLOPs: 2 and 4
// products over all S x T scores (PaLM, Chowdhery et al. 2022, appendix B). Where the queries are split over devices
// the number of skipped blocks depends on the device's position, so the full count is taken.
#include <algorithm>

#include "sim/base/checked.hpp"
#include "sim/ir/flash_dims.hpp"
#include "sim/ir/readers.hpp"

namespace tpusim::ir {
namespace {

std::int64_t size_of(const TensorType& type, DimName name) {
  const int i = find_dim(type.shape, name);
  TPUSIM_CHECK(i >= 0, "attention lacks the dim " + to_string(name));
  return type.shape[static_cast<std::size_t>(i)].size;
}

// So many blocks of `rows` queries and `columns` keys are computed.
struct BlockClass {
  std::int64_t count = 0, rows = 0, columns = 0;
};

struct Blocks {
  InlineVector<BlockClass, 4> classes;
  std::int64_t heads = 1;  // batch x kv_heads x q_group
  std::int64_t head_dim = 1;
  double computed_scores = 0;  // of one head
  double all_scores = 0;
};

// sum over i in [0, n) of min(i + 1, limit)
std::int64_t staircase(std::int64_t n, std::int64_t limit) {
  const std::int64_t rising = std::min(n, limit);
  return checked_add(checked_mul(rising, rising + 1, "the blocks of attention") / 2,
                     checked_mul(n - rising, limit, "the blocks of attention"), "the blocks of attention");
}

// The four classes: whole or last query block x whole or last key block.
Blocks count_blocks(bool causal, std::int64_t block, const std::vector<TensorType>& operands) {
  const TensorType& q = operands[0];
  const std::int64_t seq = size_of(q, kSeq), keys = size_of(operands[1], kKeySeq);
  Blocks out;
  for (const DimName name : {kBatch, kKvHeads, kQGroup})
    out.heads = checked_mul(out.heads, size_of(q, name), "the heads of attention");
  out.head_dim = size_of(q, kHeadDim);
  out.all_scores = static_cast<double>(seq) * static_cast<double>(keys);
  const std::int64_t full_rows = seq / block, last_rows = seq % block;
  const std::int64_t full_columns = keys / block, last_columns = keys % block;
  const auto add = [&out](std::int64_t count, std::int64_t rows, std::int64_t columns) {
    if (count <= 0 || rows == 0 || columns == 0) return;
    out.classes.push_back({count, rows, columns});
    out.computed_scores += static_cast<double>(count) * static_cast<double>(rows) * static_cast<double>(columns);
  };
  if (!causal) {
    add(checked_mul(full_rows, full_columns), block, block);
    add(full_rows, block, last_columns);
    add(full_columns, last_rows, block);
    add(1, last_rows, last_columns);
    return out;
  }
  add(staircase(full_rows, full_columns), block, block);
  // Query block i reaches the last, partial key block, which has index full_columns, when i >= full_columns.
  add(full_rows - full_columns, block, last_columns);
  add(std::min(full_rows + 1, full_columns), last_rows, block);
  add(full_rows >= full_columns ? 1 : 0, last_rows, last_columns);
  return out;
}

// With r rows, c columns, d head_dim: [r,d]x[d,c], [r,c]x[c,d] and [c,r]x[r,d], each so many times a block.
void add_products(OpCost& cost, const Blocks& blocks, std::int64_t scores, std::int64_t rows, std::int64_t columns) {
  const std::int64_t d = blocks.head_dim;
  for (const BlockClass& c : blocks.classes) {
    const std::int64_t batch = checked_mul(blocks.heads, c.count, "the blocks of attention");
    cost.products.push_back({batch, c.rows, c.columns, d, scores});
    cost.products.push_back({batch, c.rows, d, c.columns, rows});
    if (columns > 0) cost.products.push_back({batch, c.columns, d, c.rows, columns});
  }
  const auto products = static_cast<double>(scores + rows + columns);
  const double per_score = 2.0 * static_cast<double>(blocks.heads) * static_cast<double>(d);
  cost.executed_flops = products * per_score * blocks.computed_scores;
}

}  // namespace

OpCost flash_cost(const Flash& flash, const std::vector<TensorType>& operands) {
  const Blocks blocks = count_blocks(flash.causal && flash.query_axes.empty(), flash.block, operands);
  OpCost cost;
  add_products(cost, blocks, 1, 1, 0);
  const auto heads = static_cast<double>(blocks.heads);
  cost.model_flops = 2 * 2.0 * heads * static_cast<double>(blocks.head_dim) * blocks.all_scores;
  // Per score: scale, running maximum, subtraction, exponential, running sum.
  cost.vector_flops = 5 * heads * blocks.computed_scores;
  return cost;
}

OpCost flash_grad_cost(const FlashGrad& flash, const std::vector<TensorType>& operands) {
  const Blocks blocks = count_blocks(flash.causal && flash.query_axes.empty(), flash.block, operands);
  OpCost cost;
  add_products(cost, blocks, 2, 1, 2);
  const auto heads = static_cast<double>(blocks.heads);
  cost.model_flops = 4 * 2.0 * heads * static_cast<double>(blocks.head_dim) * blocks.all_scores;
  // Per score: scale, subtraction, exponential; (dP - D) P, scale. Once per entry of o: the row sums D of dO times O.
  cost.vector_flops = 6 * heads * blocks.computed_scores + 2 * static_cast<double>(element_count(operands[0].shape));
  return cost;
}

}  // namespace tpusim::ir
