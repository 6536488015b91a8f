// What the interpreter knows of one device class between two instructions.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/run/cursor.hpp"
#include "sim/run/rendezvous.hpp"

namespace tpusim::run {

// Of one buffer instance: when it was last written and what has read it since.
template <class Token>
struct Entry {
  Ref<Token> write;
  Token readers{};
  InlineVector<std::int32_t, 6> reader_meetings;  // transfers that read it and have not been settled yet
};

template <class Token>
struct ClassState {
  Cursor cursor;
  std::int32_t tmpl = -1;                   // of the call being played; -1 between calls
  std::size_t instr = 0;
  std::vector<Entry<Token>> slots;          // of the call being played
  Ref<Token> compute;
  std::vector<Ref<Token>> resources;
  Token memory{};
  std::int32_t blocked = -1;                // the meeting that it waits for
  bool round_over = false;
  std::vector<std::int64_t> stage_reduce_count;

  // Instances that live between calls. A vector where few do (ordered tokens forget what is settled), else a table.
  std::vector<std::pair<Instance, Entry<Token>>> few;
  std::unordered_map<Instance, Entry<Token>, InstanceHash> many;

  Entry<Token>* find(const Instance& key, bool ordered) {
    if (!ordered) {
      const auto found = many.find(key);
      return found == many.end() ? nullptr : &found->second;
    }
    for (auto& item : few)
      if (item.first == key) return &item.second;
    return nullptr;
  }
  void put(const Instance& key, const Entry<Token>& entry, bool ordered) {
    if (Entry<Token>* there = find(key, ordered))
      *there = entry;
    else if (ordered)
      few.emplace_back(key, entry);
    else
      many.emplace(key, entry);
  }
  void forget(const Instance& key, bool ordered) {
    if (!ordered) {
      many.erase(key);
      return;
    }
    const auto found = std::find_if(few.begin(), few.end(), [&](const auto& item) { return item.first == key; });
    if (found != few.end()) few.erase(found);
  }
};

}  // namespace tpusim::run
