// Servers that work one job at a time: a stream is a station with one server, a pool of threads one with several.
//
// Jobs are served first come, first served; each keeps one server for its service time. The station is work-conserving:
// with s servers and a service time of d it completes at most s jobs in any time d, and a job that finds a free server
// starts at once.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/engine/simulator.hpp"

namespace tpusim::engine {

class Station {
 public:
  // InternalError unless servers >= 1.
  Station(Simulator& simulator, std::int64_t servers);
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // The job starts when all jobs submitted before have started and a server is free. `done` runs when it ends, after
  // the server has been given to the next job.
  void submit(SimTime service, Action done);

  std::int64_t servers() const { return servers_; }
  std::int64_t busy() const { return busy_; }
  std::size_t waiting() const { return queue_.size(); }
  std::int64_t completed() const { return completed_; }
  // Sum over servers of the time that they worked, of jobs that have ended.
  SimTime busy_time() const { return busy_time_; }

 private:
  struct Job {
    SimTime service;
    Action done;
  };
  void start(const Job& job);
  void finish(std::size_t slot);

  Simulator& simulator_;
  std::int64_t servers_, busy_ = 0, completed_ = 0;
  SimTime busy_time_;
  std::deque<Job> queue_;
  std::vector<Job> running_;       // by slot
  std::vector<std::size_t> free_;  // slots of running_
};

// A first-in, first-out stream of work: a device's compute or copy stream.
class Stream : public Station {
 public:
  explicit Stream(Simulator& simulator) : Station(simulator, 1) {}
};

}  // namespace tpusim::engine
