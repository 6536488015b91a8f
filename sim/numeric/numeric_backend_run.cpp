// Running what was issued, and what is known afterwards.
#include <algorithm>
#include <numeric>

#include "sim/numeric/numeric_backend.hpp"

namespace tpusim::numeric {

void NumericBackend::after_run() {
  executed_issues_ = issues();
  batch_issues_.clear();
  for (DeviceMemory& m : memories_) m.recycle();
}

void NumericBackend::execute(const Order& order) {
  graph_.run(order);
  after_run();
}

void NumericBackend::execute_in_order(const std::vector<std::int64_t>& order) {
  // A batch is no issue: it is put right before the first issue that waits for it.
  std::vector<Token> tasks;
  std::vector<bool> placed(static_cast<std::size_t>(graph_.size() - graph_.first_pending()), false);
  const auto place_batches = [&](Token task) {
    std::vector<Token> open = {task};
    std::vector<Token> found;
    while (!open.empty()) {
      const Token now = open.back();
      open.pop_back();
      for (Token before : graph_.dependences(now)) {
        if (before < graph_.first_pending()) continue;
        const std::size_t at = static_cast<std::size_t>(before - graph_.first_pending());
        if (placed[at]) continue;
        const bool batch = std::find(batch_issues_.begin(), batch_issues_.end(), before) != batch_issues_.end();
        if (graph_.has_work(before) && !batch) continue;
        placed[at] = true;
        if (batch) found.push_back(before);
        open.push_back(before);
      }
    }
    std::sort(found.begin(), found.end());
    tasks.insert(tasks.end(), found.begin(), found.end());
  };
  for (std::int64_t i : order) {
    TPUSIM_CHECK(i >= executed_issues_ && i < issues(), "an order names an issue that is not open");
    place_batches(issues_[static_cast<std::size_t>(i)]);
    tasks.push_back(issues_[static_cast<std::size_t>(i)]);
  }
  for (Token batch : batch_issues_)
    if (std::find(tasks.begin(), tasks.end(), batch) == tasks.end()) tasks.push_back(batch);
  graph_.run_in_order(tasks);
  after_run();
}

std::vector<std::int64_t> NumericBackend::order_by_finish(const std::vector<std::int64_t>& finish) const {
  TPUSIM_CHECK(static_cast<std::int64_t>(finish.size()) == issues() - executed_issues_,
               "finish times for another number of issues");
  std::vector<std::int64_t> order(finish.size());
  std::iota(order.begin(), order.end(), executed_issues_);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return finish[static_cast<std::size_t>(a - executed_issues_)] <
           finish[static_cast<std::size_t>(b - executed_issues_)];
  });
  return order;
}

// --- afterwards
// --------------------------------------------------------------------------------------------------------------

run::Tally NumericBackend::tally() const {
  run::Tally tally;
  for (std::size_t i = 0; i < bytes_sent_.size(); ++i) tally.bytes_sent[i] = bytes_sent_[i];
  tally.executed_flops = executed_flops_;
  for (const DeviceMemory& m : memories_) tally.peak_bytes = std::max(tally.peak_bytes, m.peak_bytes());
  return tally;
}

void NumericBackend::reset_tally() {
  for (auto& bytes : bytes_sent_) bytes = 0;
  executed_flops_ = 0;
  for (DeviceMemory& m : memories_) m.reset_peak();
}

const Tensor* NumericBackend::find(std::int64_t device, const run::Instance& instance) const {
  const Cell* cell = memory(device).find_or_null(instance);
  return cell != nullptr && cell->live && cell->written ? &cell->tensor : nullptr;
}

void NumericBackend::set(std::int64_t device, const run::Instance& instance, Tensor value) {
  write(*memory(device).find(instance), instance.buffer, std::move(value));
}

}  // namespace tpusim::numeric
