// Rules 1 to 5 of the partitioner (partitioner.hpp; ARCHITECTURE.md states them), one op after the other.
#include "sim/spmd/walk.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/spmd/local_kind.hpp"
#include "sim/spmd/local_writer.hpp"
#include "sim/spmd/mesh_axes.hpp"

namespace tpusim::spmd {
namespace {

using ir::FactorKind;

constexpr std::string_view kGathered = "rule 3: gathered for use";
constexpr std::string_view kNeeded = "rule 4: reduced where something not linear needs it";
constexpr std::string_view kPort = "rule 4: reduced where a port fixes the spec";
constexpr std::string_view kPortGathered = "rule 3: brought to the spec of a port";
constexpr std::string_view kGradient = "rule 4: reduced because the gradients table splits it";
constexpr std::string_view kNewParameter = "rule 5: the new parameter gathered to its own spec";

bool is_reduced(FactorKind kind) {
  return kind == FactorKind::contracted || kind == FactorKind::sum || kind == FactorKind::max;
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
  if (type.place != ir::Place::residual) return false;
  for (const ir::Dim& d : type.shape)
    if (d.name.axis == ir::Axis::batch) return true;
  return false;
}

// The recomputed forward and the backward of a block are one call: they share what they gather.
int call_of(ir::Phase phase) {
  switch (phase) {
    case ir::Phase::forward: return 0;
    case ir::Phase::recompute: return 1;
    case ir::Phase::backward: return 1;
    case ir::Phase::update: return 2;
  }
  return 0;
}

class Walk {
 public:
  Walk(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh, const UpdatePorts* update)
      : global_(global), tables_(tables), mesh_(mesh), update_(update), writer_(mesh, out_),
        homes_(global.values.size()), roles_(global.values.size(), Role::inner),
        uses_(global.values.size(), 0) {
    for (const ir::Op& op : global.ops)
      for (const ir::ValueId v : op.operands) ++uses_[static_cast<std::size_t>(v.index)];
  }
  WalkResult run();

 private:
  enum class Role : std::uint8_t { inner, port, gradient };
  struct Shared {
    Placed copy;
    int call;
  };
  struct Home {  // where a global value is
    Placed primary;
    PartitionSpec wanted;
    std::vector<Shared> copies;
  };
  struct Decision {
    InlineVector<MeshAxes, 16> split;  // by factor
    MeshAxes passed;                   // partial axes that the op passes on
  };

  Home& home(ir::ValueId id) { return homes_[static_cast<std::size_t>(id.index)]; }
  const PartitionSpec& spec(ir::ValueId id) { return home(id).primary.spec; }
  PartitionSpec wanted(ir::ValueId id) const;
  void assign_roles();
  void place_input(ir::ValueId id);
  void visit(ir::OpId id);
  MeshAxes may_pass(const ir::Op& op, const ir::ShardingRule& rule, std::size_t i);
  MeshAxes settle_partials(const ir::Op& op, const ir::ShardingRule& rule);
  MeshAxes reduced_split(const ir::Op& op, const ir::Factor& factor);
  void split_reduced(const ir::Op& op, const ir::ShardingRule& rule, Decision& decision, MeshAxes& claimed);
  void split_parallel(const ir::Op& op, const ir::ShardingRule& rule, Decision& decision, const MeshAxes& claimed);
  PartitionSpec result_target(const ir::Op& op, const ir::ShardingRule& rule, std::size_t r);
  PartitionSpec result_spec(const ir::ShardingRule& rule, const Decision& decision, std::size_t r, std::size_t rank);
  void resolve(ir::ValueId id, const MeshAxes& axes, std::string_view reason);
  Placed use(ir::ValueId id, const PartitionSpec& needed);
  void fix(ir::ValueId id);
  void finish(WalkResult& result);

  const ir::Program& global_;
  const ShardingTables& tables_;
  const Mesh& mesh_;
  const UpdatePorts* update_;
  Partitioned out_;
  LocalWriter writer_;
  std::vector<Home> homes_;
  std::vector<Role> roles_;
  std::vector<int> uses_;  // by global value: operands that name it
  Cause cause_;
  std::vector<ir::TensorType> operand_types_, result_types_;
};

PartitionSpec Walk::wanted(ir::ValueId id) const {
  const ir::Value& value = global_.value(id);
  ir::Table table = value.table;
  if (update_ != nullptr) table = id == update_->parameter ? ir::Table::parameters : ir::Table::optimizer;
  return wanted_spec(tables_, table, value.type, mesh_);
}

void Walk::assign_roles() {
  const auto mark = [this](ir::ValueId id, Role role) {
    if (id.valid()) roles_[static_cast<std::size_t>(id.index)] = role;
  };
  if (update_ != nullptr) {
    mark(update_->new_parameter, Role::port);
    for (const ir::ValueId slot : update_->new_slots) mark(slot, Role::port);
    return;
  }
  for (const ir::Parameter& p : global_.parameters) mark(p.gradient, Role::gradient);
  mark(global_.x_out, Role::port);
  mark(global_.dx_in, Role::port);
}

void Walk::place_input(ir::ValueId id) {
  Home& h = home(id);
  h.wanted = wanted(id);
  h.primary = writer_.input(global_.value(id), h.wanted);
  out_.placed[static_cast<std::size_t>(id.index)] = h.primary;
}

WalkResult Walk::run() {
  out_.local.values.reserve(global_.values.size() * 2);
  out_.specs.reserve(global_.values.size() * 2);
  out_.local.ops.reserve(global_.ops.size() * 2);
  out_.placed.resize(global_.values.size());
  assign_roles();
  for (std::size_t v = 0; v < global_.values.size(); ++v)
    if (!global_.values[v].producer.valid()) place_input(ir::ValueId(v));
  for (std::size_t o = 0; o < global_.ops.size(); ++o) visit(ir::OpId(o));
  WalkResult result;
  finish(result);
  return result;
}

// Rule 4: over which of its partial axes operand i may stay partial and the result be partial in its stead.
MeshAxes Walk::may_pass(const ir::Op& op, const ir::ShardingRule& rule, std::size_t i) {
  const ir::ValueId value = op.operands[i];
  const PartitionSpec& own = spec(value);
  if (i >= rule.linear.size() || !rule.linear[i] || own.partial_kind != ir::Reduction::sum) return {};
  // The residual stream's spec is fixed by its place: partials of it are only summed, then reduced. What has several users
  // is reduced before the first, else each would need a reduction of its own.
  if (is_residual_stream(operand_types_[i]) &&
      (uses_[static_cast<std::size_t>(value.index)] > 1 ||
       !passes_entries_on(op.kind, operand_types_[i], result_types_[0])))
    return {};
  // A partial that is spread over more entries would cost more to reduce later.
  if (std::holds_alternative<ir::Map>(op.kind) && result_types_[0].shape.size() > operand_types_[i].shape.size())
    return {};
  MeshAxes blocked;
  for (std::size_t j = 0; j < op.operands.size(); ++j) {
    if (j == i) continue;
    const PartitionSpec& other = spec(op.operands[j]);
    unite(blocked, other.partial);
    for (const ir::Factor& f : rule.factors) {
      if (f.operand_dim[j] < 0) continue;
      // On a contracted dim that both have, the other operand is gathered anyway: this one is whole over those axes.
      if (f.kind == FactorKind::contracted && f.operand_dim[i] >= 0) continue;
      unite(blocked, other.dims[static_cast<std::size_t>(f.operand_dim[j])]);
    }
  }
  return without(own.partial, blocked);
}

// Reduces what may not pass; returns the axes over which the result is partial for its operands' sake.
MeshAxes Walk::settle_partials(const ir::Op& op, const ir::ShardingRule& rule) {
  MeshAxes passed;
  if (rule.additive) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const PartitionSpec& own = spec(op.operands[i]);
      const MeshAxes sums = own.partial_kind == ir::Reduction::sum ? own.partial : MeshAxes{};
      passed = i == 0 ? sums : common(passed, sums);
    }
    for (const ir::ValueId id : op.operands) resolve(id, without(spec(id).partial, passed), kNeeded);
    return passed;
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (spec(op.operands[i]).partial.empty()) continue;
    const MeshAxes keep = may_pass(op, rule, i);
    resolve(op.operands[i], without(spec(op.operands[i]).partial, keep), kNeeded);
    unite(passed, keep);
  }
  return passed;
}

// Axes of a reduced factor that stay split. All operands have the common prefix. In a plain sum an operand that is whole
// beyond it is sliced for free to what the others have, unless the result wants those axes elsewhere; in a product the split
// one is gathered (that is what ZeRO-3 is).
MeshAxes Walk::reduced_split(const ir::Op& op, const ir::Factor& factor) {
  MeshAxes shared, longest;
  bool first = true, nested = true;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (factor.operand_dim[i] < 0) continue;
    const MeshAxes& own = spec(op.operands[i]).dims[static_cast<std::size_t>(factor.operand_dim[i])];
    const std::size_t same = first ? own.size() : common_prefix(longest, own);
    nested = nested && (first || same == std::min(longest.size(), own.size()));
    shared = first ? own : first_of(shared, common_prefix(shared, own));
    if (first || own.size() > longest.size()) longest = own;
    first = false;
  }
  if (factor.kind != FactorKind::sum || !nested) return shared;
  MeshAxes wanted_elsewhere;
  for (const ir::ValueId r : op.results)
    for (const MeshAxes& list : home(r).wanted.dims) unite(wanted_elsewhere, list);
  for (std::size_t i = shared.size(); i < longest.size() && !wanted_elsewhere.contains(longest[i]); ++i)
    shared.push_back(longest[i]);
  return shared;
}

// Rule 1: they stay, whatever the result wants; the result is partial over them.
void Walk::split_reduced(const ir::Op& op, const ir::ShardingRule& rule, Decision& decision, MeshAxes& claimed) {
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    const ir::Factor& factor = rule.factors[f];
    bool in_result = false;
    for (const std::int8_t d : factor.result_dim) in_result = in_result || d >= 0;
    if (!is_reduced(factor.kind) || in_result) continue;
    decision.split[f] = without(reduced_split(op, factor), claimed);
    unite(claimed, decision.split[f]);
  }
}

// What rule 2 aims at for result r: its wanted spec; a parameter's cast copy stays as the parameter is, so that it is cast
// before it is gathered.
PartitionSpec Walk::result_target(const ir::Op& op, const ir::ShardingRule& rule, std::size_t r) {
  const PartitionSpec& table = home(op.results[r]).wanted;
  if (update_ != nullptr || op.operands.size() != 1 || global_.value(op.results[r]).table != ir::Table::parameters ||
      global_.value(op.operands[0]).table != ir::Table::parameters)
    return table;
  PartitionSpec target = table;
  for (const ir::Factor& f : rule.factors)
    if (f.operand_dim[0] >= 0 && f.result_dim[r] >= 0)
      target.dims[static_cast<std::size_t>(f.result_dim[r])] =
          spec(op.operands[0]).dims[static_cast<std::size_t>(f.operand_dim[0])];
  return target;
}

// Rule 2: the wanted specs of the results, without the claimed axes, fix the other factors.
void Walk::split_parallel(const ir::Op& op, const ir::ShardingRule& rule, Decision& decision,
                          const MeshAxes& claimed) {
  MeshAxes taken = claimed;
  InlineVector<bool, 16> decided;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) decided.push_back(false);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    const PartitionSpec target = result_target(op, rule, r);
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      const ir::Factor& factor = rule.factors[f];
      if (decided[f] || factor.kind == FactorKind::whole || factor.result_dim[r] < 0) continue;
      decided[f] = true;
      decision.split[f] = without(target.dims[static_cast<std::size_t>(factor.result_dim[r])], taken);
      unite(taken, decision.split[f]);
    }
  }
}

PartitionSpec Walk::result_spec(const ir::ShardingRule& rule, const Decision& decision, std::size_t r,
                                std::size_t rank) {
  PartitionSpec result;
  for (std::size_t d = 0; d < rank; ++d) result.dims.push_back({});
  MeshAxes partial = decision.passed;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    const ir::Factor& factor = rule.factors[f];
    if (factor.result_dim[r] >= 0) {
      result.dims[static_cast<std::size_t>(factor.result_dim[r])] = decision.split[f];
    } else if (is_reduced(factor.kind) && !decision.split[f].empty()) {
      if (factor.kind == FactorKind::max) result.partial_kind = ir::Reduction::max;
      unite(partial, decision.split[f]);
    }
  }
  TPUSIM_CHECK(result.partial_kind == ir::Reduction::sum || decision.passed.empty(),
               "a partial sum cannot pass through a maximum");
  result.partial = ascending(partial);
  return result;
}

void Walk::resolve(ir::ValueId id, const MeshAxes& axes, std::string_view reason) {
  if (axes.empty()) return;
  Home& h = home(id);
  h.primary = writer_.resolve(h.primary, axes, h.wanted, cause_, reason);
  h.copies.clear();  // they were partial too
}

// A copy of the value laid out as needed: one that is there, else made from the one that costs least.
Placed Walk::use(ir::ValueId id, const PartitionSpec& needed) {
  Home& h = home(id);
  TPUSIM_CHECK(h.primary.local.valid(), "a value is used before it is made");
  if (h.primary.spec.dims == needed.dims) return h.primary;
  const int call = call_of(cause_.phase);
  const Placed* best = &h.primary;
  double cost = writer_.gathered_elements(h.primary, needed.dims);
  for (const Shared& shared : h.copies) {
    if (shared.call != call) continue;
    if (shared.copy.spec.dims == needed.dims) return shared.copy;
    const double other = writer_.gathered_elements(shared.copy, needed.dims);
    if (other < cost) {
      best = &shared.copy;
      cost = other;
    }
  }
  const Placed made = writer_.reshard(*best, needed.dims, cause_, kGathered);
  h.copies.push_back({made, call});
  return made;
}

// Ports are left in their wanted spec; gradients of parameters are reduced over the axes that their table splits.
void Walk::fix(ir::ValueId id) {
  const Role role = roles_[static_cast<std::size_t>(id.index)];
  if (role == Role::inner) return;
  Home& h = home(id);
  const bool new_parameter = update_ != nullptr && id == update_->new_parameter;
  if (new_parameter) h.wanted = wanted_spec(tables_, ir::Table::parameters, global_.value(id).type, mesh_);
  if (role == Role::gradient) {
    h.wanted = wanted_spec(tables_, ir::Table::gradients, global_.value(id).type, mesh_);
    MeshAxes split;
    for (const MeshAxes& list : h.wanted.dims) unite(split, list);
    resolve(id, common(spec(id).partial, split), kGradient);
  } else {
    resolve(id, spec(id).partial, kPort);
  }
  h.primary = writer_.reshard(h.primary, h.wanted.dims, cause_, new_parameter ? kNewParameter : kPortGathered);
}

void Walk::visit(ir::OpId id) {
  const ir::Op& op = global_.op(id);
  cause_ = Cause{id, op.phase};
  operand_types_.clear();
  result_types_.clear();
  for (const ir::ValueId v : op.operands) operand_types_.push_back(global_.value(v).type);
  for (const ir::ValueId v : op.results) {
    result_types_.push_back(global_.value(v).type);
    home(v).wanted = wanted(v);
  }
  const ir::ShardingRule rule = ir::sharding_rule(op.kind, operand_types_, result_types_);

  Decision decision;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) decision.split.push_back({});
  decision.passed = settle_partials(op, rule);
  MeshAxes claimed = decision.passed;
  split_reduced(op, rule, decision, claimed);
  split_parallel(op, rule, decision, claimed);

  InlineVector<ir::ValueId, 8> operands;
  InlineVector<PartitionSpec, 8> operand_specs;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    PartitionSpec needed;
    for (std::size_t d = 0; d < operand_types_[i].shape.size(); ++d) needed.dims.push_back({});
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
      if (const std::int8_t d = rule.factors[f].operand_dim[i]; d >= 0)
        needed.dims[static_cast<std::size_t>(d)] = decision.split[f];
    const Placed used = use(op.operands[i], needed);
    operands.push_back(used.local);
    operand_specs.push_back(used.spec);
  }
  InlineVector<PartitionSpec, 4> specs;
  InlineVector<ir::Value, 4> values;
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    specs.push_back(result_spec(rule, decision, r, result_types_[r].shape.size()));
    values.push_back(global_.value(op.results[r]));
  }
  const ir::OpKind kind = local_kind(op.kind, operand_types_, operand_specs, result_types_, specs, mesh_);
  const InlineVector<Placed, 4> made = writer_.op(kind, operands, values, specs, cause_);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    home(op.results[r]).primary = made[r];
    out_.placed[static_cast<std::size_t>(op.results[r].index)] = made[r];
  }
  for (const ir::ValueId v : op.results) fix(v);
}

void Walk::finish(WalkResult& result) {
  const auto last = [this](ir::ValueId id) { return id.valid() ? home(id).primary.local : ir::ValueId(); };
  ir::Program& local = out_.local;
  local.name = global_.name;
  for (const ir::Parameter& p : global_.parameters) {
    local.parameters.push_back(p);
    local.parameters.back().value = last(p.value);
    local.parameters.back().gradient = last(p.gradient);
  }
  for (const ir::DataInput& d : global_.data) local.data.push_back({last(d.value), d.kind});
  local.x_in = last(global_.x_in);
  local.x_out = last(global_.x_out);
  local.dx_out = last(global_.dx_out);
  local.dx_in = last(global_.dx_in);
  local.loss = last(global_.loss);
  for (const Home& h : homes_) result.last.push_back(h.primary.local);
  result.partitioned = std::move(out_);
}

}  // namespace

WalkResult walk(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh, const UpdatePorts* update) {
  return Walk(global, tables, mesh, update).run();
}

}  // namespace tpusim::spmd
