// What the interpreter knows of one device class between two instructions.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/run/compiled.hpp"
#include "sim/run/cursor.hpp"
#include "sim/run/rendezvous.hpp"

namespace tpusim::run {

// Of one buffer instance: when it was last written and what has read it since.
template <class Token>
struct Entry {
  Ref<Token> write;
  Token readers{};
  std::int32_t promised_readers =
      -1;  // transfers that read it and have not been settled yet: a list in ClassState::promises
};

// An instance that outlives the call.
template <class Token>
struct Kept {
  Instance key;
  Entry<Token> entry;
  bool taken = false;  // by the call being played, which gives it back when it ends
};

template <class Token>
struct ClassState {
  Cursor cursor;
  std::int32_t tmpl = -1;  // of the call being played; -1 between calls
  std::size_t instr = 0;
  std::vector<Entry<Token>> slots;  // of the call being played
  Ref<Token> compute;
  Token barrier{};  // what the compute stream was told to wait for, in addition to its own order
  std::vector<Ref<Token>> resources;
  Token memory{};
  std::int32_t blocked = -1;  // the meeting that it waits for
  bool round_over = false;
  std::vector<std::int64_t> stage_reduce_count;

  // Instances that live between calls. A vector where few do (ordered tokens forget what is settled), else a table.
  std::vector<Kept<Token>> few;
  std::unordered_map<Instance, Entry<Token>, InstanceHash> many;

  // Lists of meetings, linked, so that an Entry stays small and plain.
  struct Promise {
    std::int32_t meeting = -1, next = -1;
  };
  std::vector<Promise> promises;
  std::int32_t free_promise = -1;
  void add_promise(std::int32_t& list, std::int32_t meeting) {
    std::int32_t node = free_promise;
    if (node < 0) {
      node = static_cast<std::int32_t>(promises.size());
      promises.emplace_back();
    } else {
      free_promise = promises[static_cast<std::size_t>(node)].next;
    }
    promises[static_cast<std::size_t>(node)] = {meeting, list};
    list = node;
  }
  void drop_promise(std::int32_t& list) {
    const std::int32_t node = list;
    list = promises[static_cast<std::size_t>(node)].next;
    promises[static_cast<std::size_t>(node)].next = free_promise;
    free_promise = node;
  }
};

}  // namespace tpusim::run
