// Where several device classes meet: a collective's members, a sender and a receiver, the stages that share a parameter.
//
// A class that arrives leaves what it is ready after and goes on; the one that arrives last completes the meeting. What a
// meeting will produce is a promise until then; a class that needs a promise waits, and who waits for whom is known exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/run/backend.hpp"

namespace tpusim::run {

// What names a meeting: the instruction, the group (its lowest device) and the how-manieth time.
struct MeetingKey {
  std::int32_t kind = 0;     // InstrKind
  std::int32_t body = 0;
  std::int64_t group = 0;
  std::int64_t a = 0, b = 0; // collective: call number, instruction; permute: step, microbatch; stage reduce: step, call count
  bool operator==(const MeetingKey&) const = default;
};
struct MeetingKeyHash {
  std::size_t operator()(const MeetingKey& k) const {
    std::uint64_t h = static_cast<std::uint64_t>(k.kind * 64 + 1) * 0x9e3779b97f4a7c15ull;
    for (std::int64_t x : {static_cast<std::int64_t>(k.body), k.group, k.a, k.b})
      h = (h ^ static_cast<std::uint64_t>(x)) * 0xbf58476d1ce4e5b9ull + (h >> 29);
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
};

// A token that may still be a promise.
template <class Token>
struct Ref {
  Token token{};
  std::int32_t meeting = -1;  // -1: `token` holds
};

template <class Token>
struct Meeting {
  std::int32_t expected = 0;
  std::int32_t arrived = 0;
  bool done = false;
  Token completion{};
  MeetingKey key;
  std::vector<std::int32_t> classes;          // who is expected, in group order
  std::vector<bool> present;
  std::vector<Token> ready, stream;
  std::vector<CollectiveMember> members;      // instances of each
};

// Open meetings by key; completed ones stay readable until nobody holds a promise of them.
template <class Token>
class Meetings {
 public:
  // Finds or opens the meeting; `classes` is called only when it is opened.
  std::int32_t open(const MeetingKey& key, const std::function<std::vector<std::int32_t>()>& classes) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) return found->second;
    const std::int32_t id = static_cast<std::int32_t>(all_.size());
    all_.emplace_back();
    Meeting<Token>& m = all_.back();
    m.key = key;
    m.classes = classes();
    m.expected = static_cast<std::int32_t>(m.classes.size());
    m.present.assign(m.classes.size(), false);
    m.ready.resize(m.classes.size());
    m.stream.resize(m.classes.size());
    m.members.resize(m.classes.size());
    by_key_.emplace(key, id);
    open_.insert(id);
    return id;
  }
  Meeting<Token>& at(std::int32_t id) { return all_[static_cast<std::size_t>(id)]; }
  // Promises are kept in refs, so a completed meeting only gives up its details here.
  void complete(std::int32_t id, Token completion) {
    Meeting<Token>& m = at(id);
    m.done = true;
    m.completion = completion;
    by_key_.erase(m.key);
    open_.erase(id);
    m.ready.clear();
    m.stream.clear();
    m.members.clear();
    m.classes.clear();
    m.present.clear();
  }
  // Open meetings, oldest first.
  const std::set<std::int32_t>& open_ids() const { return open_; }
  // Changes every open meeting, its key included.
  template <class Change>
  void shift_open(Change change) {
    by_key_.clear();
    for (std::int32_t id : open_) {
      change(at(id));
      by_key_.emplace(at(id).key, id);
    }
  }

 private:
  std::vector<Meeting<Token>> all_;
  std::set<std::int32_t> open_;
  std::unordered_map<MeetingKey, std::int32_t, MeetingKeyHash> by_key_;
};

}  // namespace tpusim::run
