// Rules 1 to 5 of the partitioner (partitioner.hpp; ARCHITECTURE.md states them), one op after the other.
#include "sim/spmd/walk.hpp"

#include <utility>

#include "sim/base/check.hpp"
#include "sim/spmd/decide.hpp"
#include "sim/spmd/local_kind.hpp"
#include "sim/spmd/local_writer.hpp"
#include "sim/spmd/mesh_axes.hpp"

namespace tpusim::spmd {
namespace {

constexpr std::string_view kGathered = "rule 3: gathered for use";
constexpr std::string_view kNeeded = "rule 4: reduced where something not linear needs it";
constexpr std::string_view kPort = "rule 4: reduced where a port fixes the spec";
constexpr std::string_view kPortGathered = "rule 3: brought to the spec of a port";
constexpr std::string_view kGradient = "rule 4: reduced because the gradients table splits it";
constexpr std::string_view kNewParameter = "rule 5: the new parameter gathered to its own spec";

// The recomputed forward and the backward of a block are one call: they share what they gather.
int call_of(ir::Phase phase) {
  switch (phase) {
    case ir::Phase::forward:
      return 0;
    case ir::Phase::recompute:
      return 1;
    case ir::Phase::backward:
      return 1;
    case ir::Phase::update:
      return 2;
  }
  return 0;
}

class Walk {
 public:
  Walk(const ir::Program& global, const ShardingTables& tables, const Mesh& mesh, const UpdatePorts* update)
      : global_(global),
        tables_(tables),
        mesh_(mesh),
        update_(update),
        writer_(mesh, out_),
        homes_(global.values.size()),
        roles_(global.values.size(), Role::inner),
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
  Home& home(ir::ValueId id) { return homes_[static_cast<std::size_t>(id.index)]; }
  const PartitionSpec& spec(ir::ValueId id) { return home(id).primary.spec; }
  PartitionSpec wanted(ir::ValueId id) const;
  void assign_roles();
  void place_input(ir::ValueId id);
  void visit(ir::OpId id);
  MeshAxes settle_partials(const OpView& view);
  PartitionSpec result_target(const ir::Op& op, const ir::ShardingRule& rule, std::size_t r);
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

// Rule 4: reduces what may not pass; returns the axes over which the results are partial for their operands' sake.
MeshAxes Walk::settle_partials(const OpView& view) {
  MeshAxes passed;
  if (view.rule.additive) passed = shared_partials(view);
  for (std::size_t i = 0; i < view.have.size(); ++i) {
    if (view.have[i]->partial.empty()) continue;
    const MeshAxes keep = view.rule.additive ? passed : may_pass(view, i);
    resolve(view.op.operands[i], without(view.have[i]->partial, keep), kNeeded);
    unite(passed, keep);
  }
  return passed;
}

// What rule 2 aims at for result r: its wanted spec; a parameter's cast copy stays as the parameter is, so that it is
// cast before it is gathered.
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
  const ir::ShardingRule rule = tables_.rule_of(op.kind, operand_types_, result_types_);
  OpView view{op, rule, operand_types_, result_types_, {}, {}, {}};
  for (const ir::ValueId v : op.operands) {
    view.have.push_back(&spec(v));
    view.several_users.push_back(uses_[static_cast<std::size_t>(v.index)] > 1);
  }
  for (std::size_t r = 0; r < op.results.size(); ++r) view.target.push_back(result_target(op, rule, r));
  const Decision decision = decide(view, settle_partials(view));

  InlineVector<ir::ValueId, 8> operands;
  InlineVector<PartitionSpec, 8> operand_specs;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Placed used = use(op.operands[i], needed_spec(view, decision, i));
    operands.push_back(used.local);
    operand_specs.push_back(used.spec);
  }
  InlineVector<PartitionSpec, 4> specs;
  InlineVector<ir::Value, 4> values;
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    specs.push_back(result_spec(view, decision, r));
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
