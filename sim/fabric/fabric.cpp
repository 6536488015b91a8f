#include "sim/fabric/fabric.hpp"

#include "sim/base/checked.hpp"

namespace tpusim::fabric {

std::int64_t Fabric::chips() const {
  std::int64_t n = 1;
  for (const PhysicalAxis& axis : axes) n = checked_mul(n, axis.size, "the number of chips");
  return n;
}

}  // namespace tpusim::fabric
