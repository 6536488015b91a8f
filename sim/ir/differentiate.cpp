// Reverse-mode differentiation of a block (Linnainmaa 1970; Griewank and Walther, "Evaluating Derivatives", 2008,
// chapter 3).
//
// 1. Backward ops are appended op by op, last forward op first, reading forward values directly. A value with several
// uses
//    gets the sum of their gradients, the last use first. 2. Backward ops that nothing reads are dropped. 3. remat.cpp
//    chooses what is saved; the forward ops that must run again are copied to the head of the backward call.
#include <fmt/format.h>

#include <utility>

#include "sim/base/check.hpp"
#include "sim/ir/readers.hpp"
#include "sim/ir/remat.hpp"

namespace tpusim::ir {
namespace {

std::size_t index(ValueId id) {
  return static_cast<std::size_t>(id.index);
}

// Values that depend, through differentiable ops, on a parameter or on x_in.
std::vector<bool> active_values(const Program& program) {
  std::vector<bool> active(program.values.size(), false);
  for (const Parameter& p : program.parameters) active[index(p.value)] = true;
  if (program.x_in.valid()) active[index(program.x_in)] = true;
  for (const Op& op : program.ops) {
    bool any = false;
    for (const ValueId operand : op.operands) any = any || active[index(operand)];
    if (any)
      for (const ValueId result : op.results) active[index(result)] = true;
  }
  return active;
}

class Reverse {
 public:
  Reverse(Program& program, const DifferentiateOptions& options)
      : program_(program),
        forward_values_(program.values.size()),
        forward_ops_(program.ops.size()),
        builder_(program),
        gradient_dtype_(options.gradient_dtype),
        vjp_(options.vjp),
        active_(active_values(program)),
        gradients_(forward_values_) {
    builder_.phase = Phase::backward;
    for (std::size_t v = 0; v < forward_values_; ++v) again_.push_back(ValueId(v));
  }

  void run() {
    seed();
    VjpContext context{builder_, program_, again_, gradient_dtype_};
    for (std::size_t i = forward_ops_; i-- > 0;) {
      const Op op = program_.ops[i];  // a copy: the program grows
      InlineVector<ValueId, 4> dy;
      bool any = false;
      for (const ValueId result : op.results) {
        dy.push_back(gradients_[index(result)]);
        any = any || dy.back().valid();
      }
      bool wanted = false;
      for (const ValueId operand : op.operands) wanted = wanted || active_[index(operand)];
      if (!any || !wanted) continue;
      const Gradients dx = vjp_(op, dy, context);
      for (std::size_t k = 0; k < dx.size(); ++k)
        if (dx[k].valid() && active_[index(op.operands[k])]) accumulate(op.operands[k], dx[k]);
    }
    finish();
  }

 private:
  void seed() {
    if (program_.x_out.valid()) {
      TensorType type = program_.value(program_.x_out).type;
      program_.dx_out = builder_.input(type, "dx_out", Table::activations);
      accumulate(program_.x_out, program_.dx_out);
    }
    if (program_.loss.valid()) {
      const TensorType& type = program_.value(program_.loss).type;
      accumulate(program_.loss, builder_.fill(1, type.shape, type.dtype, {"dloss", type.place}));
    }
  }

  void accumulate(ValueId value, ValueId gradient) {
    ValueId& sum = gradients_[index(value)];
    if (!sum.valid()) {
      sum = gradient;
      return;
    }
    // The operand with more dims first, so that the sum has them in the value's order.
    const bool swap = builder_.type(gradient).shape.size() > builder_.type(sum).shape.size();
    sum = builder_.map(Elementwise::add, swap ? gradient : sum, swap ? sum : gradient,
                       gradient_as(program_.value(value)));
  }

  // The gradient of a port or parameter: all its dims, in order, or zeros where nothing depends on it.
  ValueId whole(ValueId value, Builder::As as, DType dtype) {
    const Shape shape = program_.value(value).type.shape;
    const ValueId gradient = gradients_[index(value)];
    if (!gradient.valid()) return builder_.fill(0, shape, dtype, as);
    const ValueId spread_out = spread(builder_, gradient, shape, as);
    const Value& v = program_.value(spread_out);
    if (v.producer.valid() && v.table == as.table && v.type.place == as.place) return spread_out;
    return builder_.map(Elementwise::copy, spread_out, as);
  }

  void finish() {
    for (Parameter& p : program_.parameters) {
      const Value value = program_.value(p.value);
      p.gradient = whole(p.value, gradient_as(value), gradient_dtype_);
    }
    if (!program_.x_in.valid()) return;
    const TensorType type = program_.value(program_.x_in).type;
    program_.dx_in = whole(program_.x_in, {"dx_in", type.place, Table::activations}, type.dtype);
  }

  Program& program_;
  std::size_t forward_values_, forward_ops_;
  Builder builder_;
  DType gradient_dtype_;
  Vjp vjp_;
  std::vector<bool> active_;
  std::vector<ValueId> again_, gradients_;
};

// Rewrites program = forward + appended backward into forward, recompute, live backward.
class Assembly {
 public:
  Assembly(Program& program, std::size_t forward_values, std::size_t forward_ops)
      : program_(program), forward_values_(forward_values), forward_ops_(forward_ops), map_(program.values.size()) {}

  void run(Remat remat) {
    find_live();
    std::vector<bool> needed(forward_values_, false);
    for (std::size_t i = forward_ops_; i < program_.ops.size(); ++i)
      if (live_[i - forward_ops_])
        for (const ValueId operand : program_.ops[i].operands)
          if (index(operand) < forward_values_) needed[index(operand)] = true;
    const std::vector<bool> saved = choose_saved(program_, forward_values_, forward_ops_, needed, remat);
    const std::vector<bool> again = choose_recomputed(program_, forward_ops_, needed, saved);

    values_.assign(program_.values.begin(), program_.values.begin() + static_cast<std::ptrdiff_t>(forward_values_));
    ops_.assign(program_.ops.begin(), program_.ops.begin() + static_cast<std::ptrdiff_t>(forward_ops_));
    for (std::size_t v = 0; v < forward_values_; ++v) map_[v] = ValueId(v);
    for (std::size_t v = forward_values_; v < program_.values.size(); ++v)
      if (!program_.values[v].producer.valid()) keep_value(ValueId(v), OpId());  // dx_out
    for (std::size_t i = 0; i < forward_ops_; ++i)
      if (again[i]) append(program_.ops[i], Phase::recompute);
    for (std::size_t i = forward_ops_; i < program_.ops.size(); ++i)
      if (live_[i - forward_ops_]) append(program_.ops[i], Phase::backward);
    rename_ports();
    program_.values = std::move(values_);
    program_.ops = std::move(ops_);
  }

 private:
  void find_live() {
    std::vector<bool> used(program_.values.size(), false);
    if (program_.dx_in.valid()) used[index(program_.dx_in)] = true;
    for (const Parameter& p : program_.parameters) used[index(p.gradient)] = true;
    live_.assign(program_.ops.size() - forward_ops_, false);
    for (std::size_t i = program_.ops.size(); i-- > forward_ops_;) {
      for (const ValueId result : program_.ops[i].results)
        live_[i - forward_ops_] = live_[i - forward_ops_] || used[index(result)];
      if (live_[i - forward_ops_])
        for (const ValueId operand : program_.ops[i].operands) used[index(operand)] = true;
    }
  }

  void keep_value(ValueId old, OpId producer) {
    Value value = program_.value(old);
    value.producer = producer;
    values_.push_back(value);
    map_[index(old)] = ValueId(values_.size() - 1);
  }

  void append(const Op& op, Phase phase) {
    Op copy = op;
    copy.phase = phase;
    for (ValueId& operand : copy.operands) operand = map_[index(operand)];
    const OpId id(ops_.size());
    for (std::size_t k = 0; k < op.results.size(); ++k) {
      const ValueId old = op.results[k];
      keep_value(old, id);
      copy.results[k] = map_[index(old)];
    }
    ops_.push_back(copy);
  }

  void rename_ports() {
    if (program_.dx_out.valid()) program_.dx_out = map_[index(program_.dx_out)];
    if (program_.dx_in.valid()) program_.dx_in = map_[index(program_.dx_in)];
    for (Parameter& p : program_.parameters) p.gradient = map_[index(p.gradient)];
  }

  Program& program_;
  std::size_t forward_values_, forward_ops_;
  std::vector<bool> live_;    // by backward op
  std::vector<ValueId> map_;  // old value -> the one that recompute and backward read
  std::vector<Value> values_;
  std::vector<Op> ops_;
};

}  // namespace

void differentiate(Program& program, const DifferentiateOptions& options) {
  TPUSIM_CHECK(!program.dx_out.valid() && !program.dx_in.valid(),
               fmt::format("block {} is differentiated twice", program.name));
  TPUSIM_CHECK(program.x_out.valid() || program.loss.valid(),
               fmt::format("block {} has neither a successor nor a loss", program.name));
  for (const Op& op : program.ops)
    TPUSIM_CHECK(op.phase == Phase::forward, fmt::format("block {} has ops beyond forward", program.name));
  const std::size_t forward_values = program.values.size();
  const std::size_t forward_ops = program.ops.size();
  Reverse(program, options).run();
  Assembly(program, forward_values, forward_ops).run(options.remat);
}

}  // namespace tpusim::ir
