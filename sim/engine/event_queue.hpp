// A queue of timed events with a total order, so that a run is the same every time and on every machine.
//
// Order: (time, priority, sequence); the sequence is the order of scheduling, so equals are first in, first out. Time
// is integer picoseconds and never goes back: now() is the time of the last event taken, and scheduling before it is an
// InternalError. A Handle names one event once: slots are reused, and a generation tells an old handle from a new event
// in the same slot.
//
// Structure: a 4-ary heap of 16-byte keys (half the levels of a binary heap, four children in one cache line) and
// payloads that stay put in slots. A key is one 128-bit number, (time, priority, sequence, slot) from high to low, so
// that a comparison is two instructions without a branch. A pop leaves a hole at the root, which the next schedule
// fills with one sift instead of two, since simulations mostly take one event and schedule one. Cancelled events stay
// in the heap until they surface or until they are more than half of it. schedule and pop are O(log n), cancel is O(1)
// amortized. Source: D. W. Jones, "An empirical comparison of priority-queue and event-set implementations", CACM
// 29(4), 1986 (the hold model, by which tests/bench measures it); D. B. Johnson, "Priority queues with update and
// finding minimum spanning trees", IPL 4(3), 1975 (d-ary heaps).
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

// SequenceBits: the tests shorten it to reach what else takes 3 x 10^10 events.
template <class Payload, int SequenceBits = 35>
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
    const Entry entry = make_entry(at, priority, slot);
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
    return time_of(heap_[0]);
  }

  // Takes the next event and moves now() to its time; nullopt when there is none.
  std::optional<Event> pop() {
    settle();
    if (heap_.empty()) return std::nullopt;
    const Entry top = heap_[0];
    const std::uint32_t slot = slot_of(top);
    std::optional<Event> event(std::in_place, Event{time_of(top), priority_of(top), std::move(slots_[slot].payload)});
    free_slot(slot);
    --live_;
    hole_ = true;
    now_ = event->time;
    return event;
  }

 private:
  static constexpr std::size_t kArity = 4;
  static constexpr int kSlotBits = 26, kSequenceBits = SequenceBits;  // and 3 bits of priority
  static_assert(kSlotBits + kSequenceBits + 3 <= 64);
  static constexpr std::uint64_t kSequences = std::uint64_t{1} << kSequenceBits;

  __extension__ typedef unsigned __int128 Entry;

  Entry make_entry(SimTime at, Priority priority, std::uint32_t slot) {
    if (next_sequence_ == kSequences) renumber();
    const std::uint64_t low =
        (static_cast<std::uint64_t>(priority) << (kSlotBits + kSequenceBits)) | (next_sequence_++ << kSlotBits) | slot;
    return (static_cast<Entry>(static_cast<std::uint64_t>(at.ps())) << 64) | low;
  }
  static SimTime time_of(Entry e) { return SimTime::from_ps(static_cast<std::int64_t>(e >> 64)); }
  static Priority priority_of(Entry e) {
    return static_cast<Priority>(static_cast<std::uint64_t>(e) >> (kSlotBits + kSequenceBits));
  }
  static std::uint32_t slot_of(Entry e) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(e) & ((std::uint64_t{1} << kSlotBits) - 1));
  }

  // When the numbers are used up: gives the pending ones the numbers from 0 on, in their order. A sorted array is a
  // heap.
  void renumber() {
    settle();
    if (heap_.size() >= kSequences) capacity_error("the number of pending events");
    std::sort(heap_.begin(), heap_.end());
    next_sequence_ = 0;
    for (Entry& e : heap_) e = make_entry(time_of(e), priority_of(e), slot_of(e));
  }

  enum class State : std::uint8_t { free, pending, cancelled };
  struct Slot {
    Payload payload{};
    std::uint32_t generation = 0;
    State state = State::free;
  };

  std::uint32_t take_slot(Payload payload) {
    if (free_.empty()) {
      if (slots_.size() >= (std::size_t{1} << kSlotBits)) capacity_error("the number of pending events");
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
      if (!(entry < heap_[parent])) break;
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
        const std::size_t left = first + static_cast<std::size_t>(heap[first + 1] < heap[first]);
        const std::size_t right = first + 2 + static_cast<std::size_t>(heap[first + 3] < heap[first + 2]);
        best = heap[right] < heap[left] ? right : left;
      } else {
        for (std::size_t c = first + 1; c < n; ++c) best = heap[c] < heap[best] ? c : best;
      }
      if (!(heap[best] < entry)) break;
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
    while (!heap_.empty() && slots_[slot_of(heap_[0])].state == State::cancelled) {
      free_slot(slot_of(heap_[0]));
      --cancelled_;
      remove_root();
    }
  }

  void compact() {
    settle();
    std::size_t kept = 0;
    for (const Entry entry : heap_) {
      if (slots_[slot_of(entry)].state == State::cancelled)
        free_slot(slot_of(entry));
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
