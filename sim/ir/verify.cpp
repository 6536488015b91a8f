// The verifier. The rules are listed in sim/ir/README.md; each is broken once in tests/unit/ir/rules_test.cpp.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "sim/ir/ops.hpp"

namespace tpusim::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program) {}

  std::vector<std::string> run() {
    if (!ids_are_in_range()) return std::move(broken_);  // nothing else can be looked at
    check_values();
    check_ops();
    check_ports();
    check_gradient_ports();
    check_parameters();
    check_data();
    return std::move(broken_);
  }

 private:
  void fail(const char* rule, const std::string& where, const std::string& what) {
    broken_.push_back(fmt::format("{}: {}: {}", rule, where, what));
  }
  std::string name(ValueId id) const { return fmt::format("{}/%{} {}", p_.name, id.index, p_.value(id).label); }
  std::string name_of_op(std::size_t i) const {
    return fmt::format("{}/op {} {}", p_.name, i, op_name(p_.ops[i].kind));
  }
  bool known(ValueId id) const { return id.valid() && static_cast<std::size_t>(id.index) < p_.values.size(); }

  bool ids_are_in_range() {
    const std::size_t before = broken_.size();
    for (std::size_t i = 0; i < p_.ops.size(); ++i) {
      for (const auto& operand : p_.ops[i].operands)
        if (!known(operand))
          fail("program.c1", name_of_op(i), fmt::format("operand %{} does not exist", operand.index));
      for (const auto& result : p_.ops[i].results)
        if (!known(result)) fail("program.c1", name_of_op(i), fmt::format("result %{} does not exist", result.index));
    }
    const auto port = [this](ValueId id, const char* what) {
      if (id.valid() && !known(id)) fail("program.c1", p_.name, fmt::format("{} %{} does not exist", what, id.index));
    };
    port(p_.x_in, "x_in");
    port(p_.x_out, "x_out");
    port(p_.dx_in, "dx_in");
    port(p_.dx_out, "dx_out");
    port(p_.loss, "loss");
    for (const Parameter& q : p_.parameters) {
      if (!known(q.value)) fail("program.c1", p_.name, fmt::format("parameter {} does not exist", q.name));
      port(q.gradient, "a gradient");
    }
    for (const DataInput& d : p_.data)
      if (!known(d.value)) fail("program.c1", p_.name, fmt::format("data %{} does not exist", d.value.index));
    return broken_.size() == before;
  }

  void check_values() {
    for (std::size_t v = 0; v < p_.values.size(); ++v) {
      const Value& value = p_.values[v];
      if (value.label.empty()) fail("program.c2", name(ValueId(v)), "a value has a label");
      const Shape& shape = value.type.shape;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i].size < 1 || shape[i].valid < 1)
          fail("program.c3", name(ValueId(v)),
               fmt::format("{} has size {}, of which {} valid; both are at least 1", to_string(shape[i].name),
                           shape[i].size, shape[i].valid));
        for (std::size_t j = 0; j < i; ++j)
          if (shape[i].name == shape[j].name)
            fail("program.c4", name(ValueId(v)), fmt::format("dim {} is there twice", to_string(shape[i].name)));
      }
      const OpId producer = value.producer;
      if (!producer.valid()) continue;
      const bool exists = static_cast<std::size_t>(producer.index) < p_.ops.size();
      if (!exists || !p_.op(producer).results.contains(ValueId(v)))
        fail("program.c5", name(ValueId(v)), fmt::format("op {} does not make it", producer.index));
    }
  }

  void check_ops() {
    std::vector<bool> made(p_.values.size(), false);
    for (std::size_t v = 0; v < p_.values.size(); ++v) made[v] = !p_.values[v].producer.valid();
    Phase last = Phase::forward;
    for (std::size_t i = 0; i < p_.ops.size(); ++i) {
      const Op& op = p_.ops[i];
      if (op.phase < last) fail("program.c6", name_of_op(i), "phases ascend: forward, recompute, backward, update");
      last = op.phase;
      if (op.results.empty()) fail("program.c7", name_of_op(i), "an op has a result");
      for (const ValueId operand : op.operands)
        if (!made[static_cast<std::size_t>(operand.index)])
          fail("program.c8", name_of_op(i), fmt::format("{} is read before it is made", name(operand)));
      for (const ValueId result : op.results) {
        if (made[static_cast<std::size_t>(result.index)] || p_.value(result).producer != OpId(i))
          fail("program.c9", name_of_op(i), fmt::format("{} is assigned twice or by another op", name(result)));
        made[static_cast<std::size_t>(result.index)] = true;
      }
      if (!op.results.empty()) check_types(i);
    }
  }

  void check_types(std::size_t i) {
    const Op& op = p_.ops[i];
    std::vector<TensorType> types;
    types.reserve(op.operands.size());
    for (const ValueId operand : op.operands) types.push_back(p_.value(operand).type);
    const TensorType& first = p_.value(op.results[0]).type;
    const Inferred inferred = infer(op.kind, types, first.dtype, first.shape);
    if (!inferred.error.empty()) {
      const std::size_t colon = inferred.error.find(':');
      broken_.push_back(
          fmt::format("{}: {}: {}", inferred.error.substr(0, colon), name_of_op(i), inferred.error.substr(colon + 2)));
      return;
    }
    if (inferred.results.size() != op.results.size()) {
      fail("program.c10", name_of_op(i),
           fmt::format("{} results, found {}", inferred.results.size(), op.results.size()));
      return;
    }
    for (std::size_t k = 0; k < op.results.size(); ++k) {
      const TensorType& found = p_.value(op.results[k]).type;
      if (found.dtype != inferred.results[k].dtype || !(found.shape == inferred.results[k].shape))
        fail("program.c10", name_of_op(i),
             fmt::format("result {} is {}, found {}", k, to_string(inferred.results[k]), to_string(found)));
    }
  }

  bool same_dims(ValueId a, ValueId b) const {
    const Shape &x = p_.value(a).type.shape, &y = p_.value(b).type.shape;
    if (x.size() != y.size()) return false;
    for (const Dim& d : x)
      if (find_dim(y, d.name) < 0) return false;
    return true;
  }

  void check_ports() {
    if (p_.x_in.valid() && (p_.value(p_.x_in).producer.valid() || p_.value(p_.x_in).table != Table::activations))
      fail("program.c11", name(p_.x_in), "x_in is an input of table activations");
    if (p_.loss.valid() && (!p_.value(p_.loss).type.shape.empty() || p_.value(p_.loss).type.dtype == DType::i32))
      fail("program.c12", name(p_.loss), "the loss is a floating-point scalar");
  }

  void check_gradient_ports() {
    if (p_.dx_out.valid() &&
        (p_.value(p_.dx_out).producer.valid() || !p_.x_out.valid() || !same_dims(p_.dx_out, p_.x_out)))
      fail("program.c13", name(p_.dx_out), "dx_out is an input with the dims of x_out");
    if (p_.dx_in.valid() && (!p_.x_in.valid() || !same_dims(p_.dx_in, p_.x_in)))
      fail("program.c14", name(p_.dx_in), "dx_in has the dims of x_in");
  }

  void check_parameters() {
    std::set<std::string_view> names;
    for (const Parameter& q : p_.parameters) {
      const Value& value = p_.value(q.value);
      if (value.producer.valid() || value.table != Table::parameters)
        fail("program.c15", name(q.value), "a parameter is an input of table parameters");
      if (!names.insert(q.name).second)
        fail("program.c16", name(q.value), fmt::format("two parameters are called {}", q.name));
      if (q.gradient.valid() && (p_.value(q.gradient).table != Table::gradients || !same_dims(q.gradient, q.value)))
        fail("program.c17", name(q.gradient), "a parameter's gradient has its dims and table gradients");
    }
  }

  void check_data() {
    for (const DataInput& d : p_.data) {
      const Value& value = p_.value(d.value);
      const bool ids = d.kind == DataKind::tokens || d.kind == DataKind::targets || d.kind == DataKind::positions;
      if (value.producer.valid() || (ids != (value.type.dtype == DType::i32) && d.kind != DataKind::labels))
        fail("program.c18", name(d.value), "data is an input; tokens, targets and positions are i32, features are not");
    }
  }

  const Program& p_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) {
  return Verifier(program).run();
}

}  // namespace tpusim::ir
