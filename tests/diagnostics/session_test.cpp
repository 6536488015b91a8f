// Bad scenarios whose fault shows only against the registries or the plan: what the command says, where, and its exit
// status.
#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/cli.hpp"

using namespace tpusim;

namespace {

struct Row {
  std::string name;
  std::vector<std::string> sets;  // onto a sound scenario
  int status;
  std::vector<std::string> said;  // each stands in what is said
};

constexpr const char* kSound = R"({
  "model": "llama2-7b",
  "cluster": {"chip": "tpu-v5e", "topology": "4x4"},
  "mesh": {"fsdp": 16},
  "training": {"global_batch": 16, "sequence_length": 4096, "remat": "full"}
})";

struct Said {
  int status;
  std::string out, err;
};
Said call(const char* command, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments = {command, "-"};
  if (std::string(command) == "run") arguments.emplace_back("--no-verify");
  for (const std::string& s : sets) {
    arguments.emplace_back("--set");
    arguments.push_back(s);
  }
  std::istringstream in(kSound);
  std::ostringstream out, err;
  cli::Streams streams{in, out, err};
  const int status = cli::run_command(arguments, streams);
  return {status, out.str(), err.str()};
}

std::vector<Row> rows() {
  using cli::exit_impossible, cli::exit_usage;
  return {
      {"model misspelt", {"model=llama2-7c"}, exit_usage, {"/model [unknown-name]", "did you mean \"llama2-7b\"?"}},
      {"model that nobody knows", {"model=zebra"}, exit_usage, {"/model [unknown-name]", "valid names:"}},
      {"model misspelt in an object",
       {"model={\"preset\": \"gpt-2\"}"},
       exit_usage,
       {"/model/preset [unknown-name]", "did you mean \"gpt2\"?"}},
      {"no such Hugging Face file",
       {"model={\"huggingface\": \"none.json\"}"},
       exit_usage,
       {"/model/huggingface [io]", "none.json"}},
      {"chip misspelt", {"cluster.chip=tpu-v5"}, exit_usage, {"/cluster/chip [unknown-name]", "tpu-v5e", "tpu-v5p"}},
      {"chip in capitals",
       {"cluster.chip=TPU-V5E"},
       exit_usage,
       {"/cluster/chip [unknown-name]", "did you mean \"tpu-v5e\"?"}},
      {"chip misspelt in an object",
       {"cluster.chip={\"preset\": \"tpuv5e\"}"},
       exit_usage,
       {"/cluster/chip/preset [unknown-name]", "did you mean \"tpu-v5e\"?"}},
      {"number of a chip misspelt",
       {"cluster.chip.peak_bf61=1e14"},
       exit_usage,
       {"/cluster/chip/peak_bf61 [unknown-key]", "did you mean \"peak_bf16\"?"}},
      {"links that carry nothing", {"cluster.chip.link_rate=0"}, exit_usage, {"/cluster/chip/link_rate [bad-value]"}},
      {"fewer links than neighbours",
       {"cluster.chip.link_count=2"},
       exit_usage,
       {"/cluster/chip/link_count [bad-value]", "did you mean \"4\"?"}},
      {"number of a chip in the wrong unit",
       {"cluster.chip.hbm_bandwidth=900 GB"},
       exit_usage,
       {"/cluster/chip/hbm_bandwidth [bad-unit]", "GB/s"}},
      {"memory without bandwidth",
       {"cluster.chip.hbm_bandwidth=0"},
       exit_usage,
       {"/cluster/chip/hbm_bandwidth [bad-value]"}},
      {"negative peak", {"cluster.chip.peak_bf16=-1"}, exit_usage, {"/cluster/chip/peak_bf16 [bad-value]"}},
      {"slice of the wrong dimensions", {"cluster.topology=2x2x4"}, exit_usage, {"/cluster/topology"}},
      {"slice larger than the pod",
       {"cluster.topology=64x64", "mesh.fsdp=4096", "training.global_batch=4096"},
       exit_usage,
       {"/cluster/topology"}},
      {"topology of a GPU", {"cluster.chip=h100"}, exit_usage, {"/cluster/topology"}},
      {"cluster preset misspelt",
       {"cluster={\"preset\": \"dgx-h10\", \"hosts\": 2}"},
       exit_usage,
       {"/cluster/preset [unknown-name]", "did you mean \"dgx-h100\"?"}},
      {"tensor axis that heads do not divide",
       {"mesh={\"tensor\": 16}",
        "model={\"preset\": \"llama2-7b\", \"heads\": 12, \"kv_heads\": 12, \"head_dim\": 128}"},
       exit_impossible,
       {"heads", "12", "16"}},
      {"stages that do not fit the layers",
       {"mesh={\"pipeline\": 16}", "model.layers=8"},
       exit_usage,
       {"/mesh/pipeline [conflict]"}},
      {"memory", {"mesh={\"data\": 16}"}, exit_impossible, {"memory"}},
  };
}

}  // namespace

TEST_CASE("what only the registries or the plan can tell is said by check and by run alike, at the field to blame") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    for (const char* command : {"check", "run"}) {
      CAPTURE(std::string(command));
      const auto start = std::chrono::steady_clock::now();
      const Said said = call(command, row.sets);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      CHECK(took.count() < 1.0);
      CHECK(said.status == row.status);
      const std::string all = said.err + said.out;
      CAPTURE(all);
      for (const std::string& words : row.said) CHECK(all.find(words) != std::string::npos);
      if (row.status == cli::exit_usage) CHECK(said.out == "");
      // A plan that cannot work still has a result.
      if (row.status == cli::exit_impossible && std::string(command) == "run") CHECK(said.out != "");
    }
  }
}

TEST_CASE("tensors beyond 2^60 bytes are refused by name, not as a fault of the program") {
  // 10^9 sequences of 4,096 tokens x 4,096 wide x 2 bytes = 2^55 bytes a chip for one activation of a layer; what is to
  // be kept with remat "none" is more than 2^60 / 2^55 = 32 such.
  const Said said = call("run", {"training.global_batch=16000000000", "training.remat=none"});
  CHECK(said.status == cli::exit_impossible);
  CHECK(said.out.find("the number of bytes that backward needs") != std::string::npos);
  CHECK(said.out.find("/training/global_batch)") != std::string::npos);
  CHECK(said.out.find("step time     not simulated") != std::string::npos);
  const Said checked = call("check", {"training.global_batch=16000000000", "training.remat=none"});
  CHECK(checked.status == cli::exit_impossible);
  CHECK((checked.out + checked.err).find("/training/global_batch [too-large]") != std::string::npos);
}

TEST_CASE("the scenario that these are made from is sound") {
  CHECK(call("check", {}).status == cli::exit_done);
  CHECK(call("check", {}).err == "");
}

TEST_CASE("a step beyond what one run can last is a verdict with its field, and a result without a step") {
  // A chip of 1 FLOP/s: 6 x 6.7e9 parameters x 65,536 tokens / 16 chips are 1.7e14 s, and a run lasts 106 days.
  const Said said = call("run", {"cluster.chip={\"preset\": \"tpu-v5e\", \"peak_bf16\": 1}"});
  CAPTURE(said.err);
  CHECK(said.status == cli::exit_impossible);
  CHECK(said.out.find("106 days") != std::string::npos);
  CHECK(said.out.find("/training/global_batch)") != std::string::npos);
  CHECK(said.out.find("step time     not simulated") != std::string::npos);
  CHECK(said.out.find("0 s") == std::string::npos);
}

TEST_CASE("a chip given whole works as the preset with the same facts, and without some of them these are named") {
  // Every fact of the ideal kind, in the units of the catalogue; one torus of 4 x 4.
  const std::string facts =
      R"("peak_bf16": 197e12, "matrix_efficiency": 0.8, "matrix_tile_m": 8, "matrix_tile_n": 128, "matrix_tile_k": 128,
      "vector_flops": 4e12, "hbm_capacity": "16 GiB", "hbm_reserved": 0, "hbm_bandwidth": "819 GB/s",
      "hbm_efficiency": 0.9, "kernel_floor": "1 us", "link_count": 4, "link_rate": "45 GB/s", "link_efficiency": 0.8,
      "link_latency": "1 us", "collective_overhead": "1 us", "chips_per_host": 4, "nic_efficiency": 0.8,
      "nic_latency": "10 us", "pcie_rate": "16 GB/s")";
  const Said whole = call("run", {"cluster.chip={" + facts + R"(, "host_nic_rate": "12.5 GB/s"})"});
  CAPTURE(whole.err);
  CHECK(whole.status == cli::exit_done);
  const Said preset =
      call("run", {R"(cluster.chip={"preset": "tpu-v5e", )" + facts + R"(, "host_nic_rate": "12.5 GB/s"})"});
  const auto step = [](const std::string& out) { return out.substr(out.find("step time"), 60); };
  CHECK(step(whole.out) == step(preset.out));  // both lines of the 4x4 are open, so the facts decide

  const Said less = call("run", {"cluster.chip={" + facts + "}"});
  CHECK(less.status == cli::exit_usage);
  CHECK(less.err.find("/cluster/chip [missing-key]") != std::string::npos);
  CHECK(less.err.find("missing: host_nic_rate or chip_nic_rate;") != std::string::npos);
}

TEST_CASE("a scenario without a name is called after its file, or scenario on standard input") {
  const Said said = call("run", {});
  CHECK(said.out.substr(0, said.out.find('\n')).find("scenario") != std::string::npos);
}
