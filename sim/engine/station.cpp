#include "sim/engine/station.hpp"

#include "sim/base/check.hpp"

namespace tpusim::engine {

Station::Station(Simulator& simulator, std::int64_t servers) : simulator_(simulator), servers_(servers) {
  TPUSIM_CHECK(servers >= 1, "a station with " + std::to_string(servers) + " servers");
}

void Station::submit(SimTime service, Action done) {
  const Job job{service, done};
  if (busy_ == servers_)
    queue_.push_back(job);
  else
    start(job);
}

void Station::start(const Job& job) {
  ++busy_;
  std::size_t slot = running_.size();
  if (free_.empty()) {
    running_.push_back(job);
  } else {
    slot = free_.back();
    free_.pop_back();
    running_[slot] = job;
  }
  simulator_.after(job.service, Priority::completion, [this, slot] { finish(slot); });
}

void Station::finish(std::size_t slot) {
  Job job = running_[slot];
  free_.push_back(slot);
  --busy_;
  ++completed_;
  busy_time_ += job.service;
  if (!queue_.empty()) {
    const Job next = queue_.front();
    queue_.pop_front();
    start(next);
  }
  job.done();
}

}  // namespace tpusim::engine
