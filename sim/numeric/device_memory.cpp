#include "sim/numeric/device_memory.hpp"

#include <algorithm>
#include <limits>

namespace tpusim::numeric {
namespace {

std::string describe(const run::Instance& instance) {
  return "buffer " + std::to_string(instance.buffer.index) + " (site " + std::to_string(instance.site) + ", index " +
         std::to_string(instance.index) + ")";
}

}  // namespace

Cell* DeviceMemory::add(const run::Instance& instance) {
  TPUSIM_CHECK(find_or_null(instance) == nullptr, describe(instance) + " is allocated twice");
  Cell* cell = nullptr;
  if (!free_.empty()) {
    cell = free_.back();
    free_.pop_back();
  } else {
    storage_.push_back(std::make_unique<Cell>());
    cell = storage_.back().get();
  }
  cells_.emplace(instance, cell);
  return cell;
}

Cell* DeviceMemory::find_or_null(const run::Instance& instance) const {
  const auto found = cells_.find(instance);
  return found == cells_.end() ? nullptr : found->second;
}

Cell* DeviceMemory::find(const run::Instance& instance) const {
  Cell* cell = find_or_null(instance);
  TPUSIM_CHECK(cell != nullptr, describe(instance) + " is used, but it is not allocated");
  return cell;
}

Cell* DeviceMemory::remove(const run::Instance& instance) {
  Cell* cell = find(instance);
  cells_.erase(instance);
  removed_.push_back(cell);
  return cell;
}

void DeviceMemory::allocate(Cell& cell, const ir::TensorType& type) {
  TPUSIM_CHECK(!cell.live, "a live buffer is allocated");
  cell.tensor = Tensor(type);
  switch (type.dtype) {
    case ir::DType::f64:
      std::ranges::fill(cell.tensor.data<double>(), std::numeric_limits<double>::quiet_NaN());
      break;
    case ir::DType::f32:
    case ir::DType::bf16:
      std::ranges::fill(cell.tensor.data<float>(), std::numeric_limits<float>::quiet_NaN());
      break;
    case ir::DType::i32:
      std::ranges::fill(cell.tensor.data<std::int32_t>(), std::numeric_limits<std::int32_t>::min());
      break;
  }
  cell.live = true;
  cell.written = false;
  live_ += cell.tensor.bytes();
  peak_ = std::max(peak_, live_);
}

void DeviceMemory::release(Cell& cell) {
  TPUSIM_CHECK(cell.live, "a buffer is released that is not live");
  live_ -= cell.tensor.bytes();
  cell.tensor = Tensor();
  cell.live = cell.written = false;
}

void DeviceMemory::recycle() {
  free_.insert(free_.end(), removed_.begin(), removed_.end());
  removed_.clear();
}

}  // namespace tpusim::numeric
