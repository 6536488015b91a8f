#include <array>

#include "sim/ir/ops.hpp"

namespace tpusim::ir {
namespace {

// By Elementwise, in the order of the enumeration.
constexpr std::array<std::string_view, 26> kMapNames = {
    "map.copy",      "map.cast",     "map.neg",   "map.scale",      "map.add_scalar",     "map.exp",
    "map.log",       "map.sqrt",     "map.rsqrt", "map.reciprocal", "map.square",         "map.tanh",
    "map.sigmoid",   "map.relu",     "map.silu",  "map.gelu",       "map.minimum_scalar", "map.add",
    "map.sub",       "map.mul",      "map.div",   "map.maximum",    "map.relu_grad",      "map.silu_grad",
    "map.gelu_grad", "map.tanh_grad"};
static_assert(static_cast<std::size_t>(Elementwise::tanh_grad) + 1 == kMapNames.size());

constexpr std::array<std::string_view, 5> kUpdateNames = {"update.sgd", "update.momentum", "update.adam",
                                                          "update.adamw", "update.adafactor"};

struct Namer {
  std::string_view operator()(const Dot&) const { return "dot"; }
  std::string_view operator()(const Map& m) const { return kMapNames[static_cast<std::size_t>(m.kind)]; }
  std::string_view operator()(const Reduce& r) const { return r.kind == Reduction::sum ? "reduce.sum" : "reduce.max"; }
  std::string_view operator()(const Rename&) const { return "rename"; }
  std::string_view operator()(const MaskPadding&) const { return "mask_padding"; }
  std::string_view operator()(const MaskCausal&) const { return "mask_causal"; }
  std::string_view operator()(const Rope& r) const { return r.inverse ? "rope.inverse" : "rope"; }
  std::string_view operator()(const Lookup&) const { return "lookup"; }
  std::string_view operator()(const LookupGrad&) const { return "lookup_grad"; }
  std::string_view operator()(const Pick&) const { return "pick"; }
  std::string_view operator()(const PickGrad&) const { return "pick_grad"; }
  std::string_view operator()(const Flash&) const { return "flash"; }
  std::string_view operator()(const FlashGrad&) const { return "flash_grad"; }
  std::string_view operator()(const Fill&) const { return "fill"; }
  std::string_view operator()(const Update& u) const { return kUpdateNames[static_cast<std::size_t>(u.kind)]; }
  std::string_view operator()(const AllGather&) const { return "all_gather"; }
  std::string_view operator()(const ReduceScatter&) const { return "reduce_scatter"; }
  std::string_view operator()(const AllReduce& r) const {
    return r.kind == Reduction::sum ? "all_reduce" : "all_reduce.max";
  }
  std::string_view operator()(const Slice&) const { return "slice"; }
};

}  // namespace

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "recompute";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "";
}

std::string_view op_name(const OpKind& kind) {
  return std::visit(Namer{}, kind);
}

}  // namespace tpusim::ir
