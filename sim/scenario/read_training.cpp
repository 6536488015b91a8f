#include <algorithm>
#include <string>
#include <vector>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/contract.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

const std::vector<std::string>& planned_dtypes() {
  static const std::vector<std::string> names = {"f16",     "fp16",     "float16",       "fp8", "int8",
                                                 "f8_e4m3", "fp8_e4m3", "float8_e4m3fn", "fp4", "int4"};
  return names;
}

// A number of the optimizer: in its object, or the default where it has a meaning.
void read_optimizer_number(ObjectReader& reader, std::string_view key, Optimizer name, double& out, RealRange range) {
  if (optimizer_key_applies(key, name))
    reader.read(key, out, range);
  else
    reader.refuse(key, fmt::format("has no meaning for {}", to_string(name)));
}

void read_optimizer(const Json* value, Context& context, OptimizerSpec& out) {
  const std::string where = "/training/optimizer";
  const bool is_object = value != nullptr && value->is_object();
  if (!is_object) {
    // A name alone (or nothing): read it as {"name": ...} so that the defaults of the rest are noted.
    Json whole = Json::object();
    if (value != nullptr) whole["optimizer"] = *value;
    ObjectReader name(&whole, "/training", "/training", context);
    name.read_name("optimizer", out.name);
    if (!context.clean(where)) return;
  }
  const Json none = Json::object();
  ObjectReader reader(is_object ? value : &none, where, where, context);
  if (is_object) {
    reader.read_name("name", out.name);
    if (!context.clean(where + "/name")) return;
  }
  // Adafactor's own eps_1 (Shazeer and Stern 2018, section 4) is of a squared gradient, hence so much smaller.
  if (out.name == Optimizer::adafactor) out.epsilon = 1e-30;
  const RealRange beta{0, 1 - 1e-12, false};
  read_optimizer_number(reader, "momentum", out.name, out.momentum, beta);
  read_optimizer_number(reader, "beta1", out.name, out.beta1, beta);
  read_optimizer_number(reader, "beta2", out.name, out.beta2, beta);
  read_optimizer_number(reader, "epsilon", out.name, out.epsilon, {0, 1, true});
  read_optimizer_number(reader, "weight_decay", out.name, out.weight_decay, {0, 1e3, false});
}

bool has_strategy(const std::vector<MeshAxis>& mesh, std::string_view axis) {
  return std::any_of(mesh.begin(), mesh.end(), [axis](const MeshAxis& a) { return a.name == axis; });
}

}  // namespace

bool training_key_applies(std::string_view key, const ModelSpec& model) {
  if (model.family == Family::fixed) return key == "global_batch";
  if (model.family == Family::mlp) return key != "attention" && key != "flops_convention";
  return true;
}

bool optimizer_key_applies(std::string_view key, Optimizer optimizer) {
  const bool adam = optimizer == Optimizer::adam || optimizer == Optimizer::adamw;
  if (key == "momentum") return optimizer == Optimizer::momentum;
  if (key == "beta1" || key == "beta2") return adam;
  if (key == "epsilon") return adam || optimizer == Optimizer::adafactor;
  if (key == "weight_decay") return optimizer == Optimizer::adamw;
  return true;
}

void read_training(const Json* value, const ModelSpec& model, Context& context, TrainingSpec& out) {
  ObjectReader reader(value, "/training", "/training", context);
  if (value == nullptr) {
    context.sink.error(Code::missing_key, "", "\"training\" is missing: at least its \"global_batch\"", "training");
    return;
  }
  reader.require("global_batch", "the examples in one step of the whole job");
  reader.read("global_batch", out.global_batch, {1, kMaxBatch});
  if (model.family)
    for (const std::string& key : section("/training").keys)
      if (!training_key_applies(key, model))
        reader.refuse(key, fmt::format("has no meaning for family {}", to_string(*model.family)));
  if (model.family == Family::fixed) return;

  reader.read("sequence_length", out.sequence_length, {1, kMaxSequence});
  reader.read("microbatch", out.microbatch, {1, kMaxBatch});
  reader.read_name("compute_dtype", out.compute_dtype, planned_dtypes());
  reader.read_name("parameter_dtype", out.parameter_dtype, planned_dtypes());
  reader.read_name("gradient_dtype", out.gradient_dtype, planned_dtypes());
  read_optimizer(reader.find("optimizer"), context, out.optimizer);
  reader.read("learning_rate", out.learning_rate, {0, 1e6, true});
  const Json* clip = reader.find("clip_norm");
  if (clip != nullptr && clip->is_null())
    out.clip_norm = 0;
  else
    reader.read("clip_norm", out.clip_norm, {0, 1e30, false});
  reader.read_name("remat", out.remat);
  if (training_key_applies("attention", model)) {
    reader.read_name("attention", out.attention);
    reader.read_name("flops_convention", out.flops_convention);
  } else if (out.remat == Remat::selective) {
    context.sink.error(Code::conflict, "/training/remat",
                       "selective remat recomputes attention's scores, and an MLP has none", "full", {"none", "full"});
  }
}

void read_strategies(const Json* value, const std::vector<MeshAxis>& mesh, Context& context, StrategySpecs& out) {
  ObjectReader reader(value, "/strategies", "/strategies", context);
  // A strategy without its axis would be ignored, so it is an error; not where the mesh itself could not be read.
  const bool mesh_known = context.clean("/mesh") && !mesh.empty();
  const auto section_of = [&](std::string_view axis) -> const Json* {
    const Json* v = reader.find(axis);
    if (v == nullptr || !mesh_known || has_strategy(mesh, axis)) return v;
    std::vector<std::string> axes;
    for (const MeshAxis& a : mesh) axes.push_back(a.name);
    context.sink.error(Code::conflict, reader.at(axis),
                       fmt::format("the mesh has no axis \"{}\", so this would be ignored", axis), {}, axes);
    return v;
  };
  for (const char* planned : {"context", "expert"})
    if (reader.find(planned) != nullptr)
      context.sink.error(Code::not_in_version, reader.at(planned),
                         fmt::format("the strategy \"{}\" is not in this version", planned), {}, mesh_axes());
  // Defaults are noted only for axes that the mesh has.
  const Json none = Json::object();
  const auto read_axis = [&](std::string_view axis, auto&& read) {
    const Json* v = section_of(axis);
    if (v == nullptr && !has_strategy(mesh, axis)) return;
    const std::string where = pointer_to("/strategies", axis);
    ObjectReader r(v != nullptr ? v : &none, where, where, context);
    read(r);
  };
  read_axis("data", [&](ObjectReader& r) {
    r.read("overlap", out.data.overlap);
    r.read_bytes("bucket_bytes", out.data.bucket_bytes, {1, std::int64_t{1} << 40});
    r.read_name("compression", out.data.compression, {"bf16", "fp8", "int8", "topk", "powersgd", "1bit"});
  });
  read_axis("fsdp", [&](ObjectReader& r) {
    r.read("zero_stage", out.fsdp.zero_stage, {1, 3});
    r.read("prefetch", out.fsdp.prefetch, {0, kMaxBlockPrefetch});
    if (out.fsdp.prefetch > 1) {
      context.sink.error(Code::not_in_version, r.at("prefetch"),
                         "gathers that run more than one block ahead are not in this version", "1", {"0", "1"});
      out.fsdp.prefetch = 1;
    }
  });
  read_axis("tensor", [&](ObjectReader& r) { r.read("sequence_parallel", out.tensor.sequence_parallel); });
  read_axis("pipeline", [&](ObjectReader& r) {
    r.read_name("schedule", out.pipeline.schedule, {"interleaved", "zb-h1", "zero_bubble", "dualpipe", "chimera"});
    r.read("virtual_stages", out.pipeline.virtual_stages, {1, kMaxLayers});
    if (out.pipeline.virtual_stages > 1) {
      context.sink.error(Code::not_in_version, r.at("virtual_stages"),
                         "more than one virtual stage is not in this version", "1");
      out.pipeline.virtual_stages = 1;
    }
  });
}

}  // namespace tpusim::scenario
