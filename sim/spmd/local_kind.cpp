#include "sim/spmd/local_kind.hpp"

#include <type_traits>

#include "sim/base/check.hpp"

namespace tpusim::spmd {
namespace {

const MeshAxes& axes_on(const ir::TensorType& type, const PartitionSpec& spec, ir::DimName name) {
  const int d = ir::find_dim(type.shape, name);
  TPUSIM_CHECK(d >= 0, "no dim " + ir::to_string(name) + " in " + ir::to_string(type));
  return spec.dims[static_cast<std::size_t>(d)];
}

}  // namespace

ir::OpKind local_kind(const ir::OpKind& kind, const std::vector<ir::TensorType>& operands,
                      const InlineVector<PartitionSpec, 8>& operand_specs, const std::vector<ir::TensorType>& results,
                      const InlineVector<PartitionSpec, 4>& result_specs, const Mesh& mesh) {
  const auto in = [&](std::size_t i, ir::DimName name) { return axes_on(operands[i], operand_specs[i], name); };
  const auto out = [&](std::size_t r, ir::DimName name) { return axes_on(results[r], result_specs[r], name); };
  return std::visit(
      [&](auto op) -> ir::OpKind {
        using Op = decltype(op);
        if constexpr (std::is_same_v<Op, ir::MaskPadding>) {
          op.axes = in(0, op.dim);
        } else if constexpr (std::is_same_v<Op, ir::MaskCausal>) {
          op.query_axes = in(0, op.query);
          op.key_axes = in(0, op.key);
        } else if constexpr (std::is_same_v<Op, ir::Rope>) {
          op.axes = in(0, op.positions);
        } else if constexpr (std::is_same_v<Op, ir::Lookup>) {
          op.axes = in(0, op.rows);
        } else if constexpr (std::is_same_v<Op, ir::Pick>) {
          op.axes = in(0, op.classes);
        } else if constexpr (std::is_same_v<Op, ir::LookupGrad>) {
          op.axes = out(0, op.rows.name);
          op.rows.size /= mesh.size(op.axes);
        } else if constexpr (std::is_same_v<Op, ir::PickGrad>) {
          op.axes = out(0, op.classes.name);
          op.classes.size /= mesh.size(op.axes);
        } else if constexpr (std::is_same_v<Op, ir::Flash> || std::is_same_v<Op, ir::FlashGrad>) {
          op.query_axes = in(0, ir::DimName{ir::Axis::seq, 0});
        }
        return op;
      },
      kind);
}

}  // namespace tpusim::spmd
