#include <doctest/doctest.h>

#include "scenario_support.hpp"

using namespace tpusim;
using namespace tpusim::scenario;

namespace {

Scenario with(const std::vector<std::string>& sets) {
  DiagnosticSink sink;
  const Scenario s = read(small_text(), "s.json", sink, sets);
  INFO(faults(small_text(), sets));
  REQUIRE_FALSE(sink.has_errors());
  return s;
}

}  // namespace

TEST_CASE("settings replace, add, and hold in order") {
  const Scenario s = with({"mesh.tensor=4", "mesh.fsdp=8", "mesh.fsdp=4", "training.remat=full", "name=\"8\"",
                           "strategies.tensor.sequence_parallel=true", "training.microbatch=2"});
  CHECK(s.mesh == std::vector<MeshAxis>{{"fsdp", 4}, {"tensor", 4}});
  CHECK(s.training.remat == Remat::full);
  CHECK(s.name == "8");
  CHECK(s.strategies.tensor.sequence_parallel);
  CHECK(s.training.microbatch == 2);
}

TEST_CASE("a preset's name becomes an object when a setting goes into it") {
  const Scenario s = with({"model.layers=4", "cluster.chip.peak_bf16=100 TFLOP/s", "training.optimizer=adam",
                           "training.optimizer.beta2=0.99"});
  CHECK(s.model.preset == "gpt2");
  CHECK(s.model.layers == 4);
  CHECK(s.cluster.chip == ChipSpec{"tpu-v5e", {{"peak_bf16", std::string("100 TFLOP/s")}}});
  CHECK(s.training.optimizer.name == Optimizer::adam);
  CHECK(s.training.optimizer.beta2 == 0.99);
}

TEST_CASE("a value is JSON where it parses, else text") {
  const Scenario s =
      with({"mesh={\"data\": 16}", "input.storage.bandwidth=2 GB/s",
            "input.stages=[{\"name\": \"decode\", \"time_per_example\": \"5 ms\"}]", "input.stages.0.threads=4"});
  CHECK(s.mesh == std::vector<MeshAxis>{{"data", 16}});
  REQUIRE(s.input.has_value());
  CHECK(s.input->storage.bandwidth == BytesPerSecond(2e9));
  CHECK(s.input->stages == std::vector<InputStage>{{"decode", 4, Seconds(5e-3)}});
}

TEST_CASE("a JSON pointer reaches keys that hold a dot") {
  const Scenario s = with({"/sharding/activations/residual.seq=[\"tensor\"]"});
  CHECK(s.sharding.activations == std::vector<ShardingRule>{{"residual.seq", {"tensor"}}});
}

TEST_CASE("a wrong setting is reported as such, with the command line as its place") {
  CHECK(faults(small_text(), {"mesh.tensr=8"}) ==
        "--set mesh.tensr=8: error: /mesh/tensr [unknown-key]\n"
        "  no mesh axis is called \"tensr\"; did you mean \"tensor\"?\n"
        "  valid keys: tensor, data, fsdp, pipeline\n");
  CHECK(faults(small_text(), {"training.global_batch=x"})
            .find("--set training.global_batch=x: error: "
                  "/training/global_batch [wrong-type]") == 0);
  CHECK(faults(small_text(), {"tensor"}).find("a setting is path=value, as in mesh.tensor=8") != std::string::npos);
  CHECK(faults(small_text(), {"=8"}).find("a setting is path=value") != std::string::npos);
  CHECK(faults(small_text(), {"mesh..tensor=8"}).find("is no path such as mesh.tensor") != std::string::npos);
  CHECK(faults(small_text(), {"mesh={\"data\": 16"}).find("the text ends before the '}'") != std::string::npos);
  CHECK(faults(small_text(), {"training.learning_rate=NaN"}).find("a finite number is expected") != std::string::npos);
  // A value that is refused leaves nothing behind that would be a second fault.
  CHECK(faults(small_text(), {"cluster.chip.hbm_bandwidth=1e999"}) ==
        "--set cluster.chip.hbm_bandwidth=1e999: error: /cluster/chip/hbm_bandwidth [too-large]\n"
        "  1e999 is larger than any number here\n");
  // Text is UTF-8 here as it is in a file: else the result's JSON would be none.
  CHECK(faults(small_text(), {"name=\xff"}).find("the byte 0xff, which is not UTF-8") != std::string::npos);
  CHECK(faults(small_text(), {"name=\xc3\xa9\t\"'\\"}).empty());
  CHECK(faults(small_text(), {"training.global_batch.x=1"}).find("has nothing inside to set") != std::string::npos);
  CHECK(faults(small_text(), {"input.stages=[]", "input.stages.0.threads=1"}).find("has 0 elements") !=
        std::string::npos);
}
