// Helpers of the scenario tests.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/read.hpp"

namespace tpusim::scenario {

// All diagnostics of a text, one formatted text each.
inline std::string faults(const std::string& text, const std::vector<std::string>& sets = {}) {
  DiagnosticSink sink;
  read(text, "s.json", sink, sets);
  std::string out;
  for (const Diagnostic& d : sink.all()) out += format(d) + "\n";
  return out;
}

// A scenario with nothing wrong in it.
inline const char* small_text() {
  return R"({
  "model": "gpt2",
  "cluster": {"chip": "tpu-v5e", "topology": "4x4"},
  "mesh": {"fsdp": 8, "tensor": 2},
  "training": {"global_batch": 32, "sequence_length": 1024}
})";
}

}  // namespace tpusim::scenario
