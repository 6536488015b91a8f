// The memory of one simulated device: which buffer instances are there, what they hold, and how many bytes that is.
//
// Names are resolved when work is issued (one thread); the contents change when it is carried out. The two are kept
// apart: an instance's *cell* is fixed when its allocation is issued, so that tasks find it without a table.
// Allocations and releases of a device are a chain in the task graph, and so are the readers and writers of a cell:
// nothing here needs a lock.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/numeric/tensor.hpp"
#include "sim/run/backend.hpp"

namespace tpusim::numeric {

struct Cell {
  Tensor tensor;
  bool live = false;     // between allocation and release
  bool written = false;  // holds a value
};

class DeviceMemory {
 public:
  // --- when issued
  Cell* add(const run::Instance& instance);         // InternalError if it is there already
  Cell* find(const run::Instance& instance) const;  // InternalError if it is not there
  Cell* find_or_null(const run::Instance& instance) const;
  Cell* remove(const run::Instance& instance);  // the cell stays until recycle()

  // --- when carried out
  // A live cell of this type, filled with NaN (i32: the least number), so that what is read unwritten is seen.
  void allocate(Cell& cell, const ir::TensorType& type);
  void release(Cell& cell);
  std::int64_t live_bytes() const { return live_; }
  std::int64_t peak_bytes() const { return peak_; }
  void reset_peak() { peak_ = live_; }

  // After a run: cells of removed instances may be used again.
  void recycle();

 private:
  std::unordered_map<run::Instance, Cell*, run::InstanceHash> cells_;
  std::vector<std::unique_ptr<Cell>> storage_;
  std::vector<Cell*> removed_, free_;
  std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace tpusim::numeric
