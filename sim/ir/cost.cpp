// Dispatch of costs, and the costs of what runs on the vector unit.
//
// Vector FLOPs: every arithmetic operation on an entry counts one, a transcendental function too (the convention of
// XLA's HloCostAnalysis, xla/service/hlo_cost_analysis.cc); composite functions count their parts.
#include "sim/ir/readers.hpp"

namespace tpusim::ir {

double map_flops_per_entry(Elementwise kind) {
  switch (kind) {
    case Elementwise::copy:
      return 0;
    case Elementwise::cast:
    case Elementwise::neg:
    case Elementwise::scale:
    case Elementwise::add_scalar:
    case Elementwise::exp:
    case Elementwise::log:
    case Elementwise::sqrt:
    case Elementwise::rsqrt:
    case Elementwise::reciprocal:
    case Elementwise::square:
    case Elementwise::tanh:
    case Elementwise::relu:
    case Elementwise::minimum_scalar:
    case Elementwise::add:
    case Elementwise::sub:
    case Elementwise::mul:
    case Elementwise::div:
    case Elementwise::maximum:
    case Elementwise::relu_grad:
      return 1;
    case Elementwise::sigmoid:
      return 4;  // negate, exponential, add, reciprocal
    case Elementwise::silu:
      return 5;  // sigmoid, product
    case Elementwise::gelu:
      return 8;  // 0.5 x (1 + tanh(c (x + 0.044715 x^3)))
    case Elementwise::tanh_grad:
      return 3;  // (1 - y y) dy
    case Elementwise::silu_grad:
      return 9;  // s (1 + x (1 - s)) dy with s the sigmoid
    case Elementwise::gelu_grad:
      return 16;
  }
  internal_error(__FILE__, __LINE__, "kind", "an elementwise function without a cost");
}

namespace {

double entries(const TensorType& type) {
  return static_cast<double>(element_count(type.shape));
}

OpCost vector_cost(double flops) {
  OpCost cost;
  cost.vector_flops = flops;
  return cost;
}

struct Coster {
  const std::vector<TensorType>& operands;
  const std::vector<TensorType>& results;

  OpCost operator()(const Dot&) const { return dot_cost(operands, results[0]); }
  OpCost operator()(const Flash& op) const { return flash_cost(op, operands); }
  OpCost operator()(const FlashGrad& op) const { return flash_grad_cost(op, operands); }
  OpCost operator()(const Map& op) const { return vector_cost(map_flops_per_entry(op.kind) * entries(results[0])); }
  OpCost operator()(const Reduce&) const { return vector_cost(entries(operands[0])); }
  OpCost operator()(const MaskPadding&) const { return vector_cost(entries(results[0])); }
  OpCost operator()(const MaskCausal&) const { return vector_cost(entries(results[0])); }
  OpCost operator()(const Rope&) const { return vector_cost(3 * entries(results[0])); }  // two products, one sum
  OpCost operator()(const LookupGrad&) const { return vector_cost(entries(operands[1])); }
  // Reads or writes only.
  OpCost operator()(const Lookup&) const { return {}; }
  OpCost operator()(const Pick&) const { return {}; }
  OpCost operator()(const PickGrad&) const { return {}; }
  OpCost operator()(const Rename&) const { return {}; }
  OpCost operator()(const Fill&) const { return {}; }
  OpCost operator()(const AllGather&) const { return {}; }
  OpCost operator()(const ReduceScatter&) const { return {}; }
  OpCost operator()(const AllReduce&) const { return {}; }
  OpCost operator()(const Slice&) const { return {}; }
  OpCost operator()(const Update& op) const {
    // Operations per entry, scalars excluded. sgd: g gscale, times rate, subtract. momentum: and v = mu v + g. adam:
    // two moving averages (3 + 4), two bias corrections, root, eps, quotient, rate, subtract; adamw: and decay (2).
    switch (op.kind) {
      case Optimizer::sgd:
        return vector_cost(3 * entries(operands[0]));
      case Optimizer::momentum:
        return vector_cost(5 * entries(operands[0]));
      case Optimizer::adam:
        return vector_cost(15 * entries(operands[0]));
      case Optimizer::adamw:
        return vector_cost(17 * entries(operands[0]));
      case Optimizer::adafactor:
        break;
    }
    internal_error(__FILE__, __LINE__, "kind", "adafactor is no single op");
  }
};

}  // namespace

OpCost cost(const OpKind& kind, const std::vector<TensorType>& operands, const std::vector<TensorType>& results) {
  return std::visit(Coster{operands, results}, kind);
}

}  // namespace tpusim::ir
