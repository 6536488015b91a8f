#include "sim/timing/host_input.hpp"

namespace tpusim::timing {

HostPipeline::HostPipeline(const HostInput& input) : prefetch_(input.prefetch) {
  const Bytes share = input.example_bytes * input.examples_per_host;
  service_.push_back(SimTime::from((input.storage_latency + share / input.storage_bandwidth) / input.speed_up));
  for (const HostInput::Stage& stage : input.stages)
    service_.push_back(SimTime::from(stage.time_per_example *
                                     (input.examples_per_host / static_cast<double>(stage.threads) / input.speed_up)));
  service_.push_back(SimTime::from(share / input.host_to_chip / input.speed_up));
  departed_.resize(service_.size() - 1);
}

// Servers 0..n-2 stand before the buffer. Batch k leaves server i when it is done there and server i+1 has let batch
// k-1 go; it leaves the last one when batch k - prefetch has left the buffer. With prefetch 0 it goes straight to the
// copy.
SimTime HostPipeline::ready(std::int64_t k, SimTime previous_begun) {
  TPUSIM_CHECK(k == next_, "batches are prepared in order");
  ++next_;
  const std::size_t n = departed_.size();
  const std::vector<SimTime> before = departed_;  // of batch k-1
  SimTime arrived;
  for (std::size_t i = 0; i < n; ++i) {
    SimTime leave = max(arrived, before[i]) + service_[i];
    if (i + 1 < n) leave = max(leave, before[i + 1]);
    if (i + 1 == n && prefetch_ > 0 && static_cast<std::int64_t>(taken_.size()) == prefetch_)
      leave = max(leave, taken_.front());
    departed_[i] = arrived = leave;
  }
  const SimTime taken = max(max(arrived, copied_), k == 0 ? SimTime{} : previous_begun);
  if (prefetch_ == 0) departed_[n - 1] = taken;
  taken_.push_back(taken);
  while (static_cast<std::int64_t>(taken_.size()) > prefetch_) taken_.pop_front();
  copied_ = taken + service_.back();
  return copied_;
}

SimTime HostPipeline::slowest() const {
  SimTime worst;
  for (SimTime s : service_) worst = max(worst, s);
  return worst;
}

}  // namespace tpusim::timing
