// Sequence parallelism beside data parallelism over hosts: what it must not cost.
#include <doctest/doctest.h>

#include <string>

#include "sim/scenario/read.hpp"
#include "sim/session/session.hpp"

using namespace tpusim;

namespace {

// GPT-3's layers in 4 stages: tensor inside the hosts, data and pipeline between them.
result::Result played(bool sequence_parallel) {
  const std::string text = std::string(R"({"model": {"preset": "gpt3-175b", "layers": 8},
    "cluster": {"chip": "a100-80gb", "hosts": 16, "chips_per_host": 8},
    "mesh": {"pipeline": 4, "data": 4, "tensor": 8},
    "training": {"global_batch": 64, "microbatch": 1, "remat": "full"},
    "strategies": {"tensor": {"sequence_parallel": )") +
                           (sequence_parallel ? "true" : "false") + "}}}";
  DiagnosticSink sink;
  const scenario::Scenario scenario = scenario::read(text, "s.json", sink);
  sink.throw_if_errors();
  session::Options options;
  options.verify = options.diagnose = false;
  return session::simulate(scenario, options);
}

}  // namespace

TEST_CASE(
    "sequence parallelism over the chips of a host does not make stages wait for the gradients that go between hosts") {
  // The same bytes go round in gathers and scatters as in all-reduces, and norms work on an eighth of the tokens. A
  // norm's scale is then a partial sum over tensor and data: reduced over both at once it would hold the links inside a
  // host while it waits for those between hosts, and stage after stage would wait for it (22 % of the step for GPT-3).
  const result::Result without = played(false), with = played(true);
  CHECK(with.step.time.value() < without.step.time.value());
  CHECK(with.step.bubble.value() < 1.5 * without.step.bubble.value());  // stages differ a little more; it was 4 times
}
