// The end of a parameter's life in a step, under the ZeRO stages. Parameter w_in [embed 32, mlp 64] on a mesh of data
// 2, fsdp 4, tensor 4.
#include <doctest/doctest.h>

#include "tests/unit/spmd/transformer_support.hpp"

namespace tpusim::spmd::testing {
namespace {

const Mesh kMesh{{{"data", 2, "data"}, {"fsdp", 4, "fsdp"}, {"tensor", 4, "tensor"}}};

struct Planned {
  ParameterPlan plan;
  std::string reduce, update;  // their collectives
  std::string spec(const PartitionSpec& s) const {
    return to_string(s, plan.update.local.value(plan.parameter).type.shape, kMesh);
  }
};

Planned planned(int zero_stage, ir::Optimizer kind = ir::Optimizer::adamw, const char* name = "w_in") {
  const ir::Program layer = differentiated(layer_block(LayerShape()));
  const ShardingTables tables = tables_for(kMesh, zero_stage, false);
  const Partitioned p = partition(layer, tables, kMesh);
  ir::OptimizerSettings settings;
  settings.kind = kind;
  Planned out;
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    ir::Parameter parameter = layer.parameters[i];
    if (parameter.name != name) continue;
    parameter.input_dims = {{ir::Axis::embed, 0}};
    parameter.output_dims = {{ir::Axis::mlp, 0}};
    const PartitionSpec& gradient = p.specs[static_cast<std::size_t>(p.local.parameters[i].gradient.index)];
    out.plan = plan_parameter(parameter, layer.value(parameter.value).type, gradient, settings, ir::DType::f32,
                              ir::DType::f32, tables, kMesh);
  }
  for (const Partitioned* program : {&out.plan.reduce, &out.plan.update})
    for (const std::string& line : ir::verify(program->local)) FAIL_CHECK(line);
  out.reduce = lines(collectives(out.plan.reduce, kMesh));
  out.update = lines(collectives(out.plan.update, kMesh));
  return out;
}

TEST_CASE("Without ZeRO the gradient is all-reduced once a step and the update is local") {
  const Planned p = planned(0);
  CHECK(p.reduce == "update AR data,fsdp sum gradient f32 512\n");  // 32 x 64 / 4
  CHECK(p.update == "");
  CHECK(p.spec(p.plan.state_spec) == "[embed, mlp: tensor]");
  CHECK(p.plan.norm_axes == MeshAxes{2});
  CHECK(p.plan.slots.size() == 2);
  CHECK(p.plan.new_slots.size() == 2);
}

TEST_CASE("ZeRO stage 1 scatters the gradient once a step and gathers the new parameter") {
  const Planned p = planned(1);
  CHECK(p.reduce ==
        "update RS fsdp embed gradient f32 512\n"
        "update AR data sum gradient f32 128\n");
  CHECK(p.update == "update AG fsdp embed new p f32 128\n");
  CHECK(p.spec(p.plan.parameter_spec) == "[embed, mlp: tensor]");
  CHECK(p.spec(p.plan.state_spec) == "[embed: fsdp, mlp: tensor]");
  CHECK(p.plan.norm_axes == MeshAxes{1, 2});
  CHECK(p.plan.update.local.value(p.plan.new_parameter).type.shape ==
        p.plan.update.local.value(p.plan.parameter).type.shape);
  // What is reduced is what the update takes.
  CHECK(p.plan.reduce.local.value(p.plan.reduce.local.x_out).type.shape ==
        p.plan.update.local.value(p.plan.gradient).type.shape);
}

TEST_CASE("ZeRO stage 2 has scattered gradients already; over data they are summed once a step") {
  const Planned p = planned(2);
  CHECK(p.reduce == "update AR data sum gradient f32 128\n");
  CHECK(p.update == "update AG fsdp embed new p f32 128\n");
}

TEST_CASE("ZeRO stage 3 updates each shard where it lies") {
  const Planned p = planned(3);
  CHECK(p.reduce == "update AR data sum gradient f32 128\n");
  CHECK(p.update == "");
  CHECK(p.spec(p.plan.parameter_spec) == "[embed: fsdp, mlp: tensor]");
}

TEST_CASE("Adafactor's means over split dims cost small all-reduces, never the parameter") {
  const Planned p = planned(3, ir::Optimizer::adafactor);
  for (const Found& f : collectives(p.plan.update, kMesh)) {
    CAPTURE(f.label);
    CHECK(f.kind == "AR");
    CHECK(f.elements <= 16);  // a row mean has 32 / 4 entries a device, a column mean 64 / 4
  }
  CHECK(p.update != "");
}

}  // namespace
}  // namespace tpusim::spmd::testing
