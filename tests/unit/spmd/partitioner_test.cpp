// Which collectives the five rules put in. Sizes: batch 8, seq 16, embed 32, 8 heads of 4, mlp 64, vocab 64, so a residual
// tensor has 8 x 16 x 32 = 4096 entries in the whole mesh.
#include <doctest/doctest.h>

#include "tests/unit/spmd/transformer_support.hpp"

namespace tpusim::spmd::testing {
namespace {

using ir::Phase;

Mesh mesh_of(std::vector<MeshAxis> axes) { return Mesh{std::move(axes)}; }
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

TEST_CASE("print everything") {
  const Mesh mesh = mesh_of({kData2, kFsdp4, kTensor4});
  for (const bool sp : {false, true}) {
    LayerShape s;
    for (const ir::Program& block : {differentiated(embedding_block(s)), differentiated(layer_block(s)), differentiated(head_block(s))})
      MESSAGE(block.name << " sp " << sp << "\n" << lines(collectives(checked(block, tables_for(mesh, 3, sp), mesh), mesh)));
  }
}

}  // namespace
}  // namespace tpusim::spmd::testing
