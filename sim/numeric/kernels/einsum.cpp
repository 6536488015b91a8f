#include "sim/numeric/kernels/einsum.hpp"

namespace tpusim::numeric::kernels {

Einsum make_einsum(const ir::Shape& lhs, const ir::Shape& rhs, const ir::Shape& result) {
  Einsum e;
  ir::Shape batch, rows, columns, contracted;
  for (const ir::Dim& dim : result) {
    const int in_lhs = ir::find_dim(lhs, dim.name), in_rhs = ir::find_dim(rhs, dim.name);
    TPUSIM_CHECK(in_lhs >= 0 || in_rhs >= 0, "a result dim of a dot is in neither operand");
    TPUSIM_CHECK(in_lhs < 0 || lhs[static_cast<std::size_t>(in_lhs)].size == dim.size,
                 "a dot's sizes disagree on the left");
    TPUSIM_CHECK(in_rhs < 0 || rhs[static_cast<std::size_t>(in_rhs)].size == dim.size,
                 "a dot's sizes disagree on the right");
    (in_lhs >= 0 && in_rhs >= 0 ? batch : in_lhs >= 0 ? rows : columns).push_back(dim);
  }
  for (const ir::Dim& dim : lhs) {
    if (ir::find_dim(result, dim.name) >= 0) continue;
    const int in_rhs = ir::find_dim(rhs, dim.name);
    TPUSIM_CHECK(in_rhs >= 0, "a dim of a dot's left operand alone is not in the result");
    TPUSIM_CHECK(rhs[static_cast<std::size_t>(in_rhs)].size == dim.size, "a dot's contracted sizes disagree");
    contracted.push_back(dim);
  }
  TPUSIM_CHECK(rhs.size() == batch.size() + columns.size() + contracted.size(),
               "a dim of a dot's right operand alone is not in the result");
  const auto append = [](ir::Shape& shape, const ir::Shape& dims) {
    for (const ir::Dim& dim : dims) shape.push_back(dim);
  };
  append(e.lhs, batch);
  append(e.lhs, rows);
  append(e.lhs, contracted);
  append(e.rhs, batch);
  append(e.rhs, contracted);
  append(e.rhs, columns);
  append(e.result, batch);
  append(e.result, rows);
  append(e.result, columns);
  e.batch = ir::element_count(batch);
  e.m = ir::element_count(rows);
  e.n = ir::element_count(columns);
  e.k = ir::element_count(contracted);
  return e;
}

}  // namespace tpusim::numeric::kernels
