// What each optimizer keeps and does for one parameter.
//
// sgd, momentum, adam (Kingma and Ba 2015) and adamw (Loshchilov and Hutter 2019) are one Update op. Adafactor (Shazeer
// and Stern 2018, algorithms 4 and 5, relative step sizes off: the step is the given learning rate) is composed of
// reductions and elementwise ops, so that a split parameter needs only small all-reduces:
//   decay b2 = 1 - t^-0.8; R = b2 R + (1 - b2) (mean over output dims of G^2 + e), C likewise over input dims,
//   U = G / sqrt(R C / mean(R)), clipped to U / max(1, RMS(U)), p = p - rate U, with e the settings' eps (1e-30 in the
//   paper).
// Means count valid entries only. A parameter without input dims or without output dims keeps one moment V of its own
// shape. Where the parameter is narrower than master_dtype, a slot "master" holds it in full and the parameter is a
// rounded copy.
#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/ir/ops.hpp"

namespace tpusim::ir {
namespace {

constexpr double kDecayExponent = -0.8;  // their section 7.2

bool needs_master(const TensorType& type, DType master_dtype) {
  return bytes_of(type.dtype) < bytes_of(master_dtype);
}

TensorType like_parameter(const TensorType& type, DType dtype) {
  return TensorType{dtype, type.shape, Place::none};
}

TensorType without(const TensorType& type, const DimNames& dims, DType dtype) {
  TensorType out{dtype, {}, Place::none};
  for (const Dim& d : type.shape)
    if (!dims.contains(d.name)) out.shape.push_back(d);
  return out;
}

bool is_factored(const Parameter& parameter) {
  return !parameter.input_dims.empty() && !parameter.output_dims.empty();
}

double valid_entries(const Shape& shape, const DimNames& dims) {
  double n = 1;
  for (const Dim& d : shape)
    if (dims.contains(d.name)) n *= static_cast<double>(d.valid);
  return n;
}

DimNames all_names(const Shape& shape) {
  DimNames out;
  for (const Dim& d : shape) out.push_back(d.name);
  return out;
}

// Writes the update of one parameter.
class Writer {
 public:
  Writer(const OptimizerSettings& settings, const Parameter& parameter, const TensorType& type, DType gradient_dtype,
         DType master_dtype)
      : settings_(settings), parameter_(parameter), type_(type), builder_(out_.program), master_(master_dtype) {
    builder_.phase = Phase::update;
    out_.program.name = "update";
    out_.parameter = builder_.input(like_parameter(type, type.dtype), "p", Table::parameters);
    out_.gradient = builder_.input(like_parameter(type, gradient_dtype), "g", Table::gradients);
    const std::vector<StateSlot> slots = optimizer_slots(settings, parameter, type, master_dtype);
    for (const StateSlot& slot : slots) out_.slots.push_back(builder_.input(slot.type, slot.label, Table::optimizer));
    out_.gscale = builder_.input(TensorType{master_dtype, {}, Place::none}, "gscale", Table::optimizer);
    out_.step = builder_.input(TensorType{master_dtype, {}, Place::none}, "step", Table::optimizer);
    has_master_ = needs_master(type, master_dtype);
  }

  UpdateProgram run() {
    const ValueId p = has_master_ ? out_.slots[0] : out_.parameter;
    const ValueId g = builder_.type(out_.gradient).dtype == master_ ? out_.gradient
                                                                    : builder_.cast(out_.gradient, master_, state("g"));
    const ValueId updated = settings_.kind == Optimizer::adafactor ? adafactor(p, g) : one_op(p, g);
    ValueId stored = updated;
    if (has_master_) {
      out_.new_slots.insert(out_.new_slots.begin(), updated);
      stored = builder_.cast(updated, type_.dtype, state("rounded p"));
    }
    // The copy carries the parameter's own table: where that differs from the state's, the gather is put before it, on
    // the parameter's dtype.
    out_.new_parameter = builder_.map(Elementwise::copy, stored, {"new p", type_.place, Table::parameters});
    return out_;
  }

 private:
  static Builder::As state(std::string_view label) { return {label, Place::none, Table::optimizer}; }
  std::size_t first_slot() const { return has_master_ ? 1 : 0; }

  ValueId one_op(ValueId p, ValueId g) {
    InlineVector<ValueId, 8> operands = {p, g, out_.gscale};
    for (std::size_t i = first_slot(); i < out_.slots.size(); ++i) operands.push_back(out_.slots[i]);
    if (settings_.kind == Optimizer::adam || settings_.kind == Optimizer::adamw) operands.push_back(out_.step);
    Update update;
    update.kind = settings_.kind;
    update.learning_rate = settings_.learning_rate;
    update.beta1 = settings_.beta1;
    update.beta2 = settings_.beta2;
    update.eps = settings_.eps;
    update.weight_decay = settings_.kind == Optimizer::adamw ? settings_.weight_decay : 0;
    update.momentum = settings_.momentum;
    const auto results = builder_.add(update, operands, master_, state("updated"));
    for (std::size_t i = 1; i < results.size(); ++i) out_.new_slots.push_back(results[i]);
    return results[0];
  }

  // b2 old + (1 - b2) now, with 1 - b2 = t^-0.8, as old + t^-0.8 (now - old).
  ValueId average(ValueId old, ValueId now, std::string_view label) {
    const ValueId moved = builder_.map(Elementwise::mul, builder_.map(Elementwise::sub, now, old, state("change")),
                                       weight_, state("change"));
    const ValueId mean = builder_.map(Elementwise::add, old, moved, state(label));
    out_.new_slots.push_back(mean);
    return mean;
  }

  // Mean of x over `dims`, valid entries only (padded ones are 0).
  ValueId mean(ValueId x, const DimNames& dims, std::string_view label) {
    const double n = valid_entries(builder_.type(x).shape, dims);
    return builder_.map(Elementwise::scale, builder_.reduce(Reduction::sum, x, dims, state(label)), state(label),
                        1 / n);
  }

  ValueId floor_added(ValueId x, std::string_view label) {
    return builder_.map(Elementwise::add_scalar, x, state(label), settings_.eps);
  }

  // R / mean(R). A padded row holds e, which must not count.
  ValueId normalized(ValueId row) {
    ValueId counted = row;
    const Shape shape = builder_.type(row).shape;
    for (const Dim& d : shape)
      if (d.valid < d.size)
        counted = builder_.add(MaskPadding{d.name, 0, {}}, {counted}, builder_.type(row).dtype, state("row"))[0];
    return builder_.map(Elementwise::div, row, mean(counted, parameter_.input_dims, "row mean"), state("row"));
  }

  ValueId adafactor(ValueId p, ValueId g) {
    weight_ = builder_.map(Elementwise::exp,
                           builder_.map(Elementwise::scale, builder_.map(Elementwise::log, out_.step, state("log t")),
                                        state("exponent"), kDecayExponent),
                           state("1 - b2"));
    const ValueId scaled = builder_.map(Elementwise::mul, g, out_.gscale, state("g"));
    const ValueId square = builder_.map(Elementwise::square, scaled, state("g^2"));
    ValueId u;
    if (is_factored(parameter_)) {
      const ValueId row =
          average(out_.slots[first_slot()], floor_added(mean(square, parameter_.output_dims, "row"), "row"), "row");
      const ValueId column = average(out_.slots[first_slot() + 1],
                                     floor_added(mean(square, parameter_.input_dims, "column"), "column"), "column");
      u = builder_.map(Elementwise::mul, scaled, builder_.map(Elementwise::rsqrt, normalized(row), state("row")),
                       state("u"));
      u = builder_.map(Elementwise::mul, u, builder_.map(Elementwise::rsqrt, column, state("column")), state("u"));
    } else {
      const ValueId v = average(out_.slots[first_slot()], floor_added(square, "v"), "v");
      u = builder_.map(Elementwise::mul, scaled, builder_.map(Elementwise::rsqrt, v, state("v")), state("u"));
    }
    // 1 / max(1, RMS(u)) = min(1, 1 / RMS(u)); a scalar parameter is its own mean.
    ValueId mean_square = builder_.map(Elementwise::square, u, state("u^2"));
    if (!type_.shape.empty()) mean_square = mean(mean_square, all_names(type_.shape), "mean u^2");
    const ValueId clip = builder_.map(Elementwise::minimum_scalar,
                                      builder_.map(Elementwise::rsqrt, mean_square, state("clip")), state("clip"), 1);
    Update step;
    step.kind = Optimizer::sgd;
    step.learning_rate = settings_.learning_rate;
    step.weight_decay = 0;
    return builder_.add(step, {p, u, clip}, master_, state("updated"))[0];
  }

  const OptimizerSettings& settings_;
  const Parameter& parameter_;
  TensorType type_;
  UpdateProgram out_;
  Builder builder_;
  DType master_;
  bool has_master_ = false;
  ValueId weight_;
};

}  // namespace

std::vector<StateSlot> optimizer_slots(const OptimizerSettings& settings, const Parameter& parameter,
                                       const TensorType& type, DType master_dtype) {
  TPUSIM_CHECK(master_dtype == DType::f32 || master_dtype == DType::f64, "optimizer state is f32 or f64");
  TPUSIM_CHECK(bytes_of(type.dtype) <= bytes_of(master_dtype), "a parameter wider than its optimizer state");
  std::vector<StateSlot> slots;
  const TensorType full = like_parameter(type, master_dtype);
  if (needs_master(type, master_dtype)) slots.push_back({"master", full, false});
  switch (settings.kind) {
    case Optimizer::sgd:
      break;
    case Optimizer::momentum:
      slots.push_back({"v", full, false});
      break;
    case Optimizer::adam:
    case Optimizer::adamw:
      slots.push_back({"m", full, false});
      slots.push_back({"v", full, false});
      break;
    case Optimizer::adafactor:
      if (is_factored(parameter)) {
        slots.push_back({"row", without(type, parameter.output_dims, master_dtype), true});
        slots.push_back({"column", without(type, parameter.input_dims, master_dtype), true});
      } else {
        slots.push_back({"v", full, false});
      }
      break;
  }
  return slots;
}

UpdateProgram update_program(const OptimizerSettings& settings, const Parameter& parameter, const TensorType& type,
                             DType gradient_dtype, DType master_dtype) {
  return Writer(settings, parameter, type, gradient_dtype, master_dtype).run();
}

}  // namespace tpusim::ir
