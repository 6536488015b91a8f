// Which collectives the five rules put in. Sizes: batch 8, seq 16, embed 32, 8 kv_heads of head_dim 4, mlp 64, vocab
// 64: a residual tensor has 8 x 16 x 32 = 4096 entries in the whole mesh, wq 32 x 8 x 4 = 1024, w_in 32 x 64 = 2048. A
// line reads: phase, collective, mesh axes, dim or reduction, label, dtype, entries of the local operand.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/spmd/transformer_support.hpp"

namespace tpusim::spmd::testing {
namespace {

using ir::Phase;

const MeshAxis kTensor4{"tensor", 4, "tensor"};
const MeshAxis kFsdp4{"fsdp", 4, "fsdp"};
const MeshAxis kData2{"data", 2, "data"};

Partitioned checked(const ir::Program& program, const ShardingTables& tables, const Mesh& mesh) {
  Partitioned p = partition(program, tables, mesh);
  std::string broken;
  for (const std::string& line : ir::verify(p.local)) broken += line + "\n";
  CHECK(broken == "");
  CHECK(p.specs.size() == p.local.values.size());
  CHECK(p.origin.size() == p.local.ops.size());
  CHECK(p.reason.size() == p.local.ops.size());
  return p;
}

std::vector<Found> found_in(const ir::Program& block, const Mesh& mesh, int zero_stage, bool sequence_parallel) {
  return collectives(checked(block, tables_for(mesh, zero_stage, sequence_parallel), mesh), mesh);
}

// The spec of a parameter's gradient at the end of a block.
std::string gradient_spec(const Partitioned& p, const std::string& name, const Mesh& mesh) {
  for (const ir::Parameter& q : p.local.parameters)
    if (q.name == name)
      return to_string(p.specs[static_cast<std::size_t>(q.gradient.index)], p.local.value(q.gradient).type.shape, mesh);
  return "no such parameter";
}

TEST_CASE("Tensor parallelism costs a layer two all-reduces forward and two backward") {
  const Mesh mesh{{kTensor4}};
  const LayerShape s;
  // Attention's and the MLP's second products contract the split dim. Backward: the three products behind q, k and v
  // are summed while partial and reduced once; so is the one behind the MLP.
  const std::string expected =
      "forward AR tensor sum attention_proj bf16 4096\n"
      "forward AR tensor sum mlp_out bf16 4096\n"
      "backward AR tensor sum norm bf16 4096\n"
      "backward AR tensor sum norm bf16 4096\n";
  CHECK(lines(found_in(differentiated(layer_block(s)), mesh, 0, false)) == expected);
  LayerShape gated = s;
  gated.gated = true;
  CHECK(lines(found_in(differentiated(layer_block(gated)), mesh, 0, false)) == expected);
  LayerShape unfused = s;
  unfused.attention = ir::AttentionKind::unfused;
  CHECK(lines(found_in(differentiated(layer_block(unfused)), mesh, 0, false)) == expected);
  // The gradients of a norm's bias need the reduced value too, in f32; they take the one reduction in bf16.
  LayerShape biased = s;
  biased.layer_norm = true;
  biased.bias = true;
  CHECK(lines(found_in(differentiated(layer_block(biased)), mesh, 0, false)) == expected);
}

TEST_CASE("Parallel attention and MLP need half as many all-reduces") {
  const Mesh mesh{{kTensor4}};
  LayerShape s;
  s.parallel_block = true;
  CHECK(lines(found_in(differentiated(layer_block(s)), mesh, 0, false)) ==
        "forward AR tensor sum branches bf16 4096\n"
        "backward AR tensor sum norm bf16 4096\n");
}

TEST_CASE("Full remat repeats the one forward all-reduce that backward's inputs depend on") {
  const Mesh mesh{{kTensor4}};
  // x_mid = x + attention is read by the second norm; x_out = x_mid + mlp is read by nobody in backward, so the MLP's
  // second product and its all-reduce are not done again.
  CHECK(lines(found_in(differentiated(layer_block(LayerShape()), ir::Remat::full), mesh, 0, false)) ==
        "forward AR tensor sum attention_proj bf16 4096\n"
        "forward AR tensor sum mlp_out bf16 4096\n"
        "recompute AR tensor sum attention_proj bf16 4096\n"
        "backward AR tensor sum norm bf16 4096\n"
        "backward AR tensor sum norm bf16 4096\n");
}

TEST_CASE(
    "Sequence parallelism gathers and reduce-scatters four times each, and gathers twice more what was not kept") {
  const Mesh mesh{{kTensor4}};
  // The norms' results (1024 entries a device) are gathered for the products and scattered after them; backward does
  // the same with the gradients, and gathers the norms' results again for the gradients of the weights.
  CHECK(lines(found_in(differentiated(layer_block(LayerShape())), mesh, 0, true)) ==
        "forward AG tensor seq norm bf16 1024\n"
        "forward RS tensor seq attention_proj bf16 4096\n"
        "forward AG tensor seq norm bf16 1024\n"
        "forward RS tensor seq mlp_out bf16 4096\n"
        "backward AG tensor seq dx_out bf16 1024\n"
        "backward AG tensor seq norm bf16 1024\n"
        "backward RS tensor seq norm bf16 4096\n"
        "backward AG tensor seq x_mid bf16 1024\n"
        "backward AG tensor seq norm bf16 1024\n"
        "backward RS tensor seq norm bf16 4096\n");
}

TEST_CASE(
    "ZeRO stage 3 gathers each parameter in the compute dtype forward and backward and reduce-scatters its gradient") {
  const Mesh mesh{{kFsdp4}};
  const ir::Program layer = differentiated(layer_block(LayerShape()));
  const std::vector<Found> all = found_in(layer, mesh, 3, false);
  for (const ir::Parameter& parameter : layer.parameters) {
    CAPTURE(parameter.name);
    int forward = 0, again = 0;
    for (const Found& f : all) {
      if (f.label != parameter.name) continue;
      CHECK(f.kind == "AG");
      CHECK(f.axes == "fsdp");
      CHECK(f.dtype == ir::DType::bf16);
      (f.phase == Phase::forward ? forward : again) += 1;
    }
    CHECK(forward == 1);
    CHECK(again == 1);  // in the recomputed norm or in backward, never in both: they are one call
  }
  const int parameters = static_cast<int>(layer.parameters.size());
  CHECK(count(all, "RS", "fsdp", Phase::backward) == parameters);
  CHECK(static_cast<int>(all.size()) == 3 * parameters);
  const Partitioned p = checked(layer, tables_for(mesh, 3, false), mesh);
  CHECK(gradient_spec(p, "w_in", mesh) == "[embed: fsdp, mlp]");
}

TEST_CASE("ZeRO stage 2 reduces every microbatch's gradients, stage 1 and plain data parallelism none") {
  const Mesh mesh{{kFsdp4}};
  const ir::Program layer = differentiated(layer_block(LayerShape()));
  const std::vector<Found> stage2 = found_in(layer, mesh, 2, false);
  CHECK(count(stage2, "RS", "fsdp", Phase::backward) == static_cast<int>(layer.parameters.size()));
  CHECK(stage2.size() == layer.parameters.size());
  for (const int stage : {0, 1}) {
    const Partitioned p = checked(layer, tables_for(mesh, stage, false), mesh);
    CHECK(lines(collectives(p, mesh)) == "");
    CHECK(gradient_spec(p, "w_in", mesh) == "[embed, mlp] partial sum over fsdp");
    CHECK(gradient_spec(p, "attention_norm", mesh) == "[embed] partial sum over fsdp");
  }
}

TEST_CASE("With data and fsdp together the gradient is scattered over fsdp and stays a partial sum over data") {
  const Mesh mesh{{kData2, kFsdp4, kTensor4}};
  const Partitioned p = checked(differentiated(layer_block(LayerShape())), tables_for(mesh, 3, false), mesh);
  CHECK(gradient_spec(p, "w_in", mesh) == "[embed: fsdp, mlp: tensor] partial sum over data");
  CHECK(gradient_spec(p, "wo", mesh) == "[kv_heads: tensor, q_group, head_dim, embed: fsdp] partial sum over data");
  CHECK(to_string(p.specs[static_cast<std::size_t>(p.local.x_out.index)], p.local.value(p.local.x_out).type.shape,
                  mesh) == "[batch: data,fsdp, seq, embed]");
  CHECK(p.local.value(p.local.x_out).type == p.local.value(p.local.x_in).type);
  CHECK(p.local.value(p.local.dx_in).type == p.local.value(p.local.x_in).type);
}

TEST_CASE("Under sequence parallelism a norm's gradient is also partial over tensor, whose devices see other tokens") {
  const Mesh mesh{{kData2, kTensor4}};
  const Partitioned p = checked(differentiated(layer_block(LayerShape())), tables_for(mesh, 0, true), mesh);
  CHECK(gradient_spec(p, "attention_norm", mesh) == "[embed] partial sum over data,tensor");
  CHECK(gradient_spec(p, "w_in", mesh) == "[embed, mlp: tensor] partial sum over data");
}

TEST_CASE("A vocab split over tensor costs one all-reduce of the embedded tokens and only per-token ones in the loss") {
  const Mesh mesh{{kTensor4}};
  CHECK(lines(found_in(differentiated(embedding_block(LayerShape())), mesh, 0, false)) ==
        "forward AR tensor sum embedded bf16 4096\n");
  // Maximum, sum of exponentials and the target's logit: 8 x 16 tokens each. Backward: the gradient of the head's
  // input.
  CHECK(lines(found_in(differentiated(head_block(LayerShape())), mesh, 0, false)) ==
        "forward AR tensor max logits.max f32 128\n"
        "forward AR tensor sum logits.sum f32 128\n"
        "forward AR tensor sum logits.target f32 128\n"
        "backward AR tensor sum norm bf16 4096\n");
}

TEST_CASE("Padded logits are masked by their global position on every shard") {
  const Mesh mesh{{kTensor4}};
  LayerShape s;
  s.valid_vocab = 61;  // three padded rows, all on the last shard
  const Partitioned p = checked(differentiated(head_block(s)), tables_for(mesh, 0, false), mesh);
  int masks = 0;
  for (const ir::Op& op : p.local.ops) {
    const ir::MaskPadding* mask = std::get_if<ir::MaskPadding>(&op.kind);
    if (mask == nullptr) continue;
    ++masks;
    CHECK(mask->axes == MeshAxes{0});
    const ir::Shape& shape = p.local.value(op.operands[0]).type.shape;
    const ir::Dim dim = shape[static_cast<std::size_t>(ir::find_dim(shape, mask->dim))];
    CHECK(dim == ir::Dim{{ir::Axis::vocab, 0}, 16, 61});
  }
  CHECK(masks >= 1);
}

TEST_CASE("Grouped queries: tensor beyond the kv_heads goes to the query group, keys and values stay whole over it") {
  const Mesh mesh{{{"tensor.0", 2, "tensor"}, {"tensor.1", 2, "tensor"}}};
  LayerShape s;
  s.kv_heads = 2;
  s.q_group = 4;
  const Partitioned p = checked(differentiated(layer_block(s)), tables_for(mesh, 0, false), mesh);
  // The gradients of k and v are partial over tensor.1 and pass so through rotation and product: still one reduction.
  CHECK(lines(collectives(p, mesh)) ==
        "forward AR tensor.0,tensor.1 sum attention_proj bf16 4096\n"
        "forward AR tensor.0,tensor.1 sum mlp_out bf16 4096\n"
        "backward AR tensor.0,tensor.1 sum norm bf16 4096\n"
        "backward AR tensor.0,tensor.1 sum norm bf16 4096\n");
  CHECK(gradient_spec(p, "wq", mesh) == "[embed, kv_heads: tensor.0, q_group: tensor.1, head_dim]");
  CHECK(gradient_spec(p, "wk", mesh) == "[embed, kv_heads: tensor.0, head_dim] partial sum over tensor.1");
  CHECK(gradient_spec(p, "wv", mesh) == "[embed, kv_heads: tensor.0, head_dim] partial sum over tensor.1");
  CHECK(gradient_spec(p, "w_in", mesh) == "[embed, mlp: tensor.0,tensor.1]");
}

TEST_CASE("Grouped queries under sequence parallelism still gather and scatter four times each") {
  const Mesh mesh{{{"tensor.0", 2, "tensor"}, {"tensor.1", 2, "tensor"}}};
  LayerShape s;
  s.kv_heads = 2;
  s.q_group = 4;
  for (const ir::AttentionKind kind : {ir::AttentionKind::flash, ir::AttentionKind::unfused}) {
    s.attention = kind;
    const Partitioned p = checked(differentiated(layer_block(s)), tables_for(mesh, 0, true), mesh);
    const std::vector<Found> all = collectives(p, mesh);
    CAPTURE(lines(all));
    CHECK(count(all, "AG", "tensor.0,tensor.1", Phase::forward) == 2);
    CHECK(count(all, "RS", "tensor.0,tensor.1", Phase::forward) == 2);
    CHECK(count(all, "AG", "tensor.0,tensor.1", Phase::backward) == 4);
    CHECK(count(all, "RS", "tensor.0,tensor.1", Phase::backward) == 2);
    CHECK(all.size() == 10);
    CHECK(gradient_spec(p, "wk", mesh) == "[embed, kv_heads: tensor.0, head_dim] partial sum over tensor.1");
  }
}

TEST_CASE("Multi-query attention: the one kv head is whole everywhere and its weights' gradients partial over tensor") {
  const Mesh mesh{{kTensor4}};
  LayerShape s;
  s.kv_heads = 1;
  s.q_group = 8;
  ShardingTables tables = tables_for(mesh, 0, false);
  for (std::vector<Rule>* t : {&tables.activations, &tables.parameters, &tables.gradients, &tables.optimizer})
    (*t)[0].axis = ir::Axis::q_group;
  const Partitioned p = checked(differentiated(layer_block(s)), tables, mesh);
  const std::vector<Found> all = collectives(p, mesh);
  CHECK(count(all, "AR", "tensor", Phase::forward) == 2);
  CHECK(count(all, "AR", "tensor", Phase::backward) == 2);
  CHECK(all.size() == 4);
  CHECK(gradient_spec(p, "wk", mesh) == "[embed, kv_heads, head_dim] partial sum over tensor");
}

TEST_CASE("Learned positions: their table's gradient passes the batch's partial sums on and is reduced once a step") {
  const Mesh mesh{{kData2, kFsdp4}};
  LayerShape s;
  s.learned_positions = true;
  const Partitioned p = checked(differentiated(embedding_block(s)), tables_for(mesh, 0, false), mesh);
  CHECK(lines(collectives(p, mesh)) == "");
  CHECK(gradient_spec(p, "positions", mesh) == "[position, embed] partial sum over data,fsdp");
}

TEST_CASE(
    "Under sequence parallelism the positions' gradient is summed where the tokens lie, the vocab's is gathered for") {
  const Mesh mesh{{kTensor4}};
  LayerShape s;
  s.learned_positions = true;
  const Partitioned p = checked(differentiated(embedding_block(s)), tables_for(mesh, 0, true), mesh);
  // Every device holds a part of the vocab, so it needs all tokens' gradients (4096 / 4 here and three times that from
  // others); rows of positions are whole on every device, so each adds its own tokens' and the sum is partial.
  CHECK(lines(collectives(p, mesh)) ==
        "forward RS tensor seq embedded bf16 4096\n"
        "backward AG tensor seq dx_out bf16 1024\n");
  CHECK(gradient_spec(p, "positions", mesh) == "[position, embed] partial sum over tensor");
  CHECK(gradient_spec(p, "embedding", mesh) == "[vocab: tensor, embed]");
}

TEST_CASE("Ops that depend on global positions are told how their dims are split") {
  const Mesh mesh{{kTensor4}};
  LayerShape s;
  s.attention = ir::AttentionKind::unfused;
  ShardingTables tables;  // by hand: attention over the sequence of the queries
  tables.activations = {{ir::Axis::seq, ir::Place::none, {0}, "by hand"}};
  const Partitioned layer = checked(differentiated(layer_block(s)), tables, mesh);
  int ropes = 0, masks = 0;
  for (const ir::Op& op : layer.local.ops) {
    // (In backward, the gradient of the keys is a partial sum over the queries' shards, so it is whole in its own
    // sequence.)
    if (const ir::Rope* rope = std::get_if<ir::Rope>(&op.kind); rope != nullptr && op.phase == Phase::forward) {
      CHECK(rope->axes == MeshAxes{0});
      ++ropes;
    }
    if (const ir::MaskCausal* mask = std::get_if<ir::MaskCausal>(&op.kind)) {
      CHECK(mask->query_axes == MeshAxes{0});
      CHECK(mask->key_axes == MeshAxes{});
      ++masks;
    }
  }
  CHECK(ropes == 2);
  CHECK(masks >= 1);
  const Partitioned embedding = checked(differentiated(embedding_block(s)), tables_for(mesh, 0, false), mesh);
  for (const ir::Op& op : embedding.local.ops) {
    if (const ir::Lookup* lookup = std::get_if<ir::Lookup>(&op.kind)) CHECK(lookup->axes == MeshAxes{0});
    if (const ir::LookupGrad* grad = std::get_if<ir::LookupGrad>(&op.kind)) {
      CHECK(grad->axes == MeshAxes{0});
      CHECK(grad->rows == ir::Dim{{ir::Axis::vocab, 0}, 16, 64});
    }
  }
  const Partitioned head = checked(differentiated(head_block(s)), tables_for(mesh, 0, false), mesh);
  for (const ir::Op& op : head.local.ops) {
    if (const ir::Pick* pick = std::get_if<ir::Pick>(&op.kind)) CHECK(pick->axes == MeshAxes{0});
    if (const ir::PickGrad* grad = std::get_if<ir::PickGrad>(&op.kind)) {
      CHECK(grad->axes == MeshAxes{0});
      CHECK(grad->classes == ir::Dim{{ir::Axis::vocab, 0}, 16, 64});
    }
  }
}

TEST_CASE("On a mesh of one device a program stays as it is") {
  const Mesh mesh{{{"data", 1, "data"}, {"tensor", 1, "tensor"}}};
  const ir::Program layer = differentiated(layer_block(LayerShape()));
  const Partitioned p = checked(layer, tables_for(mesh, 3, true), mesh);
  REQUIRE(p.local.ops.size() == layer.ops.size());
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    CHECK(p.local.ops[i].kind == layer.ops[i].kind);
    CHECK(p.local.value(p.local.ops[i].results[0]).type == layer.value(layer.ops[i].results[0]).type);
  }
}

TEST_CASE("Every collective has a reason and the op that it serves") {
  const Mesh mesh{{kData2, kFsdp4, kTensor4}};
  const ir::Program layer = differentiated(layer_block(LayerShape()));
  const Partitioned p = checked(layer, tables_for(mesh, 3, true), mesh);
  for (std::size_t i = 0; i < p.local.ops.size(); ++i) {
    const ir::Op& op = p.local.ops[i];
    const bool added = std::holds_alternative<ir::AllGather>(op.kind) ||
                       std::holds_alternative<ir::AllReduce>(op.kind) ||
                       std::holds_alternative<ir::ReduceScatter>(op.kind) || std::holds_alternative<ir::Slice>(op.kind);
    CHECK(added == !p.reason[i].empty());
    REQUIRE(p.origin[i].valid());
    CHECK(layer.op(p.origin[i]).phase == op.phase);
  }
}

}  // namespace
}  // namespace tpusim::spmd::testing
