// Where several device classes meet: a collective's members, a sender and a receiver, the stages that share a
// parameter.
//
// A class that arrives leaves what it is ready after and goes on; the one that arrives last completes the meeting. What
// a meeting will produce is a promise until then; a class that needs a promise waits, and who waits for whom is known
// exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/run/backend.hpp"

namespace tpusim::run {

// What names a meeting: the instruction, the group (its lowest device) and the how-manieth time.
struct MeetingKey {
  std::int32_t kind = 0;  // InstrKind; send for both ends of a permute
  std::int32_t body = 0;
  std::int64_t group = 0;
  std::int32_t stage = 0;  // of the sender of a permute
  std::int64_t a = 0,
               b = 0;  // collective: call number, owner; permute: step, microbatch; stage reduce: step, call count
  bool operator==(const MeetingKey&) const = default;
};

// A token that may still be a promise.
template <class Token>
struct Ref {
  Token token{};
  std::int32_t meeting = -1;  // -1: `token` holds
};

// A meeting that is open: who has come and what each brought.
template <class Token>
struct Meeting {
  std::int32_t id = -1;
  std::int32_t arrived = 0;
  MeetingKey key;
  std::int32_t site = 0;  // of the members' calls
  std::int64_t microbatch = 0, step = 0;
  std::vector<std::int32_t> classes;  // who is expected, in group order
  std::vector<std::uint8_t> present;
  std::vector<Token> ready, stream;
  std::vector<CollectiveMember> members;  // instances of each
};

// Open meetings, and the completions of those that are over, for whoever still holds a promise. The details of a
// meeting that is over are used again for another.
template <class Token>
class Meetings {
 public:
  // Instructions are numbered for look-up: `instructions` is how many collectives, permutes and stage reduces there
  // are.
  explicit Meetings(std::size_t instructions) : open_of_(instructions) {}

  Meeting<Token>* find(std::size_t instruction, const MeetingKey& key) {
    for (std::int32_t slot : open_of_[instruction])
      if (details_[static_cast<std::size_t>(slot)].key == key) return &details_[static_cast<std::size_t>(slot)];
    return nullptr;
  }
  // A new one; the caller fills `classes` and then calls expect().
  Meeting<Token>& open(std::size_t instruction, const MeetingKey& key) {
    std::int32_t slot = static_cast<std::int32_t>(details_.size());
    if (free_.empty()) {
      details_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    Meeting<Token>& m = details_[static_cast<std::size_t>(slot)];
    m.id = static_cast<std::int32_t>(over_.size());
    m.arrived = 0;
    m.key = key;
    m.classes.clear();
    over_.push_back({Token{}, slot});
    open_of_[instruction].push_back(slot);
    open_.push_back(m.id);
    return m;
  }
  static void expect(Meeting<Token>& m) {
    m.present.assign(m.classes.size(), 0);
    m.ready.resize(m.classes.size());
    m.stream.resize(m.classes.size());
    m.members.resize(m.classes.size());
  }
  bool done(std::int32_t id) const { return over_[static_cast<std::size_t>(id)].slot < 0; }
  const Token& completion(std::int32_t id) const { return over_[static_cast<std::size_t>(id)].completion; }
  Meeting<Token>& at(std::int32_t id) {
    return details_[static_cast<std::size_t>(over_[static_cast<std::size_t>(id)].slot)];
  }
  const Meeting<Token>& at(std::int32_t id) const {
    return details_[static_cast<std::size_t>(over_[static_cast<std::size_t>(id)].slot)];
  }
  void complete(std::size_t instruction, std::int32_t id, const Token& completion) {
    Over& over = over_[static_cast<std::size_t>(id)];
    std::vector<std::int32_t>& here = open_of_[instruction];
    here.erase(std::find(here.begin(), here.end(), over.slot));
    open_.erase(std::find(open_.begin(), open_.end(), id));
    free_.push_back(over.slot);
    over = {completion, -1};
  }
  // Open meetings, oldest first.
  const std::vector<std::int32_t>& open_ids() const { return open_; }

 private:
  struct Over {
    Token completion{};
    std::int32_t slot = -1;  // of its details; -1 when it is over
  };
  std::vector<Over> over_;                          // by meeting
  std::vector<Meeting<Token>> details_;             // by slot
  std::vector<std::int32_t> free_, open_;           // slots; meetings
  std::vector<std::vector<std::int32_t>> open_of_;  // slots by instruction
};

}  // namespace tpusim::run
