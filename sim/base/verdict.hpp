// An impossible plan is an ordinary value: what is needed and what there is. A search reads it and goes on.
#pragma once

#include <string>

namespace tpusim {

struct Verdict {
  bool feasible = true;
  std::string reason;  // "out of memory", "does not divide", "stalls"
  std::string needed;  // "103.4 GB on the fullest chip"
  std::string available;
  std::string pointer;  // the scenario field that would have to change, if one is to blame
  explicit operator bool() const { return feasible; }
};

}  // namespace tpusim
