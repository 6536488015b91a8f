// A buffer with a fixed number of places between a producer and a consumer: a full buffer holds the producer back, an
// empty one the consumer. Places hold nothing here; only how many are taken matters. Waiting puts and gets are served
// first come, first served, within the call that makes them possible, so no time passes.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>

#include "sim/base/check.hpp"
#include "sim/engine/action.hpp"

namespace tpusim::engine {

class BoundedBuffer {
 public:
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  // InternalError unless capacity >= 1.
  explicit BoundedBuffer(std::int64_t capacity) : capacity_(capacity) {
    TPUSIM_CHECK(capacity >= 1, "a buffer of " + std::to_string(capacity) + " places");
  }

  // Stores one item as soon as there is a place, then calls `stored`.
  void put(Action stored) {
    puts_.push_back(stored);
    settle();
  }
  // Takes one item as soon as there is one, then calls `taken`.
  void get(Action taken) {
    gets_.push_back(taken);
    settle();
  }

  std::int64_t capacity() const { return capacity_; }
  std::int64_t size() const { return size_; }
  std::size_t waiting_puts() const { return puts_.size(); }
  std::size_t waiting_gets() const { return gets_.size(); }

 private:
  // Serves all that can be served. An action may call put or get again: those only queue up, and this loop serves them,
  // so the depth of the stack does not grow with the length of the run.
  void settle() {
    if (settling_) return;
    settling_ = true;
    for (;;) {
      if (!puts_.empty() && size_ < capacity_) {
        Action stored = puts_.front();
        puts_.pop_front();
        ++size_;
        stored();
      } else if (!gets_.empty() && size_ > 0) {
        Action taken = gets_.front();
        gets_.pop_front();
        --size_;
        taken();
      } else {
        break;
      }
    }
    settling_ = false;
  }

  std::int64_t capacity_, size_ = 0;
  std::deque<Action> puts_, gets_;
  bool settling_ = false;
};

}  // namespace tpusim::engine
