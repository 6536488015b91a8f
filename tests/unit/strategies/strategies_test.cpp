#include "sim/strategies/strategies.hpp"

#include <doctest/doctest.h>

namespace tpusim::strategies {
namespace {

using ir::Axis;
using ir::Place;
using ir::Table;

std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}

Request request(std::vector<RequestedAxis> mesh) {
  Request r;
  r.mesh = std::move(mesh);
  r.sizes[at(Axis::seq)] = 128;
  r.sizes[at(Axis::embed)] = 64;
  r.sizes[at(Axis::kv_heads)] = 8;
  r.sizes[at(Axis::q_group)] = 4;
  r.sizes[at(Axis::head_dim)] = 16;
  r.sizes[at(Axis::mlp)] = 256;
  r.sizes[at(Axis::vocab)] = 1000;
  r.sites = {1, 8, 1, {}};
  r.global_batch = 64;
  return r;
}
// "embed: fsdp; mlp: tensor,fsdp.1", rules in order, those of a place as "residual.seq".
std::string text(const std::vector<spmd::Rule>& rules, const spmd::Mesh& mesh) {
  std::string out;
  for (const spmd::Rule& r : rules) {
    if (!out.empty()) out += "; ";
    if (r.place != Place::none) out += std::string(ir::name_of(r.place)) + ".";
    out += std::string(ir::name_of(r.axis)) + ": " + mesh.to_string(r.mesh_axes);
  }
  return out;
}
std::string axes_text(const spmd::Mesh& mesh) {
  std::string out;
  for (const spmd::MeshAxis& a : mesh.axes) out += (out.empty() ? "" : " ") + a.name + "=" + std::to_string(a.size);
  return out;
}
std::string wanted(const Setup& s, Table table, std::initializer_list<std::pair<Axis, std::int64_t>> dims) {
  ir::TensorType type;
  for (const auto& [axis, size] : dims) type.shape.push_back({{axis, 0}, size, size});
  return to_string(spmd::wanted_spec(s.tables, table, type, s.mesh), type.shape, s.mesh);
}

TEST_CASE("Data parallelism splits the batch and nothing else") {
  const Setup s = decide(request({{"data", 8}}));
  REQUIRE(s.verdict.feasible);
  CHECK(text(s.tables.activations, s.mesh) == "batch: data");
  CHECK(s.tables.parameters.empty());
  CHECK(s.tables.gradients.empty());
  CHECK(s.tables.optimizer.empty());
  CHECK(s.replicas == 8);
  CHECK(s.microbatch == 8);
  CHECK(s.microbatches == 1);
  CHECK(s.padded[at(Axis::batch)] == 64);
}

TEST_CASE("A ZeRO stage says which tables fsdp splits") {
  for (const int stage : {1, 2, 3}) {
    Request r = request({{"data", 2}, {"fsdp", 4}});
    r.options.zero_stage = stage;
    const Setup s = decide(r);
    REQUIRE(s.verdict.feasible);
    CHECK(text(s.tables.activations, s.mesh) == "batch: data,fsdp");
    CHECK(text(s.tables.optimizer, s.mesh) == "embed: fsdp");
    CHECK(text(s.tables.gradients, s.mesh) == (stage >= 2 ? "embed: fsdp" : ""));
    CHECK(text(s.tables.parameters, s.mesh) == (stage >= 3 ? "embed: fsdp" : ""));
    CHECK(s.notes.empty());
  }
}

TEST_CASE("Tensor parallelism splits heads, mlp and vocab in all tables; vocab is padded") {
  const Setup s = decide(request({{"tensor", 16}}));
  REQUIRE(s.verdict.feasible);
  CHECK(axes_text(s.mesh) == "tensor.0=8 tensor.1=2");  // 8 kv_heads, then 2 of the 4 queries each
  for (const auto* table : {&s.tables.activations, &s.tables.parameters, &s.tables.gradients, &s.tables.optimizer})
    CHECK(text(*table, s.mesh) ==
          "kv_heads: tensor.0; q_group: tensor.1; mlp: tensor.0,tensor.1; vocab: tensor.0,tensor.1");
  CHECK(s.padded[at(Axis::vocab)] == 1008);  // 63 x 16
  CHECK(s.padded[at(Axis::mlp)] == 256);
  CHECK(s.notes == std::vector<std::string>{"vocab 1000 is padded to 1008 for tensor 16"});
}

TEST_CASE("Multi-query attention: tensor goes to the queries alone and needs no sub-axes") {
  Request r = request({{"tensor", 12}});
  r.sizes[at(Axis::kv_heads)] = 1;
  r.sizes[at(Axis::q_group)] = 48;
  const Setup s = decide(r);
  REQUIRE(s.verdict.feasible);
  CHECK(axes_text(s.mesh) == "tensor=12");
  CHECK(text(s.tables.parameters, s.mesh) == "q_group: tensor; mlp: tensor; vocab: tensor");
  CHECK(s.padded[at(Axis::mlp)] == 264);  // 22 x 12
}

TEST_CASE("Sequence parallelism splits the residual stream over the sequence") {
  Request r = request({{"tensor", 4}});
  r.options.sequence_parallel = true;
  const Setup s = decide(r);
  CHECK(text(s.tables.activations, s.mesh) == "kv_heads: tensor; mlp: tensor; vocab: tensor; residual.seq: tensor");
  CHECK(text(s.tables.parameters, s.mesh) == "kv_heads: tensor; mlp: tensor; vocab: tensor");
  r.sizes[at(Axis::seq)] = 126;
  const Setup refused = decide(r);
  CHECK(refused.verdict.pointer == "/training/sequence_length");
  CHECK(refused.verdict.needed == "a multiple of 4");
}

TEST_CASE("What fsdp cannot split of embed it splits of another dim, mlp and vocab padded") {
  Request r = request({{"fsdp", 48}, {"tensor", 4}});  // gcd(48, 64) = 16; 3 is left
  r.sizes[at(Axis::mlp)] = 48;                         // 48 / 4 is a multiple of 3, vocab 1000 / 4 = 250 is not
  r.global_batch = 48;
  const Setup s = decide(r);
  REQUIRE(s.verdict.feasible);
  CHECK(axes_text(s.mesh) == "fsdp.0=16 fsdp.1=3 tensor=4");
  CHECK(text(s.tables.activations, s.mesh) == "kv_heads: tensor; mlp: tensor; vocab: tensor; batch: fsdp.0,fsdp.1");
  CHECK(wanted(s, Table::parameters, {{Axis::embed, 64}, {Axis::mlp, 48}}) == "[embed: fsdp.0, mlp: tensor,fsdp.1]");
  CHECK(s.padded[at(Axis::mlp)] == 48);
  CHECK(s.padded[at(Axis::vocab)] == 1008);  // 84 x 12
  CHECK(wanted(s, Table::parameters, {{Axis::vocab, 1008}, {Axis::embed, 64}}) ==
        "[vocab: tensor,fsdp.1, embed: fsdp.0]");
  CHECK(wanted(s, Table::parameters, {{Axis::embed, 64}}) == "[embed: fsdp.0]");
  REQUIRE(s.notes.size() == 2);
  CHECK(s.notes[0] == "vocab 1000 is padded to 1008 for fsdp 48");
  CHECK(s.notes[1].substr(0, 54) == "fsdp 48 splits embed 64 over 16 of its devices; the ot");
}

TEST_CASE("All four strategies at once") {
  Request r = request({{"pipeline", 2}, {"data", 2}, {"fsdp", 4}, {"tensor", 4}});
  r.microbatch = 1;
  const Setup s = decide(r);
  REQUIRE(s.verdict.feasible);
  CHECK(axes_text(s.mesh) == "pipeline=2 data=2 fsdp=4 tensor=4");
  CHECK(s.pipeline_axis == 0);
  CHECK(s.replicas == 8);
  CHECK(s.microbatches == 8);
  CHECK(s.padded[at(Axis::batch)] == 8);
  CHECK(s.schedule.first_site == std::vector<std::int64_t>{0, 5, 10});  // embedding and 4 layers, 4 layers and head
  CHECK(s.schedule.microbatches == 8);
}

TEST_CASE("Without a given microbatch a pipeline takes the largest that gives four microbatches a stage") {
  Request r = request({{"pipeline", 4}});
  r.global_batch = 96;  // divisors with 96 / d >= 16: up to 6
  CHECK(decide(r).microbatch == 6);
  r.global_batch = 8;  // none: 1
  CHECK(decide(r).microbatch == 1);
}

TEST_CASE("Heads that tensor does not divide are refused with the sizes that would do") {
  Request r = request({{"tensor", 24}});  // gcd(24, 8) = 8, and 3 does not divide 4
  const Setup s = decide(r);
  CHECK_FALSE(s.verdict.feasible);
  CHECK(s.verdict.reason == "tensor 24 does not divide the heads");
  CHECK(s.verdict.needed == "a size that divides 8 kv_heads x 4 query heads each: 1, 2, 4, 8, 16, 32");
  CHECK(s.verdict.pointer == "/mesh/tensor");
}

TEST_CASE("A tensor size that divides all heads but not as kv_heads and groups is not valid") {
  // 6 kv_heads x 3: t = 9: gcd(9, 6) = 3, the other 3 divides the group: valid. t = 4: gcd 2, 2 does not divide 3.
  CHECK(valid_tensor_sizes(6, 3) == std::vector<std::int64_t>{1, 2, 3, 6, 9, 18});
  CHECK(valid_tensor_sizes(6, 4) == std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12, 24});
  CHECK(valid_tensor_sizes(4, 1) == std::vector<std::int64_t>{1, 2, 4});
}

TEST_CASE("Layers, batch and microbatch that do not divide are refused by name, all at once") {
  Request r = request({{"pipeline", 3}, {"data", 5}});
  const Setup s = decide(r);
  REQUIRE(s.refusals.size() == 2);
  CHECK(s.refusals[0].pointer == "/training/global_batch");
  CHECK(s.refusals[0].needed == "a multiple of 5");
  CHECK(s.refusals[1].pointer == "/mesh/pipeline");
  CHECK(s.refusals[1].needed == "a size that divides 8 layers: 1, 2, 4, 8");
  r = request({{"data", 8}});
  r.microbatch = 3;
  CHECK(decide(r).verdict.pointer == "/training/microbatch");
  CHECK(decide(r).verdict.needed == "a size that divides 8: 1, 2, 4, 8");
}

TEST_CASE("A mesh axis without a strategy, named twice, or empty is refused") {
  CHECK(decide(request({{"tensr", 2}})).verdict.pointer == "/mesh/tensr");
  CHECK(decide(request({{"data", 2}, {"data", 2}})).verdict.reason == "the mesh names an axis twice");
  CHECK(decide(request({{"data", 0}})).verdict.pointer == "/mesh/data");
}

TEST_CASE("A rule by hand replaces the strategy's and claims mesh axes first") {
  Request r = request({{"fsdp", 4}, {"tensor", 4}});
  r.by_hand.push_back({Table::parameters, Axis::mlp, Place::none, {"fsdp", "tensor"}, "/sharding/parameters/mlp"});
  r.by_hand.push_back({Table::activations, Axis::seq, Place::mlp, {"tensor"}, "/sharding/activations/mlp.seq"});
  const Setup s = decide(r);
  REQUIRE(s.verdict.feasible);
  CHECK(text(s.tables.parameters, s.mesh) == "mlp: fsdp,tensor; kv_heads: tensor; vocab: tensor; embed: fsdp");
  CHECK(s.tables.parameters[0].origin == "/sharding/parameters/mlp");
  CHECK(text(s.tables.activations, s.mesh) ==
        "mlp.seq: tensor; kv_heads: tensor; mlp: tensor; vocab: tensor; batch: fsdp");
  r.by_hand[0].mesh_axes = {"tensor", "tensor"};
  r.by_hand[1].mesh_axes = {"data"};
  const Setup refused = decide(r);
  REQUIRE(refused.refusals.size() == 2);
  CHECK(refused.refusals[0].reason == "a rule names the mesh axis tensor twice");
  CHECK(refused.refusals[1].reason == "the mesh has no axis data");
  CHECK(refused.refusals[1].pointer == "/sharding/activations/mlp.seq");
}

TEST_CASE("Axes of size one split nothing but stay in the mesh") {
  const Setup s = decide(request({{"pipeline", 1}, {"data", 4}, {"tensor", 1}}));
  REQUIRE(s.verdict.feasible);
  CHECK(axes_text(s.mesh) == "pipeline=1 data=4 tensor=1");
  CHECK(text(s.tables.activations, s.mesh) == "batch: data");
  CHECK(s.schedule.stages.size() == 1);
}

TEST_CASE("Every built-in strategy has a line of help") {
  Registry<Strategy> registry;
  register_builtin(registry);
  CHECK(registry.names() == std::vector<std::string>{"tensor", "data", "fsdp", "pipeline"});
  for (const auto& entry : registry.entries()) CHECK(entry.help.size() > 20);
}

}  // namespace
}  // namespace tpusim::strategies
