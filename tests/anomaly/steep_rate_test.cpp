// A learning rate under which training diverges is a user's choice, not a fault of the plan: verification still proves
// the plan, at a rate that it can be proved at.
#include <doctest/doctest.h>

#include <string>

#include "sim/scenario/read.hpp"
#include "sim/session/session.hpp"

using namespace tpusim;

TEST_CASE("verification passes at every learning rate and weight decay that a scenario may ask for") {
  for (const char* optimizer : {"sgd", "momentum", "adam", "adamw", "adafactor"})
    for (const char* rate : {"1e-300", "1e-3", "1", "100", "1e6"}) {
      INFO(optimizer, " at ", rate);
      const std::string decay = std::string(optimizer) == "adamw" ? R"(, "weight_decay": 1000)" : "";
      const std::string text = std::string(R"({"model": "gpt2", "cluster": {"chip": "tpu-v5e", "topology": "4x4"},
        "mesh": {"fsdp": 4, "tensor": 4}, "training": {"global_batch": 16, "sequence_length": 128, "learning_rate": )") +
                               rate + R"(, "optimizer": {"name": ")" + optimizer + "\"" + decay + "}}}";
      DiagnosticSink sink;
      const scenario::Scenario scenario = scenario::read(text, "s.json", sink);
      sink.throw_if_errors();
      session::Options options;
      options.diagnose = false;
      const result::Result result = session::simulate(scenario, options);
      REQUIRE(result.verification.has_value());
      INFO(result.verification->culprit);
      CHECK(result.verification->passed);
    }
}
