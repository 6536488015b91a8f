#include "sim/spmd/decide.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/spmd/mesh_axes.hpp"

namespace tpusim::spmd {
namespace {

using ir::FactorKind;

bool is_reduced(FactorKind kind) {
  return kind == FactorKind::contracted || kind == FactorKind::sum || kind == FactorKind::max;
}

bool is_in_result(const ir::Factor& factor) {
  return std::any_of(factor.result_dim.begin(), factor.result_dim.end(), [](std::int8_t d) { return d >= 0; });
}

// Ops that only pass a tensor on, entry for entry, and do not widen it.
bool passes_entries_on(const ir::OpKind& kind, const ir::TensorType& operand, const ir::TensorType& result) {
  if (std::holds_alternative<ir::Rename>(kind)) return true;
  const ir::Map* map = std::get_if<ir::Map>(&kind);
  if (map == nullptr || ir::bytes_of(result.dtype) > ir::bytes_of(operand.dtype)) return false;
  return map->kind == ir::Elementwise::copy || map->kind == ir::Elementwise::cast ||
         map->kind == ir::Elementwise::neg || map->kind == ir::Elementwise::scale;
}

// What flows between blocks has examples; their sum over the batch is on its way to a parameter's gradient.
bool is_residual_stream(const ir::TensorType& type) {
  return type.place == ir::Place::residual && std::any_of(type.shape.begin(), type.shape.end(), [](const ir::Dim& d) {
           return d.name.axis == ir::Axis::batch;
         });
}

const MeshAxes& own_split(const OpView& view, const ir::Factor& factor, std::size_t i) {
  return view.have[i]->dims[static_cast<std::size_t>(factor.operand_dim[i])];
}

// Axes of a reduced factor that stay split. All operands have the common prefix. In a plain sum an operand that is
// whole beyond it is sliced for free to what the others have, unless the result wants those axes elsewhere; in a
// product the split one is gathered (that is what ZeRO-3 is).
MeshAxes reduced_split(const OpView& view, const ir::Factor& factor) {
  MeshAxes shared, longest;
  bool first = true, nested = true;
  for (std::size_t i = 0; i < view.op.operands.size(); ++i) {
    if (factor.operand_dim[i] < 0) continue;
    const MeshAxes& own = own_split(view, factor, i);
    const std::size_t same = first ? own.size() : common_prefix(longest, own);
    nested = nested && (first || same == std::min(longest.size(), own.size()));
    shared = first ? own : first_of(shared, common_prefix(shared, own));
    if (first || own.size() > longest.size()) longest = own;
    first = false;
  }
  if (factor.kind != FactorKind::sum || !nested) return shared;
  MeshAxes wanted_elsewhere;
  for (const PartitionSpec& target : view.target)
    for (const MeshAxes& list : target.dims) unite(wanted_elsewhere, list);
  for (std::size_t i = shared.size(); i < longest.size() && !wanted_elsewhere.contains(longest[i]); ++i)
    shared.push_back(longest[i]);
  return shared;
}

}  // namespace

MeshAxes may_pass(const OpView& view, std::size_t i) {
  const PartitionSpec& own = *view.have[i];
  if (i >= view.rule.linear.size() || !view.rule.linear[i] || own.partial_kind != ir::Reduction::sum) return {};
  // The residual stream's spec is fixed by its place: partials of it are only summed, then reduced. What has several
  // users is reduced before the first, else each would need a reduction of its own.
  if (is_residual_stream(view.operands[i]) &&
      (view.several_users[i] || !passes_entries_on(view.op.kind, view.operands[i], view.results[0])))
    return {};
  // A partial that is spread over more entries would cost more to reduce later.
  if (std::holds_alternative<ir::Map>(view.op.kind) && view.results[0].shape.size() > view.operands[i].shape.size())
    return {};
  MeshAxes blocked;
  for (std::size_t j = 0; j < view.op.operands.size(); ++j) {
    if (j == i) continue;
    unite(blocked, view.have[j]->partial);
    for (const ir::Factor& f : view.rule.factors) {
      if (f.operand_dim[j] < 0) continue;
      // On a contracted dim that both have, the other operand is gathered anyway: this one is whole over those axes.
      if (f.kind == FactorKind::contracted && f.operand_dim[i] >= 0) continue;
      unite(blocked, own_split(view, f, j));
    }
  }
  return without(own.partial, blocked);
}

MeshAxes shared_partials(const OpView& view) {
  MeshAxes shared;
  for (std::size_t i = 0; i < view.have.size(); ++i) {
    const PartitionSpec& own = *view.have[i];
    const MeshAxes sums = own.partial_kind == ir::Reduction::sum ? own.partial : MeshAxes{};
    shared = i == 0 ? sums : common(shared, sums);
  }
  return shared;
}

Decision decide(const OpView& view, const MeshAxes& passed) {
  const auto& factors = view.rule.factors;
  Decision decision;
  decision.passed = passed;
  for (std::size_t f = 0; f < factors.size(); ++f) decision.split.push_back({});
  MeshAxes claimed = passed;
  // Rule 1: reduced dims first, whatever the results want.
  for (std::size_t f = 0; f < factors.size(); ++f) {
    if (!is_reduced(factors[f].kind) || is_in_result(factors[f])) continue;
    decision.split[f] = without(reduced_split(view, factors[f]), claimed);
    unite(claimed, decision.split[f]);
  }
  // Rule 2: what the results should become, without the claimed axes, fixes the other factors; the first result that
  // has a factor decides.
  InlineVector<bool, 16> decided;
  for (std::size_t f = 0; f < factors.size(); ++f) decided.push_back(factors[f].kind == FactorKind::whole);
  for (std::size_t r = 0; r < view.target.size(); ++r)
    for (std::size_t f = 0; f < factors.size(); ++f) {
      if (decided[f] || factors[f].result_dim[r] < 0) continue;
      decided[f] = true;
      decision.split[f] = without(view.target[r].dims[static_cast<std::size_t>(factors[f].result_dim[r])], claimed);
      unite(claimed, decision.split[f]);
    }
  return decision;
}

PartitionSpec needed_spec(const OpView& view, const Decision& decision, std::size_t operand) {
  PartitionSpec needed;
  for (std::size_t d = 0; d < view.operands[operand].shape.size(); ++d) needed.dims.push_back({});
  for (std::size_t f = 0; f < view.rule.factors.size(); ++f)
    if (const std::int8_t d = view.rule.factors[f].operand_dim[operand]; d >= 0)
      needed.dims[static_cast<std::size_t>(d)] = decision.split[f];
  return needed;
}

PartitionSpec result_spec(const OpView& view, const Decision& decision, std::size_t result) {
  PartitionSpec spec;
  for (std::size_t d = 0; d < view.results[result].shape.size(); ++d) spec.dims.push_back({});
  MeshAxes partial = decision.passed;
  for (std::size_t f = 0; f < view.rule.factors.size(); ++f) {
    const ir::Factor& factor = view.rule.factors[f];
    if (factor.result_dim[result] >= 0) {
      spec.dims[static_cast<std::size_t>(factor.result_dim[result])] = decision.split[f];
    } else if (is_reduced(factor.kind) && !decision.split[f].empty()) {
      if (factor.kind == FactorKind::max) spec.partial_kind = ir::Reduction::max;
      unite(partial, decision.split[f]);
    }
  }
  TPUSIM_CHECK(spec.partial_kind == ir::Reduction::sum || decision.passed.empty(),
               "a partial sum cannot pass through a maximum");
  spec.partial = ascending(partial);
  return spec;
}

}  // namespace tpusim::spmd
