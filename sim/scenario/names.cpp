#include "sim/scenario/names.hpp"

#include <cstddef>

namespace tpusim::scenario {

// One list an enumeration; the test of this file walks every enumerator.
#define TPUSIM_NAMES(E, ...)                                     \
  template <>                                                    \
  const std::vector<std::string>& names_of<E>() {                \
    static const std::vector<std::string> names = {__VA_ARGS__}; \
    return names;                                                \
  }                                                              \
  std::string_view to_string(E value) {                          \
    return names_of<E>().at(static_cast<std::size_t>(value));    \
  }

TPUSIM_NAMES(Family, "transformer", "mlp", "fixed")
TPUSIM_NAMES(Positions, "rotary", "learned", "none")
TPUSIM_NAMES(Norm, "rms", "layer")
TPUSIM_NAMES(Activation, "silu", "gelu", "relu")
TPUSIM_NAMES(DType, "bf16", "f32", "f64")
TPUSIM_NAMES(Optimizer, "sgd", "momentum", "adam", "adamw", "adafactor")
TPUSIM_NAMES(Remat, "none", "selective", "full")
TPUSIM_NAMES(Attention, "flash", "unfused")
TPUSIM_NAMES(FlopsConvention, "full", "causal")
TPUSIM_NAMES(Schedule, "gpipe", "1f1b")
TPUSIM_NAMES(Compression, "none")
TPUSIM_NAMES(SharedBy, "job", "host")

#undef TPUSIM_NAMES

}  // namespace tpusim::scenario
