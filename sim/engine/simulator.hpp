// The clock and the loop: events are actions, run in the queue's order. Several simulators can live in one process and
// in several threads (one thread each); there is no global state.
#pragma once

#include <cstdint>

#include "sim/engine/action.hpp"
#include "sim/engine/event_queue.hpp"

namespace tpusim::engine {

class Simulator {
 public:
  SimTime now() const { return queue_.now(); }

  // InternalError when `at` is in the past.
  Handle at(SimTime at, Priority priority, Action action) { return queue_.schedule(at, priority, action); }
  // CapacityError when the sum leaves the 106 days of one run.
  Handle after(SimTime delay, Priority priority, Action action) {
    return queue_.schedule(now() + delay, priority, action);
  }
  bool cancel(Handle handle) { return queue_.cancel(handle); }
  bool pending(Handle handle) const { return queue_.pending(handle); }

  // Runs the next event. False when there is none.
  bool step() {
    auto event = queue_.pop();
    if (!event) return false;
    ++events_;
    event->payload();
    return true;
  }
  // Until nothing is left to do.
  void run() {
    while (step()) {
    }
  }
  // Runs every event whose time is at most `limit`; now() is then the time of the last of them.
  void run_until(SimTime limit) {
    for (auto next = queue_.next_time(); next && *next <= limit; next = queue_.next_time()) step();
  }
  // Until done() or nothing is left; true when done.
  template <class Done>
  bool run_while_not(Done done) {
    while (!done())
      if (!step()) return done();
    return true;
  }

  std::size_t pending_events() const { return queue_.size(); }
  std::uint64_t events_run() const { return events_; }

 private:
  EventQueue<Action> queue_;
  std::uint64_t events_ = 0;
};

}  // namespace tpusim::engine
