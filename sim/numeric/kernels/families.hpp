// One function per op family; evaluate.cpp chooses.
#pragma once

#include "sim/numeric/kernels.hpp"
#include "sim/numeric/walk.hpp"

namespace tpusim::numeric::kernels {

using Operands = std::vector<const Tensor*>;
using Types = std::vector<ir::TensorType>;

Evaluation dot(const Tensor& lhs, const Tensor& rhs, const ir::TensorType& result);
Tensor map(const ir::Map& op, const Operands& operands, const ir::TensorType& result);
Tensor reduce(const ir::Reduce& op, const Tensor& x, const ir::TensorType& result);
Tensor rename(const ir::Rename& op, const Tensor& x, const ir::TensorType& result);
Tensor mask_padding(const ir::MaskPadding& op, const Tensor& x, const ir::TensorType& result, const Location& where);
Tensor mask_causal(const ir::MaskCausal& op, const Tensor& x, const ir::TensorType& result, const Location& where);
Tensor rope(const ir::Rope& op, const Tensor& x, const ir::TensorType& result, const Location& where);
Tensor lookup(const ir::Lookup& op, const Tensor& table, const Tensor& ids, const ir::TensorType& result,
              const Location& where);
Tensor lookup_grad(const ir::LookupGrad& op, const Tensor& ids, const Tensor& dy, const ir::TensorType& result,
                   const Location& where);
Tensor pick(const ir::Pick& op, const Tensor& x, const Tensor& ids, const ir::TensorType& result,
            const Location& where);
Tensor pick_grad(const ir::PickGrad& op, const Tensor& ids, const Tensor& dy, const ir::TensorType& result,
                 const Location& where);
Evaluation flash(const ir::Flash& op, const Operands& operands, const Types& results, const Location& where);
Evaluation flash_grad(const ir::FlashGrad& op, const Operands& operands, const Types& results, const Location& where);
Tensor fill(const ir::Fill& op, const ir::TensorType& result);
std::vector<Tensor> update(const ir::Update& op, const Operands& operands, const Types& results);
Tensor slice(const ir::Slice& op, const Tensor& x, const ir::TensorType& result, const Location& where);

}  // namespace tpusim::numeric::kernels
