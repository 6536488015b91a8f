// Faults of the text and of its keys.
#include "tests/diagnostics/reader_support.hpp"

using namespace tpusim;
using namespace tpusim::diagnostics;

namespace {

std::vector<Row> syntax_rows() {
  return {
      {"empty", "", "", Code::syntax, ""},
      {"only space", " \n\t ", "", Code::syntax, ""},
      {"only a comment", "// nothing\n", "", Code::syntax, ""},
      {"truncated in an object", R"({"model": "gpt2", "cluster": {"chip")", "/cluster", Code::syntax, ""},
      {"truncated in a string", R"({"model": "gp)", "/model", Code::syntax, ""},
      {"truncated after a colon", R"({"model":)", "", Code::syntax, ""},
      {"trailing comma", extra(R"("sharding": {"parameters": {},})"), "/sharding", Code::syntax, ""},
      {"missing comma", R"({"model": "gpt2" "cluster": {}})", "", Code::syntax, ""},
      {"bare word", model("gpt2"), "/model", Code::syntax, ""},
      {"single quotes", model("'gpt2'"), "/model", Code::syntax, ""},
      {"Python's True", extra(R"("strategies": {"tensor": {"sequence_parallel": True}})"),
       "/strategies/tensor/sequence_parallel", Code::syntax, "true"},
      {"block comment", model("/* no */ \"gpt2\""), "", Code::syntax, ""},
      {"NaN", training(R"({"global_batch": 32, "learning_rate": NaN})"), "/training/learning_rate", Code::bad_value,
       ""},
      {"Infinity", training(R"({"global_batch": 32, "clip_norm": Infinity})"), "/training/clip_norm", Code::bad_value,
       ""},
      {"minus Infinity", training(R"({"global_batch": -Infinity})"), "/training/global_batch", Code::bad_value, ""},
      {"beyond every double", training(R"({"global_batch": 1e999})"), "/training/global_batch", Code::too_large, ""},
      {"leading zero", training(R"({"global_batch": 032})"), "/training/global_batch", Code::syntax, ""},
      {"two documents", Parts().text() + "{}", "", Code::syntax, ""},
      {"not UTF-8", model("\"gpt\xff\""), "/model", Code::syntax, ""},
      {"a zero byte", std::string("{\"model\": \0}", 12), "/model", Code::syntax, ""},
      {"nested 100,000 deep", extra("\"sharding\": " + std::string(100'000, '[') + std::string(100'000, ']')), "*",
       Code::nesting, ""},
      {"nested 100,000 deep in objects",
       [] {
         std::string out = "{";
         for (int i = 0; i < 100'000; ++i) out += "\"a\":{";
         return out;
       }(),
       "*", Code::nesting, ""},
      {"duplicate key", extra(R"("mesh": {"data": 16})"), "/mesh", Code::duplicate_key, ""},
      {"duplicate key inside", cluster(R"({"chip": "tpu-v5e", "topology": "4x4", "chip": "tpu-v4"})"), "/cluster/chip",
       Code::duplicate_key, ""},
      {"a million values",
       extra("\"sharding\": [" +
             [] {
               std::string out = "1";
               for (int i = 0; i < 400'000; ++i) out += ",1";
               return out;
             }() +
             "]"),
       "*", Code::too_large, ""},
      {"a text beyond the bound", "{\"name\": \"" + std::string(3'000'000, 'x') + "\"}", "", Code::too_large, ""},
      {"a name beyond the bound", extra("\"name\": \"" + std::string(5'000, 'x') + "\""), "/name", Code::too_large, ""},
  };
}

std::vector<Row> shape_rows() {
  return {
      {"not an object", "[]", "", Code::wrong_type, ""},
      {"a number", "42", "", Code::wrong_type, ""},
      {"no model", R"({"cluster": {"chip": "tpu-v5e", "topology": "1x1"}, "training": {"global_batch": 1}})", "",
       Code::missing_key, "model"},
      {"no cluster", R"({"model": "gpt2", "training": {"global_batch": 1}})", "", Code::missing_key, "cluster"},
      {"no training", R"({"model": "gpt2", "cluster": {"chip": "tpu-v5e", "topology": "1x1"}})", "", Code::missing_key,
       "training"},
      {"no batch", training("{}"), "/training", Code::missing_key, "global_batch"},
      {"no chip", cluster(R"({"topology": "4x4"})"), "/cluster", Code::missing_key, "chip"},
      {"no size of the cluster", cluster(R"({"chip": "tpu-v5e"})"), "/cluster", Code::missing_key, ""},
      {"unknown key at the top", extra(R"("stratgies": {})"), "/stratgies", Code::unknown_key, "strategies"},
      {"unknown key in the cluster", cluster(R"({"chip": "tpu-v5e", "topologi": "4x4", "topology": "4x4"})"),
       "/cluster/topologi", Code::unknown_key, "topology"},
      {"unknown key in the model", model(R"({"preset": "gpt2", "n_layers": 4})"), "/model/n_layers", Code::unknown_key,
       "layers"},
      {"a key that belongs elsewhere", training(R"({"global_batch": 32, "zero_stage": 3})"), "/training/zero_stage",
       Code::unknown_key, "/strategies/fsdp/zero_stage"},
      {"a key that belongs at the top", cluster(R"({"chip": "tpu-v5e", "topology": "4x4", "mesh": {}})"),
       "/cluster/mesh", Code::unknown_key, "/mesh"},
      {"another tool's word for a key", training(R"({"global_batch": 32, "lr": 1e-3})"), "/training/lr",
       Code::unknown_key, "learning_rate"},
      {"unknown key in a strategy", extra(R"("strategies": {"fsdp": {"zero": 3}})"), "/strategies/fsdp/zero",
       Code::unknown_key, "zero_stage"},
      {"version 2", extra(R"("version": 2)"), "/version", Code::not_in_version, "1"},
      {"version as text", extra(R"("version": "1")"), "/version", Code::wrong_type, "1"},
      {"checkpoint", extra(R"("checkpoint": {"interval": "1 h"})"), "/checkpoint", Code::not_in_version, ""},
      {"failures", extra(R"("failures": {"mtbf": "1 d"})"), "/failures", Code::not_in_version, ""},
      {"checkpoint as a list", extra(R"("checkpoint": [])"), "/checkpoint", Code::wrong_type, ""},
      {"failures as a number", extra(R"("failures": 3)"), "/failures", Code::wrong_type, ""},
      {"sweep as a number", extra(R"("sweep": 3)"), "/sweep", Code::wrong_type, ""},
      {"baseline as a number", extra(R"("baseline": 3)"), "/baseline", Code::wrong_type, ""},
      {"price as a text", extra(R"("price": "x")"), "/price", Code::wrong_type, ""},
      {"price", extra(R"("price": {"chip_hour": 1.2})"), "/price", Code::not_in_version, ""},
      {"sweep", extra(R"("sweep": {"mesh.tensor": [1, 2]})"), "/sweep", Code::not_in_version, ""},
      {"static faults", extra(R"("faults_static": [{"link": 1}])"), "/faults_static", Code::not_in_version, ""},
      {"baseline", extra(R"("baseline": "x.json")"), "/baseline", Code::not_in_version, ""},
      {"name as a number", extra(R"("name": 7)"), "/name", Code::wrong_type, ""},
  };
}

}  // namespace

TEST_CASE("a text that is no JSON, or too much of it, is refused at its place") {
  run(syntax_rows());
}

TEST_CASE("missing, unknown and planned keys are named") {
  run(shape_rows());
}
