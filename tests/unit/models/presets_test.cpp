#include "models/presets.hpp"

#include <doctest/doctest.h>

using namespace tpusim;

namespace {

std::vector<Diagnostic> faults_of(const std::string& json) {
  try {
    models::parse_card(json, "card.json");
  } catch (const ScenarioError& e) {
    return e.diagnostics;
  }
  return {};
}

const char* kCard = R"({"name": "tiny", "help": "h", "source": "s", "config": {
  "family": "transformer", "layers": 1, "embed": 8, "heads": 2, "kv_heads": 1, "head_dim": 4, "mlp": 16, "gated_mlp": true,
  "vocab": 10, "tied_embeddings": false, "positions": "rotary", "max_positions": 4, "rope_theta": 10000, "norm": "rms",
  "norm_eps": 1e-5, "activation": "silu", "parallel_block": false, "bias": false}})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("the presets of the contract are all there, in order, each with help and a source") {
  CHECK(models::preset_names() == std::vector<std::string>{"gpt2", "gpt3-175b", "llama2-7b", "llama2-13b", "llama2-70b",
                                                           "llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "palm-8b",
                                                           "palm-62b", "palm-540b"});
  Registry<models::Preset> registry;
  models::register_builtin(registry);
  CHECK(registry.names() == models::preset_names());
  for (const auto& entry : registry.entries()) {
    CHECK(!entry.help.empty());
    CHECK(!entry.value.source.empty());
    CHECK(entry.value.config.name == entry.name);
  }
  CHECK(!models::find_preset("llama2-7B").has_value());
}

TEST_CASE("a card is read whole") {
  const models::Preset p = models::parse_card(kCard, "card.json");
  models::ModelConfig wanted;
  wanted.name = "tiny";
  wanted.embed = 8;
  wanted.heads = 2;
  wanted.head_dim = 4;
  wanted.mlp = 16;
  wanted.vocab = 10;
  wanted.max_positions = 4;
  CHECK(p.config == wanted);
  CHECK(p.help == "h");
  CHECK(p.source == "s");
}

TEST_CASE("a card without a source, with an unknown, missing or mistyped field is refused, all faults at once") {
  CHECK(faults_of(replaced(kCard, R"("source": "s")", R"("source": "")")).at(0).pointer == "/source");
  CHECK(faults_of(replaced(kCard, R"("source": "s", )", "")).at(0).code == Code::missing_key);
  const auto faults =
      faults_of(replaced(replaced(kCard, R"("layers")", R"("layer")"), R"("vocab": 10)", R"("vocab": "x")"));
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].pointer == "/config/layers");
  CHECK(faults[0].code == Code::missing_key);
  CHECK(faults[1].pointer == "/config/vocab");
  CHECK(faults[1].code == Code::wrong_type);
  CHECK(faults[2].pointer == "/config/layer");
  CHECK(faults[2].suggestion == "layers");
  CHECK(faults_of("{").at(0).code == Code::syntax);
}

TEST_CASE("a config that cannot be built is refused field by field") {
  models::ModelConfig c = models::parse_card(kCard, "card.json").config;
  c.layers = 0;
  c.heads = 3;
  c.kv_heads = 2;
  c.head_dim = 5;
  c.mlp = std::int64_t{1} << 40;
  c.norm_eps = 0;
  DiagnosticSink sink;
  models::check(c, "/model", sink);
  std::vector<std::pair<std::string, Code>> found;
  for (const Diagnostic& d : sink.all()) found.emplace_back(d.pointer, d.code);
  CHECK(found == std::vector<std::pair<std::string, Code>>{{"/model/layers", Code::bad_value},
                                                           {"/model/mlp", Code::too_large},
                                                           {"/model/norm_eps", Code::bad_value},
                                                           {"/model/kv_heads", Code::not_divisible},
                                                           {"/model/head_dim", Code::not_divisible}});
}
