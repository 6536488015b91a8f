// Faults within the sections of a scenario.
#include "tests/diagnostics/reader_support.hpp"

using namespace tpusim;
using namespace tpusim::diagnostics;

namespace {

std::vector<Row> model_rows() {
  return {
      {"model as a number", model("7"), "/model", Code::wrong_type, ""},
      {"model without a name", model("\"\""), "/model", Code::bad_value, ""},
      {"model from nowhere", model(R"({"layers": 4})"), "/model", Code::missing_key, ""},
      {"model from two places", model(R"({"preset": "gpt2", "huggingface": "config.json"})"), "/model/huggingface",
       Code::conflict, ""},
      {"family misspelt", model(R"({"family": "transfomer"})"), "/model/family", Code::unknown_name, "transformer"},
      {"transformer without vocab",
       model(R"({"family": "transformer", "layers": 4, "embed": 64, "heads": 8, "mlp": 256})"), "/model",
       Code::missing_key, "vocab"},
      {"a billion layers", model(R"({"preset": "gpt2", "layers": 1000000000})"), "/model/layers", Code::too_large, ""},
      {"no layers", model(R"({"preset": "gpt2", "layers": 0})"), "/model/layers", Code::bad_value, "1"},
      {"negative layers", model(R"({"preset": "gpt2", "layers": -3})"), "/model/layers", Code::bad_value, "1"},
      {"half a layer", model(R"({"preset": "gpt2", "layers": 2.5})"), "/model/layers", Code::wrong_type, "3"},
      {"layers in quotes", model(R"({"preset": "gpt2", "layers": "12"})"), "/model/layers", Code::wrong_type, "12"},
      {"width of 1e300", transformer(R"("head_dim": 1e300)"), "/model/head_dim", Code::too_large, ""},
      {"query heads that key heads do not divide", transformer(R"("kv_heads": 3)"), "/model/kv_heads",
       Code::not_divisible, ""},
      {"heads that do not divide the width",
       model(R"({"family": "transformer", "layers": 4, "embed": 64, "heads": 7, "mlp": 256, "vocab": 1000})"),
       "/model/heads", Code::not_divisible, ""},
      {"rotary pairs of an odd head", transformer(R"("positions": "rotary", "head_dim": 7)"), "/model/head_dim",
       Code::not_divisible, ""},
      {"bias as a number", transformer(R"("bias": 1)"), "/model/bias", Code::wrong_type, ""},
      {"positions misspelt", transformer(R"("positions": "rotery")"), "/model/positions", Code::unknown_name, "rotary"},
      {"norm_eps of 0", transformer(R"("norm_eps": 0)"), "/model/norm_eps", Code::bad_value, ""},
      {"vocab of an MLP", model(R"({"family": "mlp", "layers": 2, "embed": 8, "mlp": 32, "vocab": 10})"),
       "/model/vocab", Code::conflict, ""},
      {"step length of a preset", model(R"({"preset": "gpt2", "step_compute": "1 s"})"), "/model/step_compute",
       Code::conflict, ""},
      {"a step that takes no time", fixed("0"), "/model/step_compute", Code::bad_value, ""},
      {"a step of a year", fixed(R"("8766 h")"), "/model/step_compute", Code::too_large, ""},
      {"a step in bytes", fixed(R"("323 MB")"), "/model/step_compute", Code::bad_unit, "323 ms"},
      {"a fixed step that is sharded",
       R"({"model": {"family": "fixed", "step_compute": 1}, "cluster": {"chip": "v100", "hosts": 2, "chips_per_host": 1},
           "mesh": {"tensor": 2}, "training": {"global_batch": 4}})",
       "/mesh/tensor", Code::conflict, "data"},
      {"a fixed step with an optimizer",
       R"({"model": {"family": "fixed", "step_compute": 1}, "cluster": {"chip": "v100", "hosts": 2, "chips_per_host": 1},
           "training": {"global_batch": 4, "optimizer": "adam"}})",
       "/training/optimizer", Code::conflict, ""},
  };
}

std::vector<Row> cluster_rows() {
  const auto shape = [](const char* s) {
    return cluster(R"({"chip": "tpu-v5e", "topology": )" + std::string(s) + "}");
  };
  return {
      {"cluster as a name", cluster(R"("tpu-v5e")"), "/cluster", Code::wrong_type, ""},
      {"chip as a number", cluster(R"({"chip": 5, "topology": "4x4"})"), "/cluster/chip", Code::wrong_type, ""},
      {"chip of nothing", cluster(R"({"chip": {}, "topology": "4x4"})"), "/cluster/chip", Code::missing_key, "preset"},
      {"a list as a chip's number", cluster(R"({"chip": {"preset": "tpu-v5e", "peak_bf16": [1]}, "topology": "4x4"})"),
       "/cluster/chip/peak_bf16", Code::wrong_type, ""},
      {"shape as a list", shape("[4, 4]"), "/cluster/topology", Code::wrong_type, "4x4"},
      {"shape with a capital", shape(R"("4X4")"), "/cluster/topology", Code::bad_value, "4x4"},
      {"shape cut off", shape(R"("4x4x")"), "/cluster/topology", Code::bad_value, ""},
      {"shape with a zero", shape(R"("4x0")"), "/cluster/topology", Code::bad_value, ""},
      {"shape with a sign", shape(R"("4x-4")"), "/cluster/topology", Code::bad_value, ""},
      {"10^12 chips", shape(R"("10000x10000x10000")"), "/cluster/topology", Code::too_large, ""},
      {"a shape that overflows", shape(R"("999999999999999999x999999999999999999")"), "/cluster/topology",
       Code::too_large, ""},
      {"seven axes", shape(R"("2x2x2x2x2x2x2")"), "/cluster/topology", Code::too_large, ""},
      {"no slices", cluster(R"({"chip": "tpu-v5e", "topology": "4x4", "slices": 0})"), "/cluster/slices",
       Code::bad_value, "1"},
      {"10^12 slices", cluster(R"({"chip": "tpu-v5e", "topology": "4x4", "slices": 1000000000000})"), "/cluster/slices",
       Code::too_large, ""},
      {"slices that are too many together", cluster(R"({"chip": "tpu-v5e", "topology": "16x16", "slices": 100000})"),
       "/cluster/slices", Code::too_large, ""},
      {"hosts beside a shape", cluster(R"({"chip": "tpu-v5e", "topology": "4x4", "hosts": 4})"), "/cluster/hosts",
       Code::conflict, ""},
      {"slices of hosts", cluster(R"({"chip": "h100", "hosts": 2, "chips_per_host": 8, "slices": 2})"),
       "/cluster/slices", Code::conflict, ""},
      {"hosts that are too many together", cluster(R"({"chip": "h100", "hosts": 1000000, "chips_per_host": 8})"),
       "/cluster/hosts", Code::too_large, ""},
      {"negative hosts", cluster(R"({"chip": "h100", "hosts": -2, "chips_per_host": 8})"), "/cluster/hosts",
       Code::bad_value, "1"},
  };
}

std::vector<Row> mesh_rows() {
  return {
      {"mesh as a list", mesh("[8, 2]"), "/mesh", Code::wrong_type, ""},
      {"mesh without axes", mesh("{}"), "/mesh", Code::bad_value, ""},
      {"axis misspelt", mesh(R"({"fsdp": 8, "tensr": 2})"), "/mesh/tensr", Code::unknown_key, "tensor"},
      {"another tool's axis", mesh(R"({"dp": 8, "tensor": 2})"), "/mesh/dp", Code::unknown_key, "data"},
      {"context", mesh(R"({"fsdp": 8, "context": 2})"), "/mesh/context", Code::not_in_version, ""},
      {"expert", mesh(R"({"fsdp": 8, "expert": 2})"), "/mesh/expert", Code::not_in_version, ""},
      {"axis of 0", mesh(R"({"fsdp": 8, "tensor": 0})"), "/mesh/tensor", Code::bad_value, "1"},
      {"axis of 10^12", mesh(R"({"fsdp": 1000000000000})"), "/mesh/fsdp", Code::too_large, ""},
      {"axis as text", mesh(R"({"fsdp": "8", "tensor": 2})"), "/mesh/fsdp", Code::wrong_type, "8"},
      {"mesh with too few devices", mesh(R"({"fsdp": 4, "tensor": 2})"), "/mesh", Code::mesh_mismatch, "fsdp 8"},
      {"mesh with too many devices", mesh(R"({"fsdp": 8, "tensor": 4})"), "/mesh", Code::mesh_mismatch, "fsdp 4"},
      {"mesh that no one axis can mend", mesh(R"({"fsdp": 3, "tensor": 5})"), "/mesh", Code::mesh_mismatch, ""},
      {"mesh beyond every cluster", mesh(R"({"data": 1000000, "fsdp": 1000000, "tensor": 1000000})"), "/mesh",
       Code::too_large, ""},
      {"strategy without its axis", extra(R"("strategies": {"pipeline": {"schedule": "1f1b"}})"),
       "/strategies/pipeline", Code::conflict, ""},
      {"strategy misspelt", extra(R"("strategies": {"fsdpp": {}})"), "/strategies/fsdpp", Code::unknown_key, "fsdp"},
      {"strategy as a number", extra(R"("strategies": {"fsdp": 3})"), "/strategies/fsdp", Code::wrong_type, ""},
      {"ZeRO stage 4", extra(R"("strategies": {"fsdp": {"zero_stage": 4}})"), "/strategies/fsdp/zero_stage",
       Code::too_large, ""},
      {"ZeRO stage 0", extra(R"("strategies": {"fsdp": {"zero_stage": 0}})"), "/strategies/fsdp/zero_stage",
       Code::bad_value, "1"},
      {"prefetch of five blocks", extra(R"("strategies": {"fsdp": {"prefetch": 5}})"), "/strategies/fsdp/prefetch",
       Code::not_in_version, "1"},
      {"sequence_parallel as a number", extra(R"("strategies": {"tensor": {"sequence_parallel": 1}})"),
       "/strategies/tensor/sequence_parallel", Code::wrong_type, ""},
  };
}

std::string pipelined(std::string strategy, std::string model_text = R"("gpt2")") {
  Parts p;
  p.mesh = R"({"data": 2, "pipeline": 8})";
  p.model = std::move(model_text);
  p.extra = "\"strategies\": " + std::move(strategy) + ",\n";
  return p.text();
}

std::vector<Row> training_rows() {
  return {
      {"batch of 0", training(R"({"global_batch": 0})"), "/training/global_batch", Code::bad_value, "1"},
      {"batch of 1e300", training(R"({"global_batch": 1e300})"), "/training/global_batch", Code::too_large, ""},
      {"batch that replicas do not divide", training(R"({"global_batch": 30})"), "/training/global_batch",
       Code::not_divisible, "32"},
      {"batch smaller than the replicas", training(R"({"global_batch": 3})"), "/training/global_batch",
       Code::not_divisible, "8"},
      {"microbatch that does not divide the share", training(R"({"global_batch": 32, "microbatch": 3})"),
       "/training/microbatch", Code::not_divisible, "2"},
      {"more tokens than a double counts", training(R"({"global_batch": 1000000000000, "sequence_length": 100000000})"),
       "/training/global_batch", Code::too_large, ""},
      {"dtype of another tool", training(R"({"global_batch": 32, "compute_dtype": "bfloat16"})"),
       "/training/compute_dtype", Code::unknown_name, "bf16"},
      {"fp8", training(R"({"global_batch": 32, "compute_dtype": "fp8"})"), "/training/compute_dtype",
       Code::not_in_version, ""},
      {"optimizer misspelt", training(R"({"global_batch": 32, "optimizer": "adamv"})"), "/training/optimizer",
       Code::unknown_name, "adam"},
      {"optimizer in capitals", training(R"({"global_batch": 32, "optimizer": {"name": "AdamW"}})"),
       "/training/optimizer/name", Code::unknown_name, "adamw"},
      {"momentum of adam", training(R"({"global_batch": 32, "optimizer": {"name": "adam", "momentum": 0.9}})"),
       "/training/optimizer/momentum", Code::conflict, ""},
      {"beta of 1", training(R"({"global_batch": 32, "optimizer": {"name": "adam", "beta1": 1}})"),
       "/training/optimizer/beta1", Code::too_large, ""},
      {"learning rate of 0", training(R"({"global_batch": 32, "learning_rate": 0})"), "/training/learning_rate",
       Code::bad_value, ""},
      {"learning rate as text", training(R"({"global_batch": 32, "learning_rate": "3e-4"})"), "/training/learning_rate",
       Code::wrong_type, ""},
      {"negative clip", training(R"({"global_batch": 32, "clip_norm": -1})"), "/training/clip_norm", Code::bad_value,
       ""},
      {"remat misspelt", training(R"({"global_batch": 32, "remat": "selektive"})"), "/training/remat",
       Code::unknown_name, "selective"},
      {"attention misspelt", training(R"({"global_batch": 32, "attention": "flsh"})"), "/training/attention",
       Code::unknown_name, "flash"},
      {"bucket in seconds", R"({"model": "gpt2", "cluster": {"chip": "tpu-v5e", "topology": "1x1"},
         "training": {"global_batch": 1}, "strategies": {"data": {"bucket_bytes": "25 ms"}}})",
       "/strategies/data/bucket_bytes", Code::bad_unit, "25 MB"},
      {"compression", R"({"model": "gpt2", "cluster": {"chip": "tpu-v5e", "topology": "1x1"},
         "training": {"global_batch": 1}, "strategies": {"data": {"compression": "int8"}}})",
       "/strategies/data/compression", Code::not_in_version, ""},
      {"virtual stages", pipelined(R"({"pipeline": {"virtual_stages": 2}})"), "/strategies/pipeline/virtual_stages",
       Code::not_in_version, "1"},
      {"schedule misspelt", pipelined(R"({"pipeline": {"schedule": "1f1"}})"), "/strategies/pipeline/schedule",
       Code::unknown_name, "1f1b"},
      {"schedule of a later version", pipelined(R"({"pipeline": {"schedule": "interleaved"}})"),
       "/strategies/pipeline/schedule", Code::not_in_version, ""},
      {"more stages than layers", pipelined("{}", R"({"preset": "gpt2", "layers": 4})"), "/mesh/pipeline",
       Code::conflict, "4"},
  };
}

std::vector<Row> sharding_and_input_rows() {
  const auto rules = [](const char* tables) { return extra("\"sharding\": " + std::string(tables)); };
  const auto input = [](const char* v) { return extra("\"input\": " + std::string(v)); };
  return {
      {"logical axis misspelt", rules(R"({"parameters": {"vocabs": ["tensor"]}})"), "/sharding/parameters/vocabs",
       Code::unknown_key, "vocab"},
      {"logical axis of a later version", rules(R"({"parameters": {"expert": ["tensor"]}})"),
       "/sharding/parameters/expert", Code::not_in_version, ""},
      {"place misspelt", rules(R"({"activations": {"residul.seq": ["tensor"]}})"), "/sharding/activations/residul.seq",
       Code::unknown_key, "residual.seq"},
      {"batch of a parameter", rules(R"({"parameters": {"batch": ["fsdp"]}})"), "/sharding/parameters/batch",
       Code::conflict, "/sharding/activations/batch"},
      {"mesh axis that is not there", rules(R"({"parameters": {"mlp": ["data"]}})"), "/sharding/parameters/mlp/0",
       Code::unknown_name, ""},
      {"mesh axis without its list", rules(R"({"parameters": {"mlp": "tensor"}})"), "/sharding/parameters/mlp",
       Code::wrong_type, "[\"tensor\"]"},
      {"mesh axis twice", rules(R"({"parameters": {"mlp": ["tensor", "tensor"]}})"), "/sharding/parameters/mlp/1",
       Code::conflict, ""},
      {"table misspelt", rules(R"({"parameter": {}})"), "/sharding/parameter", Code::unknown_key, "parameters"},
      {"storage without bandwidth", input(R"({"storage": {"bandwidth": 0}})"), "/input/storage/bandwidth",
       Code::bad_value, ""},
      {"storage in bytes", input(R"({"storage": {"bandwidth": "2 GB"}})"), "/input/storage/bandwidth", Code::bad_unit,
       "2 GB/s"},
      {"negative latency", input(R"({"storage": {"latency": -1}})"), "/input/storage/latency", Code::bad_value, ""},
      {"shared by no one", input(R"({"storage": {"shared_by": "hosts"}})"), "/input/storage/shared_by",
       Code::unknown_name, "host"},
      {"stage without a time", input(R"({"stages": [{"name": "decode"}]})"), "/input/stages/0", Code::missing_key,
       "time_per_example"},
      {"stage without threads", input(R"({"stages": [{"name": "d", "time_per_example": 1, "threads": 0}]})"),
       "/input/stages/0/threads", Code::bad_value, "1"},
      {"two stages of one name",
       input(R"({"stages": [{"name": "d", "time_per_example": 1}, {"name": "d", "time_per_example": 2}]})"),
       "/input/stages/1/name", Code::conflict, ""},
      {"stages as an object", input(R"({"stages": {}})"), "/input/stages", Code::wrong_type, ""},
      {"prefetch of nothing", input(R"({"prefetch": 0})"), "/input/prefetch", Code::bad_value, "1"},
      {"a copy at no rate", input(R"({"host_to_chip": "0 GB/s"})"), "/input/host_to_chip", Code::bad_value, ""},
  };
}

}  // namespace

TEST_CASE("a model that cannot be is refused at the field to blame") {
  run(model_rows());
}

TEST_CASE("a cluster that cannot be is refused at the field to blame") {
  run(cluster_rows());
}

TEST_CASE("a mesh or strategy that cannot be is refused at the field to blame") {
  run(mesh_rows());
}

TEST_CASE("training settings that cannot be are refused at the field to blame") {
  run(training_rows());
}

TEST_CASE("sharding rules and input that cannot be are refused at the field to blame") {
  run(sharding_and_input_rows());
}
