// Small decoder blocks and sharding tables for the partitioner's tests, and a reader of what it put in.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/compose.hpp"
#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd::testing {

struct LayerShape {
  std::int64_t batch = 8, seq = 16, embed = 32, kv_heads = 8, q_group = 1, head_dim = 4, mlp = 64;
  std::int64_t vocab = 64, valid_vocab = 64;
  bool gated = false;
  bool parallel_block = false;
  bool learned_positions = false;
  bool layer_norm = false;  // with a bias; else rms
  bool bias = false;        // on every projection
  ir::AttentionKind attention = ir::AttentionKind::flash;
  ir::DType compute = ir::DType::bf16;
};
ir::Program embedding_block(const LayerShape& shape);
ir::Program layer_block(const LayerShape& shape);
ir::Program head_block(const LayerShape& shape);
ir::Program differentiated(ir::Program program, ir::Remat remat = ir::Remat::none);

// Tables as the strategies write them. `zero_stage` 0: fsdp is data parallelism alone. Names of mesh axes that the mesh
// lacks are left out.
ShardingTables tables_for(const Mesh& mesh, int zero_stage, bool sequence_parallel);

// "AR tensor sum attention_proj bf16[8,16,32]": kind, mesh axes, (kind of reduction or dim,) label and local operand
// type.
struct Found {
  std::string kind;    // "AG", "RS", "AR"
  std::string axes;    // "fsdp,tensor"
  std::string detail;  // dim, or "sum", "max"
  std::string label;
  ir::DType dtype;
  std::int64_t elements = 0;  // of the local operand
  ir::Phase phase;
};
std::vector<Found> collectives(const Partitioned& partitioned, const Mesh& mesh);
// How many of `kind` over `axes` ("" any) in a phase whose operand has more than `above` elements.
int count(const std::vector<Found>& all, const std::string& kind, const std::string& axes, ir::Phase phase,
          std::int64_t above = 0);
std::string lines(const std::vector<Found>& all);  // for messages

}  // namespace tpusim::spmd::testing
