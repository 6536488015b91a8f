// How a host prepares batches: storage -> stages -> prefetch buffer -> copy to its chips; all hosts alike, each its
// share of every global batch.
//
//   storage    latency + share / bandwidth for each batch, one batch at a time
//   stage      share x time per example / threads: threads stay busy across the boundary of two batches
//   prefetch   finished batches that may wait; a full buffer holds the last stage back (blocking after service)
//   copy       share / host_to_chip, one batch at a time; a chip holds the batch of the running step and one more, so
//   the copy for
//              step k begins when step k-1 has its own
// A tandem line of servers with blocking: departures are maxima of earlier departures (F. Baccelli et al.,
// "Synchronization and Linearity", 1992, section 1.2); tests check it against the engine's stations and buffers.
// Throughput is that of the slowest server. Ignored: variation between examples, shared processor cores between stages.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace tpusim::timing {

struct HostInput {
  double examples_per_host = 0;  // of one global batch
  Bytes example_bytes;
  BytesPerSecond storage_bandwidth{std::numeric_limits<double>::infinity()};  // of one host
  Seconds storage_latency;
  struct Stage {
    std::string name;
    std::int64_t threads = 1;
    Seconds time_per_example;
  };
  std::vector<Stage> stages;
  std::int64_t prefetch = 2;
  BytesPerSecond host_to_chip{std::numeric_limits<double>::infinity()};  // of one host
  double speed_up = 1;                                                   // of everything here
};

class HostPipeline {
 public:
  explicit HostPipeline(const HostInput& input);
  // When the batch of step k is on the chips, k = 0, 1, ... in order; `previous_begun`: when step k-1 began (had its
  // batch and started).
  SimTime ready(std::int64_t k, SimTime previous_begun);
  // Time of the slowest server for one batch.
  SimTime slowest() const;

 private:
  std::vector<SimTime> service_;   // storage, stages, copy
  std::vector<SimTime> departed_;  // of the latest batch, by server but the copy
  std::deque<SimTime> taken_;      // when the latest batches left the buffer, newest last
  SimTime copied_;
  std::int64_t prefetch_ = 0, next_ = 0;
};

}  // namespace tpusim::timing
