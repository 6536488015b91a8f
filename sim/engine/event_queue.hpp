// A queue of timed events with a total order, so that a run is the same every time and on every machine.
//
// Order: (time, priority, sequence); the sequence is the order of scheduling, so equals are first in, first out. Time is integer
// picoseconds and never goes back: now() is the time of the last event taken, and scheduling before it is an InternalError.
// A Handle names one event once: slots are reused, and a generation tells an old handle from a new event in the same slot.
//
// Structure: a 4-ary heap of small keys (three levels less than a binary heap at 10^4 events, and the four children share two
// cache lines) and payloads that stay put in slots. A pop leaves a hole at the root, which the next schedule fills with one
// sift instead of two, since simulations mostly take one event and schedule one. Cancelled events stay in the heap until they
// surface or until they are more than half of it. schedule and pop are O(log n), cancel is O(1) amortized.
// Source: D. W. Jones, "An empirical comparison of priority-queue and event-set implementations", CACM 29(4), 1986 (the hold
// model, by which tests/bench measures it); D. B. Johnson, "Priority queues with update and finding minimum spanning trees",
// IPL 4(3), 1975 (d-ary heaps).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/priority.hpp"

namespace tpusim::engine {

struct Handle {
  std::uint32_t slot = 0xffffffffu;
  std::uint32_t generation = 0;
  bool operator==(const Handle&) const = default;
};

template <class Payload>
class EventQueue {
 public:
  struct Event {
    SimTime time;
    Priority priority = Priority::start;
    Payload payload{};
  };

  SimTime now() const { return now_; }
  std::size_t size() const { return live_; }
  bool empty() const { return live_ == 0; }

  Handle schedule(SimTime at, Priority priority, Payload payload) {
    TPUSIM_CHECK(at >= now_, "an event scheduled " + std::to_string((now_ - at).ps()) + " ps in the past");
    const std::uint32_t slot = take_slot(std::move(payload));
    const Entry entry{at.ps(), (static_cast<std::uint64_t>(priority) << kSequenceBits) | next_sequence_++, slot};
    ++live_;
    if (hole_) {
      hole_ = false;
      sift_down(0, entry);
    } else {
      heap_.push_back(entry);
      sift_up(heap_.size() - 1, entry);
    }
    return {slot, slots_[slot].generation};
  }

  bool pending(Handle handle) const {
    return handle.slot < slots_.size() && slots_[handle.slot].generation == handle.generation &&
           slots_[handle.slot].state == State::pending;
  }

  // False when the event has already happened or was cancelled before.
  bool cancel(Handle handle) {
    if (!pending(handle)) return false;
    slots_[handle.slot].state = State::cancelled;
    --live_;
    if (++cancelled_ > 64 && cancelled_ > heap_.size() / 2) compact();
    return true;
  }

  // The time of the next event; nullopt when there is none.
  std::optional<SimTime> next_time() {
    settle();
    if (heap_.empty()) return std::nullopt;
    return SimTime::from_ps(heap_[0].time);
  }

  // Takes the next event and moves now() to its time; nullopt when there is none.
  std::optional<Event> pop() {
    settle();
    if (heap_.empty()) return std::nullopt;
    const Entry top = heap_[0];
    Slot& slot = slots_[top.slot];
    std::optional<Event> event(Event{SimTime::from_ps(top.time), static_cast<Priority>(top.key >> kSequenceBits),
                                     std::move(slot.payload)});
    free_slot(top.slot);
    --live_;
    hole_ = true;
    now_ = event->time;
    return event;
  }

 private:
  static constexpr int kSequenceBits = 56;
  static constexpr std::size_t kArity = 4;

  struct Entry {
    std::int64_t time;
    std::uint64_t key;  // priority, then sequence
    std::uint32_t slot;
  };
  enum class State : std::uint8_t { free, pending, cancelled };
  struct Slot {
    Payload payload{};
    std::uint32_t generation = 0;
    State state = State::free;
  };

  static bool before(const Entry& a, const Entry& b) {
    // Bitwise operators: a branch here would be taken at random.
    return (a.time < b.time) | ((a.time == b.time) & (a.key < b.key));
  }

  std::uint32_t take_slot(Payload payload) {
    if (free_.empty()) {
      if (slots_.size() >= 0xfffffffeu) capacity_error("the number of pending events");
      slots_.push_back({std::move(payload), 0, State::pending});
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot].payload = std::move(payload);
    slots_[slot].state = State::pending;
    return slot;
  }

  void free_slot(std::uint32_t slot) {
    slots_[slot].state = State::free;
    ++slots_[slot].generation;
    free_.push_back(slot);
  }

  void sift_up(std::size_t i, Entry entry) {
    while (i > 0) {
      const std::size_t parent = (i - 1) / kArity;
      if (!before(entry, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = entry;
  }

  void sift_down(std::size_t i, Entry entry) {
    const std::size_t n = heap_.size();
    Entry* const heap = heap_.data();
    for (;;) {
      const std::size_t first = i * kArity + 1;
      if (first >= n) break;
      std::size_t best = first;
      if (first + kArity <= n) {
        // A tournament without branches: the two semi-finals do not wait for each other.
        const std::size_t left = first + static_cast<std::size_t>(before(heap[first + 1], heap[first]));
        const std::size_t right = first + 2 + static_cast<std::size_t>(before(heap[first + 3], heap[first + 2]));
        best = before(heap[right], heap[left]) ? right : left;
      } else {
        for (std::size_t c = first + 1; c < n; ++c) best = before(heap[c], heap[best]) ? c : best;
      }
      if (!before(heap[best], entry)) break;
      heap[i] = heap[best];
      i = best;
    }
    heap[i] = entry;
  }

  void remove_root() {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
  }

  // Makes the root a live event or the heap empty.
  void settle() {
    if (hole_) {
      hole_ = false;
      remove_root();
    }
    while (!heap_.empty() && slots_[heap_[0].slot].state == State::cancelled) {
      free_slot(heap_[0].slot);
      --cancelled_;
      remove_root();
    }
  }

  void compact() {
    settle();
    std::size_t kept = 0;
    for (const Entry& entry : heap_) {
      if (slots_[entry.slot].state == State::cancelled)
        free_slot(entry.slot);
      else
        heap_[kept++] = entry;
    }
    heap_.resize(kept);
    cancelled_ = 0;
    for (std::size_t i = kept / kArity + 1; i-- > 0;)
      if (i < kept) sift_down(i, heap_[i]);
  }

  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0, cancelled_ = 0;
  std::uint64_t next_sequence_ = 0;
  SimTime now_;
  bool hole_ = false;  // heap_[0] has been taken and not yet replaced
};

}  // namespace tpusim::engine
