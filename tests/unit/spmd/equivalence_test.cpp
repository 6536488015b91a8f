// A partitioned program computes what the global one does: every value of forward and backward, on every device, after
// the reduction that its spec promises. Tolerance 1e-9 of the largest entry: double precision, sums in another order.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/spmd/evaluate_support.hpp"
#include "tests/unit/spmd/transformer_support.hpp"

namespace tpusim::spmd::testing {
namespace {

struct Case {
  Mesh mesh;
  LayerShape shape;
  int zero_stage = 0;
  bool sequence_parallel = false;
  ir::Remat remat = ir::Remat::none;
  std::string name;
};

// Meshes of data, fsdp and tensor (in two sub-axes where heads are grouped) with at most 16 devices.
Case random_case(Random& random) {
  Case c;
  const auto pick = [&random](std::int64_t most) {
    const std::int64_t size = std::int64_t{1} << random.below(3);
    return size > most ? most : size;
  };
  const std::int64_t data = pick(4), fsdp = pick(16 / data), tensor = pick(16 / data / fsdp);
  const bool grouped = random.below(2) == 0;
  c.mesh.axes = {{"data", data, "data"}, {"fsdp", fsdp, "fsdp"}};
  if (grouped && tensor == 4) {
    c.mesh.axes.push_back({"tensor.0", 2, "tensor"});
    c.mesh.axes.push_back({"tensor.1", 2, "tensor"});
  } else {
    c.mesh.axes.push_back({"tensor", tensor, "tensor"});
  }
  if (random.below(3) == 0) std::reverse(c.mesh.axes.begin(), c.mesh.axes.begin() + 2);
  LayerShape& s = c.shape;
  s.batch = 16;
  s.seq = 4;
  s.embed = 8;
  s.kv_heads = grouped ? 2 : 4;
  s.q_group = grouped ? 2 : 1;
  s.head_dim = 2;
  s.mlp = 8;
  s.vocab = 8;
  s.valid_vocab = 7;
  s.gated = random.below(2) == 0;
  s.parallel_block = random.below(2) == 0;
  s.learned_positions = random.below(2) == 0;
  s.layer_norm = random.below(2) == 0;
  s.bias = random.below(2) == 0;
  s.attention = random.below(2) == 0 ? ir::AttentionKind::flash : ir::AttentionKind::unfused;
  s.compute = ir::DType::f64;
  c.zero_stage = static_cast<int>(random.below(4));
  c.sequence_parallel = random.below(2) == 0;
  c.remat = static_cast<ir::Remat>(random.below(3));
  c.name = "data " + std::to_string(data) + " fsdp " + std::to_string(fsdp) + " tensor " + std::to_string(tensor) +
           (grouped ? " grouped" : "") + " zero " + std::to_string(c.zero_stage) +
           (c.sequence_parallel ? " sequence-parallel" : "") + (s.gated ? " gated" : "") +
           (s.parallel_block ? " parallel block" : "") + (s.learned_positions ? " learned positions" : "") +
           (s.attention == ir::AttentionKind::flash ? " flash" : " unfused") + " remat " +
           std::to_string(static_cast<int>(c.remat));
  return c;
}

TEST_CASE("Sharded blocks compute every value of the global blocks") {
  Random random(2026);
  for (int round = 0; round < 60; ++round) {
    const Case c = random_case(random);
    CAPTURE(c.name);
    const ShardingTables tables = tables_for(c.mesh, c.zero_stage, c.sequence_parallel);
    for (const ir::Program& block :
         {differentiated(embedding_block(c.shape), c.remat), differentiated(layer_block(c.shape), c.remat),
          differentiated(head_block(c.shape), c.remat)}) {
      CAPTURE(block.name);
      const Partitioned p = partition(block, tables, c.mesh);
      for (const std::string& line : ir::verify(p.local)) FAIL_CHECK(line);
      const std::int64_t ids = block.name == "embedding" && c.shape.learned_positions ? 4 : 7;  // 4 rows of positions
      CHECK(compare(block, p, c.mesh, random, ids) == "");
    }
  }
}

TEST_CASE("Any tables give the same values, only other collectives") {
  // Random rules: every logical axis over random mesh axes, in random order, in every table.
  Random random(7);
  const Mesh mesh{{{"a", 2, "a"}, {"b", 2, "b"}, {"c", 2, "c"}}};
  static const ir::Axis kAxes[] = {ir::Axis::batch,    ir::Axis::seq, ir::Axis::embed, ir::Axis::kv_heads,
                                   ir::Axis::head_dim, ir::Axis::mlp, ir::Axis::vocab};
  for (int round = 0; round < 60; ++round) {
    ShardingTables tables;
    for (std::vector<Rule>* table : {&tables.activations, &tables.parameters, &tables.gradients, &tables.optimizer})
      for (int rule = 0; rule < 6; ++rule) {
        MeshAxes axes;
        for (std::uint8_t a = 0; a < 3; ++a) {
          const std::uint8_t axis = static_cast<std::uint8_t>(random.below(3));
          if (!axes.contains(axis)) axes.push_back(axis);
          if (random.below(2) == 0) break;
        }
        const ir::Place place = random.below(2) == 0 ? ir::Place::none : static_cast<ir::Place>(1 + random.below(4));
        table->push_back({kAxes[random.below(7)], place, axes, "random"});
      }
    LayerShape s = random_case(random).shape;
    s.batch = 8;
    for (const ir::Program& block :
         {differentiated(embedding_block(s)), differentiated(layer_block(s)), differentiated(head_block(s))}) {
      CAPTURE(block.name);
      CAPTURE(round);
      const Partitioned p = partition(block, tables, mesh);
      for (const std::string& line : ir::verify(p.local)) FAIL_CHECK(line);
      const std::int64_t ids = block.name == "embedding" && s.learned_positions ? 4 : 7;
      CHECK(compare(block, p, mesh, random, ids) == "");
    }
  }
}

}  // namespace
}  // namespace tpusim::spmd::testing
