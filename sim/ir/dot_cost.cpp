#include "sim/base/checked.hpp"
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

// 2 x (product of all distinct dims): one multiplication and one addition per term.
OpCost dot_cost(const std::vector<TensorType>& operands, const TensorType& result) {
  MatrixProduct p;
  const Shape& lhs = operands[0].shape;
  const Shape& rhs = operands[1].shape;
  for (const Dim& d : lhs) {
    const bool in_rhs = find_dim(rhs, d.name) >= 0;
    const bool in_result = find_dim(result.shape, d.name) >= 0;
    std::int64_t& side = in_rhs ? (in_result ? p.batch : p.k) : p.m;
    side = checked_mul(side, d.size, "the size of a matrix product");
  }
  for (const Dim& d : rhs)
    if (find_dim(lhs, d.name) < 0) p.n = checked_mul(p.n, d.size, "the size of a matrix product");
  OpCost cost;
  cost.products.push_back(p);
  cost.executed_flops = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
                        static_cast<double>(p.k);
  cost.model_flops = cost.executed_flops;
  return cost;
}

}  // namespace tpusim::ir
