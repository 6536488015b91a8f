#include <type_traits>

#include "sim/numeric/kernels/families.hpp"

namespace tpusim::numeric {
namespace {

using kernels::Operands;
using kernels::Types;

Evaluation one(Tensor tensor) {
  Evaluation e;
  e.results.push_back(std::move(tensor));
  return e;
}

struct Dispatch {
  const Operands& x;
  const Types& types;
  const Location& where;

  const ir::TensorType& type() const { return types[0]; }

  Evaluation operator()(const ir::Dot&) const { return kernels::dot(*x[0], *x[1], type()); }
  Evaluation operator()(const ir::Map& op) const { return one(kernels::map(op, x, type())); }
  Evaluation operator()(const ir::Reduce& op) const { return one(kernels::reduce(op, *x[0], type())); }
  Evaluation operator()(const ir::Rename& op) const { return one(kernels::rename(op, *x[0], type())); }
  Evaluation operator()(const ir::MaskPadding& op) const {
    return one(kernels::mask_padding(op, *x[0], type(), where));
  }
  Evaluation operator()(const ir::MaskCausal& op) const { return one(kernels::mask_causal(op, *x[0], type(), where)); }
  Evaluation operator()(const ir::Rope& op) const { return one(kernels::rope(op, *x[0], type(), where)); }
  Evaluation operator()(const ir::Lookup& op) const { return one(kernels::lookup(op, *x[0], *x[1], type(), where)); }
  Evaluation operator()(const ir::LookupGrad& op) const {
    return one(kernels::lookup_grad(op, *x[0], *x[1], type(), where));
  }
  Evaluation operator()(const ir::Pick& op) const { return one(kernels::pick(op, *x[0], *x[1], type(), where)); }
  Evaluation operator()(const ir::PickGrad& op) const {
    return one(kernels::pick_grad(op, *x[0], *x[1], type(), where));
  }
  Evaluation operator()(const ir::Flash& op) const { return kernels::flash(op, x, types, where); }
  Evaluation operator()(const ir::FlashGrad& op) const { return kernels::flash_grad(op, x, types, where); }
  Evaluation operator()(const ir::Fill& op) const { return one(kernels::fill(op, type())); }
  Evaluation operator()(const ir::Update& op) const {
    Evaluation e;
    e.results = kernels::update(op, x, types);
    return e;
  }
  Evaluation operator()(const ir::Slice& op) const { return one(kernels::slice(op, *x[0], type(), where)); }
  Evaluation operator()(const ir::AllGather&) const { return refuse(); }
  Evaluation operator()(const ir::ReduceScatter&) const { return refuse(); }
  Evaluation operator()(const ir::AllReduce&) const { return refuse(); }

  static Evaluation refuse() {
    TPUSIM_CHECK(false, "a collective is carried out by its plan, not by a kernel");
    return {};
  }
};

// Operands, results that each op has; Map and Update say theirs themselves.
std::pair<std::size_t, std::size_t> arity(const ir::OpKind& kind) {
  struct Count {
    using P = std::pair<std::size_t, std::size_t>;
    P operator()(const ir::Dot&) const { return {2, 1}; }
    P operator()(const ir::Map&) const { return {0, 1}; }
    P operator()(const ir::Reduce&) const { return {1, 1}; }
    P operator()(const ir::Rename&) const { return {1, 1}; }
    P operator()(const ir::MaskPadding&) const { return {1, 1}; }
    P operator()(const ir::MaskCausal&) const { return {1, 1}; }
    P operator()(const ir::Rope&) const { return {1, 1}; }
    P operator()(const ir::Lookup&) const { return {2, 1}; }
    P operator()(const ir::LookupGrad&) const { return {2, 1}; }
    P operator()(const ir::Pick&) const { return {2, 1}; }
    P operator()(const ir::PickGrad&) const { return {2, 1}; }
    P operator()(const ir::Flash&) const { return {3, 2}; }
    P operator()(const ir::FlashGrad&) const { return {6, 3}; }
    P operator()(const ir::Fill&) const { return {0, 1}; }
    P operator()(const ir::Update&) const { return {0, 1}; }
    P operator()(const ir::AllGather&) const { return {1, 1}; }
    P operator()(const ir::ReduceScatter&) const { return {1, 1}; }
    P operator()(const ir::AllReduce&) const { return {1, 1}; }
    P operator()(const ir::Slice&) const { return {1, 1}; }
  };
  return std::visit(Count{}, kind);
}

}  // namespace

std::int64_t Location::offset(const ir::MeshAxes& axes, std::int64_t local_size) const {
  if (mesh == nullptr || axes.empty()) return 0;
  return mesh->index_in(device, axes) * local_size;
}

Evaluation evaluate(const ir::OpKind& kind, const std::vector<const Tensor*>& operands,
                    const std::vector<ir::TensorType>& result_types, const Location& where) {
  const auto [inputs, outputs] = arity(kind);
  TPUSIM_CHECK(operands.size() >= inputs && result_types.size() >= outputs, "an op lacks operands or result types");
  return std::visit(Dispatch{operands, result_types, where}, kind);
}

}  // namespace tpusim::numeric
