// Which member of a dense set is due when. Members due at one instant share one entry of the queue, so that thousands
// that end together cost one heap operation and not thousands. add and remove are O(1) where an entry for the instant
// is at hand, O(log instants) else; nothing is allocated once the calendar has grown to its largest size.
//
// Whether two members share an entry depends on a small cache and never shows: take_due hands out all that is due, and
// the caller sorts it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.hpp"

namespace tpusim::engine {

// The caller keeps one Place per member; a member is in at most one calendar at a time.
struct CalendarPlace {
  std::int32_t bucket = -1, next = -1, previous = -1;
};

class Calendar {
 public:
  // `place(member)` gives the CalendarPlace& of a member. `at` must not lie before what take_due has handed out.
  template <class PlaceOf>
  void add(std::int32_t member, SimTime at, PlaceOf place) {
    std::int32_t& cached = recent_[static_cast<std::uint64_t>(at.ps()) * 0x9e3779b97f4a7c15u >> (64 - kRecentBits)];
    if (cached < 0 || bucket(cached).members == 0 || bucket(cached).at != at) cached = new_bucket(at);
    Bucket& b = bucket(cached);
    CalendarPlace& p = place(member);
    p = {cached, -1, b.last};
    (b.last >= 0 ? place(b.last).next : b.first) = member;
    b.last = member;
    ++b.members;
  }

  template <class PlaceOf>
  void remove(std::int32_t member, PlaceOf place) {
    CalendarPlace& p = place(member);
    if (p.bucket < 0) return;
    Bucket& b = bucket(p.bucket);
    (p.previous >= 0 ? place(p.previous).next : b.first) = p.next;
    (p.next >= 0 ? place(p.next).previous : b.last) = p.previous;
    if (--b.members == 0) {
      queue_.cancel(b.event);
      free_.push_back(p.bucket);
    }
    p = {};
  }

  // Calls each(member) for all that is due at `now` or before, after it has left the calendar. `each` must not change
  // the calendar.
  template <class PlaceOf, class Each>
  void take_due(SimTime now, PlaceOf place, Each each) {
    for (auto next = queue_.next_time(); next && *next <= now; next = queue_.next_time()) {
      const std::int32_t index = queue_.pop()->payload;
      for (std::int32_t member = bucket(index).first; member >= 0;) {
        CalendarPlace& p = place(member);
        const std::int32_t after = p.next;
        p = {};
        each(member);
        member = after;
      }
      bucket(index).members = 0;
      free_.push_back(index);
    }
  }

  std::optional<SimTime> next_time() { return queue_.next_time(); }

 private:
  struct Bucket {
    SimTime at;
    Handle event;
    std::int32_t first = -1, last = -1, members = 0;
  };
  static constexpr int kRecentBits = 6;

  Bucket& bucket(std::int32_t index) { return buckets_[static_cast<std::size_t>(index)]; }
  std::int32_t new_bucket(SimTime at) {
    std::int32_t index = static_cast<std::int32_t>(buckets_.size());
    if (free_.empty()) {
      buckets_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    bucket(index) = {at, queue_.schedule(at, Priority::completion, index), -1, -1, 0};
    return index;
  }

  EventQueue<std::int32_t> queue_;
  std::vector<Bucket> buckets_;
  std::vector<std::int32_t> free_;
  std::array<std::int32_t, std::size_t{1} << kRecentBits> recent_ = [] {
    std::array<std::int32_t, std::size_t{1} << kRecentBits> none{};
    none.fill(-1);
    return none;
  }();
};

}  // namespace tpusim::engine
