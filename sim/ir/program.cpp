#include "sim/ir/program.hpp"

#include <set>

#include "sim/base/checked.hpp"

namespace tpusim::ir {
namespace {

std::int64_t valid_count(const Shape& shape) {
  std::int64_t n = 1;
  for (const Dim& d : shape) n = checked_mul(n, d.valid, "the number of parameters");
  return n;
}

}  // namespace

std::int64_t Program::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters)
    n = checked_add(n, valid_count(value(p.value).type.shape), "the number of parameters");
  return n;
}

std::int64_t Model::parameter_count() const {
  std::int64_t total = 0;
  std::set<std::string> seen;  // ties met so far
  for (const BlockUse& use : uses) {
    const Program& block = blocks[static_cast<std::size_t>(use.block)];
    for (const Parameter& p : block.parameters) {
      const std::int64_t one = valid_count(block.value(p.value).type.shape);
      if (!p.tie.empty() && !seen.insert(p.tie).second) continue;
      const std::int64_t copies = p.tie.empty() ? use.count : 1;
      total = checked_add(total, checked_mul(one, copies, "the number of parameters"), "the number of parameters");
    }
  }
  return total;
}

}  // namespace tpusim::ir
