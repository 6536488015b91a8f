#include "models/huggingface.hpp"

#include <doctest/doctest.h>

#include "models/presets.hpp"

using namespace tpusim;

namespace {

std::vector<Diagnostic> faults_of(const std::string& json) {
  DiagnosticSink sink;
  const auto config = models::import_huggingface(json, "config.json", sink);
  CHECK(config.has_value() == !sink.has_errors());
  return sink.all();
}

}  // namespace

TEST_CASE("the config.json of Llama 3.1 8B gives the preset") {
  // The fields of meta-llama/Llama-3.1-8B config.json that Transformers writes.
  DiagnosticSink sink;
  auto config = models::import_huggingface(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
    "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})",
                                           "config.json", sink);
  REQUIRE(config.has_value());
  config->name = "llama3.1-8b";
  CHECK(*config == models::find_preset("llama3.1-8b")->config);
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].severity == Severity::warning);
  CHECK(sink.all()[0].pointer == "/rope_scaling");
}

TEST_CASE("the config.json of GPT-2 gives the preset, its defaults filled in") {
  DiagnosticSink sink;
  const auto config = models::import_huggingface(
      R"({"model_type": "gpt2", "activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
          "n_layer": 12, "n_positions": 1024, "vocab_size": 50257, "layer_norm_epsilon": 1e-05, "n_inner": null})",
      "config.json", sink);
  REQUIRE(config.has_value());
  CHECK(*config == models::find_preset("gpt2")->config);
  CHECK(sink.all().empty());
}

TEST_CASE("an architecture that is not known is refused by its name") {
  const auto faults = faults_of(R"({"model_type": "mixtral", "hidden_size": 4096})");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == Code::not_in_version);
  CHECK(faults[0].pointer == "/model_type");
  CHECK(faults[0].message == "the architecture \"mixtral\" is not in this version");
  CHECK(faults[0].choices == std::vector<std::string>{"llama", "gpt2"});
  CHECK(faults[0].file == "config.json");
  CHECK(faults_of(R"({"hidden_size": 4096})").at(0).code == Code::missing_key);
}

TEST_CASE("faults come all at once, under the names that the file uses") {
  const auto faults = faults_of(R"({"model_type": "llama", "hidden_size": "big", "num_hidden_layers": 1.5,
                                    "hidden_act": "siluu", "attention_bias": true})");
  REQUIRE(faults.size() == 4);
  CHECK(faults[0].pointer == "/hidden_size");
  CHECK(faults[0].code == Code::wrong_type);
  CHECK(faults[1].pointer == "/num_hidden_layers");
  CHECK(faults[1].code == Code::bad_value);
  CHECK(faults[2].pointer == "/hidden_act");
  CHECK(faults[2].suggestion == "silu");
  CHECK(faults[3].pointer == "/attention_bias");
  CHECK(faults[3].code == Code::not_in_version);
  const auto zero = faults_of(R"({"model_type": "gpt2", "n_layer": 0, "vocab_size": 1000000000000})");
  REQUIRE(zero.size() == 2);
  CHECK(zero[0].pointer == "/n_layer");
  CHECK(zero[1].pointer == "/vocab_size");
  CHECK(zero[1].code == Code::too_large);
}

TEST_CASE("text that is no object, too long, too deep or has a key twice is refused") {
  CHECK(faults_of("").at(0).code == Code::syntax);
  const auto cut = faults_of("{\"model_type\": \"llama\",\n  \"hidden_size\": ");
  CHECK(cut.at(0).code == Code::syntax);
  CHECK(cut.at(0).line == 2);
  CHECK(faults_of("[1, 2]").at(0).code == Code::wrong_type);
  CHECK(faults_of(std::string(100'000, '[')).at(0).code == Code::nesting);
  CHECK(faults_of(std::string(std::size_t{1} << 21, ' ')).at(0).code == Code::too_large);
  CHECK(faults_of(R"({"model_type": "llama", "model_type": "gpt2"})").at(0).code == Code::duplicate_key);
  CHECK(faults_of(R"({"model_type": "llama", "hidden_size": 99999999999999999999})").at(0).pointer == "/hidden_size");
  CHECK(faults_of(R"({"model_type": "llama", "rms_norm_eps": 1e999})").at(0).severity == Severity::error);
  CHECK(faults_of(R"({"model_type": "llama", "num_attention_heads": 0})").at(0).pointer == "/num_attention_heads");
}
