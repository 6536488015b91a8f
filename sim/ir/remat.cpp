// What a block saves for its backward pass.
//
// Every needed value must follow, by ops that are cheap to run again (elementwise functions, masks, rope), from saved
// values, parameters and data. The bytes saved are least when the saved values are a smallest cut between what must be
// kept (x_in, results of products, flash, reductions and lookups) and what is needed, with a value's bytes as its
// capacity; of equal cuts the one nearest to the need, which runs the fewest ops again. (The min-cut formulation of
// rematerialization: Fu et al., "functorch min-cut partitioner", PyTorch 2022; the selective set: Korthikanti et al.
// 2022, section 5.)
//
// remat selective: a value with queries and keys both (scores, probabilities) is never saved; the product that makes
// the scores runs again. remat full: only x_in is saved (Chen et al. 2016).
#include "sim/ir/remat.hpp"

#include "sim/base/checked.hpp"
#include "sim/ir/flash_dims.hpp"

namespace tpusim::ir {
namespace {

bool is_scores(const TensorType& type) {
  return find_dim(type.shape, kSeq) >= 0 && find_dim(type.shape, kKeySeq) >= 0;
}

bool runs_again(const Op& op, const Program& program, Remat remat) {
  const OpKind& kind = op.kind;
  if (std::holds_alternative<Dot>(kind))
    return remat == Remat::selective && is_scores(program.value(op.results[0]).type);
  return std::holds_alternative<Map>(kind) || std::holds_alternative<Rename>(kind) ||
         std::holds_alternative<MaskPadding>(kind) || std::holds_alternative<MaskCausal>(kind) ||
         std::holds_alternative<Rope>(kind) || std::holds_alternative<Fill>(kind);
}

std::size_t index(ValueId id) {
  return static_cast<std::size_t>(id.index);
}

std::vector<bool> only_x_in(const Program& program, std::size_t forward_values) {
  std::vector<bool> saved(forward_values, false);
  if (program.x_in.valid()) saved[index(program.x_in)] = true;
  return saved;
}

}  // namespace

std::vector<bool> choose_saved(const Program& program, std::size_t forward_values, std::size_t forward_ops,
                               const std::vector<bool>& needed, Remat remat) {
  if (remat == Remat::full) return only_x_in(program, forward_values);
  // Nodes 2v (arrives) and 2v + 1 (is there), then source and sink.
  const int source = static_cast<int>(2 * forward_values), sink = source + 1;
  MinCut cut(sink + 1);
  std::vector<bool> reached = needed;
  const auto must_keep = [&](std::size_t v) { cut.edge(source, static_cast<int>(2 * v), MinCut::kInfinite); };
  std::int64_t total = 0;
  const auto node = [&](std::size_t v) {
    const std::int64_t bytes = program.values[v].type.bytes();
    total = checked_add(total, bytes, "the number of bytes that backward needs");
    if (total >= MinCut::kInfinite) capacity_error("the number of bytes that backward needs");
    cut.edge(static_cast<int>(2 * v), static_cast<int>(2 * v + 1), bytes);
    if (needed[v]) cut.edge(static_cast<int>(2 * v + 1), sink, MinCut::kInfinite);
  };
  for (std::size_t i = forward_ops; i-- > 0;) {
    const Op& op = program.ops[i];
    const bool again = runs_again(op, program, remat);
    for (const ValueId result : op.results) {
      if (!reached[index(result)]) continue;
      node(index(result));
      if (!again) must_keep(index(result));
      if (again)
        for (const ValueId operand : op.operands) {
          cut.edge(static_cast<int>(2 * index(operand) + 1), static_cast<int>(2 * index(result)), MinCut::kInfinite);
          reached[index(operand)] = true;
        }
    }
  }
  if (program.x_in.valid() && reached[index(program.x_in)]) {
    node(index(program.x_in));
    must_keep(index(program.x_in));
  }
  const std::vector<bool> side = cut.sink_side(source, sink);
  std::vector<bool> saved(forward_values, false);
  for (std::size_t v = 0; v < forward_values; ++v) {
    const bool kept_source = program.values[v].producer.valid() || ValueId(v) == program.x_in;
    saved[v] = kept_source && reached[v] && side[2 * v + 1] && !side[2 * v];
  }
  return saved;
}

std::vector<bool> choose_recomputed(const Program& program, std::size_t forward_ops, std::vector<bool> needed,
                                    const std::vector<bool>& saved) {
  std::vector<bool> again(forward_ops, false);
  for (std::size_t i = forward_ops; i-- > 0;) {
    const Op& op = program.ops[i];
    for (const ValueId result : op.results)
      if (needed[index(result)] && !saved[index(result)]) again[i] = true;
    if (!again[i]) continue;
    for (const ValueId operand : op.operands) needed[index(operand)] = true;
  }
  return again;
}

std::vector<ValueId> saved_values(const Program& program) {
  std::vector<bool> read(program.values.size(), false);
  for (const Op& op : program.ops) {
    if (op.phase != Phase::recompute && op.phase != Phase::backward) continue;
    for (const ValueId operand : op.operands) {
      const OpId producer = program.value(operand).producer;
      if (operand == program.x_in || (producer.valid() && program.op(producer).phase == Phase::forward))
        read[index(operand)] = true;
    }
  }
  std::vector<ValueId> out;
  for (std::size_t v = 0; v < read.size(); ++v)
    if (read[v]) out.push_back(ValueId(v));
  return out;
}

}  // namespace tpusim::ir
