// The same scenario and seed give the same bytes: again, on any number of threads, and beside another session.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "reports/html.hpp"
#include "reports/json.hpp"
#include "sim/scenario/read.hpp"
#include "sim/session/session.hpp"
#include "sim/session/verification.hpp"
#include "topologies/catalogue.hpp"

using namespace tpusim;

namespace {

// Small models on small machines: this runs under the thread sanitizer too.
constexpr const char* kTpu = R"({
  "name": "two rings", "model": {"preset": "gpt2", "layers": 2, "vocab": 1000},
  "cluster": {"chip": "tpu-v5p", "topology": "2x2x2"}, "mesh": {"data": 2, "fsdp": 2, "tensor": 2},
  "training": {"global_batch": 8, "sequence_length": 64, "microbatch": 1, "clip_norm": 1.0},
  "strategies": {"fsdp": {"zero_stage": 3}, "tensor": {"sequence_parallel": true}}
})";
constexpr const char* kGpu = R"({
  "name": "two hosts", "model": {"preset": "llama2-7b", "layers": 4, "vocab": 2000},
  "cluster": {"chip": "a100-80gb", "hosts": 2, "chips_per_host": 4}, "mesh": {"pipeline": 2, "data": 4},
  "training": {"global_batch": 32, "sequence_length": 128, "microbatch": 1, "remat": "full"},
  "strategies": {"pipeline": {"schedule": "1f1b"}}
})";

struct Documents {
  std::string json, html;
  bool operator==(const Documents&) const = default;
};

Documents documents(const char* text, std::uint64_t seed = 1, int threads = 1) {
  DiagnosticSink sink;
  const scenario::Scenario scenario = scenario::read(text, "s.json", sink);
  REQUIRE_FALSE(sink.has_errors());
  session::Options options;
  options.timeline = true;
  options.seed = seed;
  options.threads = threads;
  const result::Result result = session::simulate(scenario, options);
  REQUIRE(result.verification.has_value());
  CHECK(result.verification->passed);
  return {reports::json(result, true), reports::html(result)};
}

session::JobSpec small_job() {
  session::JobSpec spec;
  spec.mesh = {{"data", 2}, {"fsdp", 2}, {"tensor", 2}};
  models::ModelConfig& model = spec.model;
  model.layers = 2, model.embed = 8, model.mlp = 10, model.vocab = 13, model.head_dim = 4, model.heads = 4,
  model.kv_heads = 2;
  spec.sequence_length = 8;
  spec.microbatch = 1;
  spec.global_batch = 8;
  spec.flash_block = 4;
  spec.bucket_bytes = 1024;
  spec.compute_dtype = spec.parameter_dtype = spec.gradient_dtype = spec.master_dtype = ir::DType::f64;
  spec.optimizer.eps = 1e-3;
  return spec;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE(
    "a scenario run twice gives byte-identical JSON and HTML, and another seed another verification of the same step") {
  for (const char* text : {kTpu, kGpu}) {
    const Documents first = documents(text), second = documents(text);
    CHECK(first.json.size() > 5000);
    CHECK(first.html.size() > 50000);
    CHECK((first == second));
  }
  CHECK(documents(kTpu, 1).json != documents(kTpu, 2).json);
}

TEST_CASE("the documents are the same bytes on one, two, five and sixteen threads") {
  for (const char* text : {kTpu, kGpu}) {
    const Documents alone = documents(text);
    for (int threads : {2, 5, 16}) CHECK((documents(text, 1, threads) == alone));
  }
}

TEST_CASE("two sessions in two threads give what each gives alone") {
  const Documents tpu_alone = documents(kTpu), gpu_alone = documents(kGpu);
  Documents tpu, gpu;
  std::thread a([&] { tpu = documents(kTpu); }), b([&] { gpu = documents(kGpu); });
  a.join();
  b.join();
  CHECK((tpu == tpu_alone));
  CHECK((gpu == gpu_alone));
}

TEST_CASE("verification finds the same numbers, bit for bit, on one, two, three and eight threads") {
  const session::JobSpec spec = small_job();
  fabric::Fabric fabric;
  for (const char* name : {"x", "y", "z"})
    fabric.axes.push_back({name, 2, fabric::Level::chip, fabric::Link::ring, Seconds(1e-6), BytesPerSecond(1e9)});
  const topologies::Chip chip = *topologies::find_chip("tpu-v4");
  session::Proof proof;
  const result::Verification alone = session::verify_spec(spec, fabric, chip, 7, proof);
  CHECK(alone.culprit == "");
  CHECK(alone.loss_sharded.size() == 3);
  for (int threads : {2, 3, 8}) {
    proof.threads = threads;
    CHECK((session::verify_spec(spec, fabric, chip, 7, proof) == alone));
  }
}

// The command itself, as a process of its own each time.
TEST_CASE("the command run twice writes the same bytes to standard output, to the report and to the trace") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("tpusim-determinism-" + std::to_string(std::hash<std::string>{}(TPUSIM_BINARY)));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "s.json") << kTpu;
  std::vector<std::string> written[3];
  for (const char* run : {"1", "2"}) {
    const std::string at = (folder / run).string();
    const std::string command = std::string(TPUSIM_BINARY) + " run " + (folder / "s.json").string() +
                                " --json --html " + at + ".html --trace " + at + ".trace > " + at + ".json";
    REQUIRE(std::system(command.c_str()) == 0);
    written[0].push_back(slurp(at + ".json"));
    written[1].push_back(slurp(at + ".html"));
    written[2].push_back(slurp(at + ".trace"));
  }
  std::filesystem::remove_all(folder);
  for (const std::vector<std::string>& both : written) {
    CHECK(both[0].size() > 1000);
    CHECK((both[0] == both[1]));
  }
}
