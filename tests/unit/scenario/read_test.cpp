#include "sim/scenario/read.hpp"

#include <doctest/doctest.h>

#include "scenario_support.hpp"
#include "sim/scenario/write.hpp"

using namespace tpusim;
using namespace tpusim::scenario;

namespace {

// Every key of the contract that this version has, none at its default.
const char* whole_text() {
  return R"(// a comment
{
  "version": 1,
  "name": "all keys",  // another
  "model": {"family": "transformer", "layers": 80, "embed": 8192, "heads": 64, "kv_heads": 8, "head_dim": 128,
            "mlp": 28672, "gated_mlp": true, "vocab": 32000, "tied_embeddings": false, "positions": "learned",
            "max_positions": 4096, "rope_theta": 5e5, "norm": "layer", "norm_eps": 1e-6, "activation": "gelu",
            "parallel_block": true, "bias": true, "example_bytes": "16 KiB"},
  "cluster": {"chip": {"preset": "a100-80gb", "peak_bf16": "250 TFLOP/s", "link_count": 12}, "hosts": 64,
              "chips_per_host": 8},
  "mesh": {"pipeline": 8, "data": 2, "fsdp": 4, "tensor": 8},
  "training": {"global_batch": 512, "sequence_length": 4096, "microbatch": 2, "compute_dtype": "f32",
               "parameter_dtype": "bf16", "gradient_dtype": "bf16",
               "optimizer": {"name": "adam", "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6},
               "learning_rate": 1e-4, "clip_norm": null, "remat": "selective", "attention": "unfused",
               "flops_convention": "causal"},
  "strategies": {"fsdp": {"zero_stage": 2, "prefetch": 0}, "tensor": {"sequence_parallel": true},
                 "pipeline": {"schedule": "gpipe", "virtual_stages": 1},
                 "data": {"overlap": false, "bucket_bytes": "5 MiB", "compression": "none"}},
  "sharding": {"parameters": {"mlp": ["tensor", "fsdp"]}, "gradients": {"embed": []}, "optimizer": {},
               "activations": {"residual.seq": ["tensor"]}},
  "input": {"storage": {"bandwidth": "2 GB/s", "latency": "1 ms", "shared_by": "host"},
            "stages": [{"name": "decode", "threads": 8, "time_per_example": "5 ms"}], "prefetch": 4,
            "host_to_chip": "15 GB/s"},
  "checkpoint": {}, "failures": {}, "price": {}, "sweep": {}
})";
}

Scenario whole_expected() {
  Scenario s;
  s.name = "all keys";
  ModelSpec& m = s.model;
  m.family = Family::transformer;
  m.layers = 80, m.embed = 8192, m.heads = 64, m.kv_heads = 8, m.head_dim = 128, m.mlp = 28672, m.vocab = 32000;
  m.gated_mlp = true, m.tied_embeddings = false, m.parallel_block = true, m.bias = true;
  m.positions = Positions::learned, m.norm = Norm::layer, m.activation = Activation::gelu;
  m.max_positions = 4096, m.rope_theta = 5e5, m.norm_eps = 1e-6;
  m.example_bytes = Bytes(16384);
  s.cluster.chip = {"a100-80gb", {{"peak_bf16", std::string("250 TFLOP/s")}, {"link_count", 12.0}}};
  s.cluster.hosts = 64, s.cluster.chips_per_host = 8;
  s.mesh = {{"pipeline", 8}, {"data", 2}, {"fsdp", 4}, {"tensor", 8}};
  TrainingSpec& t = s.training;
  t.global_batch = 512, t.sequence_length = 4096, t.microbatch = 2;
  t.compute_dtype = DType::f32, t.parameter_dtype = DType::bf16, t.gradient_dtype = DType::bf16;
  t.optimizer.name = Optimizer::adam, t.optimizer.beta1 = 0.8, t.optimizer.beta2 = 0.99, t.optimizer.epsilon = 1e-6;
  t.learning_rate = 1e-4, t.clip_norm = 0;
  t.remat = Remat::selective, t.attention = Attention::unfused, t.flops_convention = FlopsConvention::causal;
  s.strategies.fsdp = {2, 0};
  s.strategies.tensor = {true};
  s.strategies.pipeline = {Schedule::gpipe, 1};
  s.strategies.data = {false, 5 * 1024 * 1024, Compression::none};
  s.sharding.parameters = {{"mlp", {"tensor", "fsdp"}}};
  s.sharding.gradients = {{"embed", {}}};
  s.sharding.activations = {{"residual.seq", {"tensor"}}};
  s.input = InputSpec{
      {BytesPerSecond(2e9), Seconds(1e-3), SharedBy::host}, {{"decode", 8, Seconds(5e-3)}}, 4, BytesPerSecond(15e9)};
  return s;
}

}  // namespace

TEST_CASE("every key of the contract reaches its field, units and comments included") {
  DiagnosticSink sink;
  const Scenario s = read(whole_text(), "whole.json", sink);
  CHECK(faults(whole_text()) == "");
  CHECK(s == whole_expected());
  CHECK(s.source.file == "whole.json");
  // Only what the optimizer could have had beside its numbers is a default, and adam has no more.
  CHECK(s.defaults.empty());
}

TEST_CASE("what a scenario leaves out has its documented default, and the list of defaults says so") {
  DiagnosticSink sink;
  const Scenario s = read(R"({"model": "llama2-7b", "cluster": {"chip": "tpu-v5e", "topology": "4x4"},
                             "training": {"global_batch": 16}})",
                          "s.json", sink);
  REQUIRE_FALSE(sink.has_errors());
  Scenario expected;
  expected.model.preset = "llama2-7b";
  expected.cluster.chip.preset = "tpu-v5e";
  expected.cluster.topology = {4, 4};
  expected.mesh = {{"data", 16}};
  expected.training.global_batch = 16;
  CHECK(s == expected);
  const std::vector<Default> defaults = {{"version", "1", ""},
                                         {"cluster.slices", "1", ""},
                                         {"mesh.data", "16", ""},
                                         {"training.compute_dtype", "bf16", ""},
                                         {"training.parameter_dtype", "f32", ""},
                                         {"training.gradient_dtype", "f32", ""},
                                         {"training.optimizer", "adamw", ""},
                                         {"training.optimizer.beta1", "0.9", ""},
                                         {"training.optimizer.beta2", "0.95", ""},
                                         {"training.optimizer.epsilon", "1e-08", ""},
                                         {"training.optimizer.weight_decay", "0.1", ""},
                                         {"training.learning_rate", "0.0003", ""},
                                         {"training.clip_norm", "1", ""},
                                         {"training.remat", "none", ""},
                                         {"training.attention", "flash", ""},
                                         {"training.flops_convention", "full", ""},
                                         {"strategies.data.overlap", "true", ""},
                                         {"strategies.data.bucket_bytes", "26214400", "bytes"},
                                         {"strategies.data.compression", "none", ""}};
  CHECK(s.defaults == defaults);
}

TEST_CASE("chips are slices times shape, or hosts times chips, or unknown while the catalogue has the number") {
  ClusterSpec c;
  c.topology = {4, 4, 8};
  c.slices = 2;
  CHECK(c.chips() == 256);
  ClusterSpec h;
  h.hosts = 3;
  CHECK_FALSE(h.chips().has_value());
  h.chips_per_host = 8;
  CHECK(h.chips() == 24);
}

TEST_CASE("a mesh is left open where the catalogue knows the chips of a host") {
  DiagnosticSink sink;
  const Scenario s = read(R"({"model": "gpt2", "cluster": {"preset": "dgx-h100", "hosts": 2},
                             "training": {"global_batch": 16}})",
                          "s.json", sink);
  CHECK_FALSE(sink.has_errors());
  CHECK(s.mesh.empty());
  CHECK(s.cluster.preset == "dgx-h100");
}

TEST_CASE("adafactor has an epsilon of its own") {
  DiagnosticSink sink;
  const Scenario s = read(small_text(), "s.json", sink, {"training.optimizer=adafactor"});
  REQUIRE_FALSE(sink.has_errors());
  // Shazeer and Stern 2018, section 4: eps_1 = 1e-30.
  CHECK(s.training.optimizer.epsilon == 1e-30);
}

TEST_CASE("integers may be written as a decimal number without a fraction") {
  DiagnosticSink sink;
  const Scenario s = read(small_text(), "s.json", sink, {"training.global_batch=6.4e1"});
  REQUIRE_FALSE(sink.has_errors());
  CHECK(s.training.global_batch == 64);
}

TEST_CASE("a rule's key splits into place and axis") {
  const ShardingRule plain{"mlp", {}}, placed{"residual.seq", {}};
  CHECK(plain.place() == "");
  CHECK(plain.axis() == "mlp");
  CHECK(placed.place() == "residual");
  CHECK(placed.axis() == "seq");
}

TEST_CASE("all faults of a file come in one reading, in the order of the text, and at most twenty") {
  const std::string text = R"({
  "model": {"preset": "gpt2", "layrs": 4},
  "cluster": {"chip": "tpu-v5e", "topologi": "4x4", "topology": "4x4"},
  "mesh": {"tensr": 4},
  "training": {"global_batch": "12", "remat": "ful"}
})";
  DiagnosticSink sink;
  read(text, "s.json", sink);
  std::vector<std::pair<std::string, int>> places;
  for (const Diagnostic& d : sink.all()) places.emplace_back(d.pointer, d.line);
  const std::vector<std::pair<std::string, int>> expected = {{"/model/layrs", 2},
                                                             {"/cluster/topologi", 3},
                                                             {"/mesh/tensr", 4},
                                                             {"/training/global_batch", 5},
                                                             {"/training/remat", 5}};
  CHECK(places == expected);

  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\": 1,\n";
  many += "\"version\": 1}";
  DiagnosticSink full;
  read(many, "s.json", full);
  CHECK(full.all().size() == 20);
}

TEST_CASE("a scenario that is written reads back as itself") {
  for (const std::string& text : {std::string(whole_text()), std::string(small_text()),
                                  std::string(R"({"model": {"family": "fixed", "step_compute": "323 ms",
                                     "example_bytes": 146600628},
                                     "cluster": {"chip": "v100", "hosts": 2, "chips_per_host": 1},
                                     "training": {"global_batch": 14},
                                     "input": {"storage": {"bandwidth": "2 GB/s"}}})"),
                                  std::string(R"({"model": {"family": "mlp", "layers": 2, "embed": 8, "mlp": 32},
                                     "cluster": {"chip": {"peak_bf16": 1e12, "wrap": true}, "topology": "2x2"},
                                     "training": {"global_batch": 8, "optimizer": "sgd"}})")}) {
    DiagnosticSink sink;
    const Scenario first = read(text, "s.json", sink);
    REQUIRE(faults(text) == "");
    const std::string written = to_json(first);
    const Scenario second = read(written, "s.json", sink);
    CHECK(faults(written) == "");
    CHECK(second == first);
    CHECK(to_json(second) == written);
    // Nothing is left to a default of this room once it has been written.
    CHECK(second.defaults.empty());
  }
}

TEST_CASE("the written scenario has every default in it") {
  DiagnosticSink sink;
  const Scenario s = read(R"({"model": "gpt2", "cluster": {"chip": "tpu-v5e", "topology": "1x1"},
                             "training": {"global_batch": 8}})",
                          "s.json", sink);
  CHECK(to_json(s) == R"({
  "version": 1,
  "model": "gpt2",
  "cluster": {
    "chip": "tpu-v5e",
    "topology": "1x1",
    "slices": 1
  },
  "mesh": {
    "data": 1
  },
  "training": {
    "global_batch": 8,
    "compute_dtype": "bf16",
    "parameter_dtype": "f32",
    "gradient_dtype": "f32",
    "optimizer": {
      "name": "adamw",
      "beta1": 0.9,
      "beta2": 0.95,
      "epsilon": 1e-08,
      "weight_decay": 0.1
    },
    "learning_rate": 0.0003,
    "clip_norm": 1,
    "remat": "none",
    "attention": "flash",
    "flops_convention": "full"
  },
  "strategies": {
    "data": {
      "overlap": true,
      "bucket_bytes": 26214400,
      "compression": "none"
    }
  },
  "sharding": {
    "parameters": {},
    "gradients": {},
    "optimizer": {},
    "activations": {}
  }
}
)");
}

TEST_CASE("every enumerator has a name") {
  CHECK(to_string(Family::fixed) == "fixed");
  CHECK(to_string(Positions::none) == "none");
  CHECK(to_string(Norm::layer) == "layer");
  CHECK(to_string(Activation::relu) == "relu");
  CHECK(to_string(DType::f64) == "f64");
  CHECK(to_string(Optimizer::adafactor) == "adafactor");
  CHECK(to_string(Remat::full) == "full");
  CHECK(to_string(Attention::unfused) == "unfused");
  CHECK(to_string(FlopsConvention::causal) == "causal");
  CHECK(to_string(Schedule::one_f_one_b) == "1f1b");
  CHECK(to_string(Compression::none) == "none");
  CHECK(to_string(SharedBy::host) == "host");
}

TEST_CASE("a file that cannot be read is a diagnostic") {
  DiagnosticSink sink;
  load("/nonexistent/s.json", sink);
  REQUIRE(sink.all().size() == 1);
  CHECK(format(sink.all()[0]).find("No such file") != std::string::npos);
  DiagnosticSink directory;
  load("/tmp", directory);
  REQUIRE(directory.all().size() == 1);
  CHECK(directory.all()[0].code == Code::io);
}
