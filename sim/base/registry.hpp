// A table of named entries with one line of help each: what `list` prints, and what error messages suggest from.
// Filled explicitly by register_builtin(...) functions; there are no static constructors and no globals.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"

namespace tpusim {

template <class T>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string help;
    T value;
  };
  void add(std::string name, std::string help, T value) {
    TPUSIM_CHECK(find(name) == nullptr, "registered twice: " + name);
    entries_.push_back({std::move(name), std::move(help), std::move(value)});
  }
  const Entry* find(std::string_view name) const {
    for (const Entry& e : entries_)
      if (e.name == name) return &e;
    return nullptr;
  }
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Entry& e : entries_) out.push_back(e.name);
    return out;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tpusim
