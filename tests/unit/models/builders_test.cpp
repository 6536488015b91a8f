#include "models/builders.hpp"

#include <doctest/doctest.h>

#include <set>

#include "models/presets.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim;

namespace {

models::BuildOptions options(std::int64_t batch, std::int64_t seq) {
  models::BuildOptions o;
  o.batch = batch;
  o.seq = seq;
  o.global_tokens = static_cast<double>(batch * seq);
  return o;
}

struct PhaseFlops {
  double forward_model = 0, backward_model = 0, recompute_executed = 0;
};
PhaseFlops flops_of(const ir::Program& p) {
  PhaseFlops out;
  for (const ir::Op& op : p.ops) {
    std::vector<ir::TensorType> operands, results;
    for (const ir::ValueId v : op.operands) operands.push_back(p.value(v).type);
    for (const ir::ValueId v : op.results) results.push_back(p.value(v).type);
    const ir::OpCost c = ir::cost(op.kind, operands, results);
    if (op.phase == ir::Phase::forward) out.forward_model += c.model_flops;
    if (op.phase == ir::Phase::backward) out.backward_model += c.model_flops;
    if (op.phase == ir::Phase::recompute) out.recompute_executed += c.executed_flops;
  }
  return out;
}

std::int64_t saved_bytes(const ir::Program& p) {
  std::int64_t total = 0;
  for (const ir::ValueId v : ir::saved_values(p)) total += p.value(v).type.bytes();
  return total;
}

std::multiset<std::string> saved_labels(const ir::Program& p) {
  std::multiset<std::string> out;
  for (const ir::ValueId v : ir::saved_values(p)) out.insert(std::string(p.value(v).label));
  return out;
}

}  // namespace

TEST_CASE("a transformer is an embedding, its layers as one block with a count, and a head") {
  const ir::Model m = models::build(models::find_preset("llama2-7b")->config, options(2, 64));
  REQUIRE(m.blocks.size() == 3);
  CHECK(m.blocks[0].name == "embedding");
  CHECK(m.blocks[1].name == "layer");
  CHECK(m.blocks[2].name == "head");
  REQUIRE(m.uses.size() == 3);
  CHECK(m.uses[1].block == 1);
  CHECK(m.uses[1].count == 32);
  CHECK(m.layers == 32);
  for (const ir::Program& p : m.blocks) CHECK(ir::verify(p) == std::vector<std::string>{});
  // Blocks fit together.
  CHECK(m.blocks[0].value(m.blocks[0].x_out).type == m.blocks[1].value(m.blocks[1].x_in).type);
  CHECK(m.blocks[1].value(m.blocks[1].x_out).type == m.blocks[1].value(m.blocks[1].x_in).type);
  CHECK(m.blocks[1].value(m.blocks[1].x_out).type == m.blocks[2].value(m.blocks[2].x_in).type);
  CHECK(!m.blocks[2].x_out.valid());
  CHECK(m.blocks[2].value(m.blocks[2].loss).type == ir::TensorType{ir::DType::f32, {}, ir::Place::none});
}

TEST_CASE("model FLOPs of a layer are 6 per parameter and token plus 12 x seq x width of attention") {
  // PaLM, appendix B: 6 N + 12 L H Q T a token. For one layer of llama2-7b, T = 64: matrices 4 x 4096^2 + 3 x 4096 x
  // 11008 = 202,375,168; H Q = 4096. Forward a third, backward two thirds; selective and no remat run nothing of it
  // again.
  for (const auto attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused}) {
    models::BuildOptions o = options(2, 64);
    o.attention = attention;
    ir::Program layer = models::build(models::find_preset("llama2-7b")->config, o).blocks[1];
    ir::differentiate(layer, {ir::Remat::none, ir::DType::f32});
    const PhaseFlops f = flops_of(layer);
    const double tokens = 2 * 64, matrices = 202'375'168, width = 4096;
    CHECK(f.forward_model == tokens * (2 * matrices + 4 * 64 * width));
    CHECK(f.backward_model == tokens * (4 * matrices + 8 * 64 * width));
    CHECK(f.recompute_executed == 0);
  }
}

TEST_CASE("full remat runs the layer's products again, but not the last one, which nobody reads") {
  ir::Program layer = models::build(models::find_preset("llama2-7b")->config, options(1, 64)).blocks[1];
  ir::differentiate(layer, {ir::Remat::full, ir::DType::f32});
  // All matrices but w_out (4096 x 11008), and flash in one block of 64 x 64, wholly computed: 2 x 2 x 64 x 4096 a
  // token.
  const double matrices = 202'375'168 - 4096.0 * 11008;
  CHECK(flops_of(layer).recompute_executed == 64 * (2 * matrices + 4 * 64 * 4096));
  CHECK(saved_labels(layer) == std::multiset<std::string>{"x_in"});
}

TEST_CASE("selective remat runs the scores again and nothing else, and keeps no tensor of queries times keys") {
  models::BuildOptions o = options(1, 64);
  o.attention = ir::AttentionKind::unfused;
  ir::Program layer = models::build(models::find_preset("llama2-7b")->config, o).blocks[1];
  ir::differentiate(layer, {ir::Remat::selective, ir::DType::f32});
  // q k^T: 2 x 64 x 64 x 4096.
  CHECK(flops_of(layer).recompute_executed == 2.0 * 64 * 64 * 4096);
  CHECK(saved_labels(layer) == std::multiset<std::string>{"x_in", "norm.rsqrt", "q", "k", "v", "softmax.max",
                                                          "softmax.sum", "attention_out", "x_mid", "norm.rsqrt", "gate",
                                                          "up"});
}

TEST_CASE("without remat the cheapest cut is kept: products and statistics, never an activation function's result") {
  ir::Program layer = models::build(models::find_preset("llama2-7b")->config, options(1, 64)).blocks[1];
  ir::differentiate(layer, {ir::Remat::none, ir::DType::f32});
  CHECK(saved_labels(layer) == std::multiset<std::string>{"x_in", "norm.rsqrt", "q", "k", "v", "attention_out",
                                                          "attention_lse", "x_mid", "norm.rsqrt", "gate", "up"});
  // s = 64 tokens. bf16: x_in, q, k, v, o, x_mid of 4096 each, gate and up of 11008; f32: two norm statistics and 32 of
  // lse.
  CHECK(saved_bytes(layer) == 64 * (2 * (6 * 4096 + 2 * 11008) + 4 * (2 + 32)));
}

TEST_CASE("gpt-style layers keep Korthikanti's selective set less what is cheap to make again") {
  // Korthikanti et al. 2022, equation 6: 34 s b h bytes with selective remat. Of it are kept here: x_in 2, q k v 6,
  // attention_out 2, x_mid 2, up 8 = 20 s b h; made again: norm outputs 2 x 2 and the GELU's result 8; dropout masks
  // (2) do not exist. Statistics in f32: 4 of the norms and 2 a head of softmax.
  models::ModelConfig c = models::find_preset("gpt2")->config;
  models::BuildOptions o = options(3, 128);
  o.attention = ir::AttentionKind::unfused;
  ir::Program layer = models::build(c, o).blocks[1];
  ir::differentiate(layer, {ir::Remat::selective, ir::DType::f32});
  CHECK(saved_bytes(layer) == 20 * 128 * 3 * 768 + 128 * 3 * 4 * (4 + 2 * 12));
}

TEST_CASE("every parameter is cast to the compute dtype in table parameters before it is used") {
  for (const char* name : {"gpt2", "palm-8b", "llama3.1-8b"})
    for (const ir::Program& p : models::build(models::find_preset(name)->config, options(1, 8)).blocks)
      for (const ir::Parameter& q : p.parameters) {
        CHECK(p.value(q.value).type.dtype == ir::DType::f32);
        for (const ir::Op& op : p.ops)
          if (op.operands.contains(q.value)) {
            CHECK(ir::op_name(op.kind) == "map.cast");
            CHECK(p.value(op.results[0]).table == ir::Table::parameters);
            CHECK(p.value(op.results[0]).type.dtype == ir::DType::bf16);
          }
      }
}

TEST_CASE("grouped and multi-query attention split query heads into kv_heads and q_group") {
  const ir::Program layer = models::build(models::find_preset("llama2-70b")->config, options(1, 8)).blocks[1];
  const ir::Program palm = models::build(models::find_preset("palm-540b")->config, options(1, 8)).blocks[1];
  const auto shape_of = [](const ir::Program& p, const char* name) {
    for (const ir::Parameter& q : p.parameters)
      if (q.name == name) return ir::to_string(p.value(q.value).type);
    return std::string();
  };
  CHECK(shape_of(layer, "wq") == "f32[embed 8192, kv_heads 8, q_group 8, head_dim 128]");
  CHECK(shape_of(layer, "wk") == "f32[embed 8192, kv_heads 8, head_dim 128]");
  CHECK(shape_of(palm, "wq") == "f32[embed 18432, kv_heads 1, q_group 48, head_dim 256]");
  CHECK(shape_of(palm, "wv") == "f32[embed 18432, kv_heads 1, head_dim 256]");
}

TEST_CASE("a tied embedding has one name in both blocks and the same dims") {
  const ir::Model m = models::build(models::find_preset("gpt2")->config, options(1, 8));
  const ir::Parameter *first = nullptr, *last = nullptr;
  for (const ir::Parameter& q : m.blocks[0].parameters)
    if (q.tie == "embedding") first = &q;
  for (const ir::Parameter& q : m.blocks[2].parameters)
    if (q.tie == "embedding") last = &q;
  REQUIRE(first != nullptr);
  REQUIRE(last != nullptr);
  CHECK(m.blocks[0].value(first->value).type == m.blocks[2].value(last->value).type);
}

TEST_CASE("the MLP of the scaling book has two matrices a layer and trains against features") {
  models::ModelConfig c;
  c.family = models::Family::mlp;
  c.layers = 4;
  c.embed = 16;
  c.mlp = 64;
  c.gated_mlp = false;
  c.activation = ir::Activation::relu;
  const ir::Model m = models::build(c, options(32, 1));
  CHECK(m.parameter_count() == 4 * 2 * 16 * 64);
  CHECK(m.blocks[0].name == "input");
  CHECK(m.blocks[0].parameters.empty());
  ir::Program layer = m.blocks[1];
  ir::differentiate(layer, {ir::Remat::none, ir::DType::bf16});
  // Forward 2 products, backward 4, each 2 x 32 x 16 x 64.
  CHECK(flops_of(layer).forward_model == 2 * 2.0 * 32 * 16 * 64);
  CHECK(flops_of(layer).backward_model == 4 * 2.0 * 32 * 16 * 64);
  CHECK(m.blocks[2].loss.valid());
}

TEST_CASE("a model of family fixed has no program") {
  models::ModelConfig c;
  c.family = models::Family::fixed;
  CHECK_THROWS_AS(models::build(c, options(1, 1)), InternalError);
}
