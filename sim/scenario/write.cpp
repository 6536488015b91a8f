#include "sim/scenario/write.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

// Whole numbers without a point, as people write sizes.
Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

template <class T>
void put(Json& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}
template <class E>
void put_name(Json& out, const char* key, const std::optional<E>& value) {
  if (value) out[key] = to_string(*value);
}
template <class Q>
void put_quantity(Json& out, const char* key, const std::optional<Q>& value) {
  if (value) out[key] = number(value->value());
}

Json model(const ModelSpec& m) {
  Json out = Json::object();
  if (!m.preset.empty()) out["preset"] = m.preset;
  if (!m.huggingface.empty()) out["huggingface"] = m.huggingface;
  put_name(out, "family", m.family);
  put(out, "layers", m.layers);
  put(out, "embed", m.embed);
  put(out, "heads", m.heads);
  put(out, "kv_heads", m.kv_heads);
  put(out, "head_dim", m.head_dim);
  put(out, "mlp", m.mlp);
  put(out, "gated_mlp", m.gated_mlp);
  put(out, "vocab", m.vocab);
  put(out, "tied_embeddings", m.tied_embeddings);
  put_name(out, "positions", m.positions);
  put(out, "max_positions", m.max_positions);
  if (m.rope_theta) out["rope_theta"] = number(*m.rope_theta);
  put_name(out, "norm", m.norm);
  put(out, "norm_eps", m.norm_eps);
  put_name(out, "activation", m.activation);
  put(out, "parallel_block", m.parallel_block);
  put(out, "bias", m.bias);
  put_quantity(out, "step_compute", m.step_compute);
  put_quantity(out, "example_bytes", m.example_bytes);
  if (out.size() == 1 && out.contains("preset")) return out["preset"];
  return out;
}

Json chip(const ChipSpec& c) {
  if (c.overrides.empty()) return c.preset;
  Json out = Json::object();
  if (!c.preset.empty()) out["preset"] = c.preset;
  for (const Override& o : c.overrides) {
    if (const auto* real = std::get_if<double>(&o.value)) out[o.name] = number(*real);
    if (const auto* flag = std::get_if<bool>(&o.value)) out[o.name] = *flag;
    if (const auto* text = std::get_if<std::string>(&o.value)) out[o.name] = *text;
  }
  return out;
}

Json cluster(const ClusterSpec& c) {
  Json out = Json::object();
  if (!c.preset.empty()) out["preset"] = c.preset;
  if (!c.chip.preset.empty() || !c.chip.overrides.empty()) out["chip"] = chip(c.chip);
  if (!c.topology.empty()) {
    std::string shape;
    for (const std::int64_t n : c.topology) shape += (shape.empty() ? "" : "x") + std::to_string(n);
    out["topology"] = shape;
    out["slices"] = c.slices;
    return out;
  }
  put(out, "hosts", c.hosts);
  put(out, "chips_per_host", c.chips_per_host);
  return out;
}

Json optimizer(const OptimizerSpec& o) {
  Json out = Json::object();
  out["name"] = to_string(o.name);
  const auto put_real = [&](const char* key, double value) {
    if (optimizer_key_applies(key, o.name)) out[key] = number(value);
  };
  put_real("momentum", o.momentum);
  put_real("beta1", o.beta1);
  put_real("beta2", o.beta2);
  put_real("epsilon", o.epsilon);
  put_real("weight_decay", o.weight_decay);
  return out;
}

Json training(const TrainingSpec& t, const ModelSpec& m) {
  Json out = Json::object();
  const auto applies = [&m](std::string_view key) { return training_key_applies(key, m); };
  out["global_batch"] = t.global_batch;
  if (!applies("optimizer")) return out;
  put(out, "sequence_length", t.sequence_length);
  put(out, "microbatch", t.microbatch);
  out["compute_dtype"] = to_string(t.compute_dtype);
  out["parameter_dtype"] = to_string(t.parameter_dtype);
  out["gradient_dtype"] = to_string(t.gradient_dtype);
  out["optimizer"] = optimizer(t.optimizer);
  out["learning_rate"] = number(t.learning_rate);
  out["clip_norm"] = number(t.clip_norm);
  out["remat"] = to_string(t.remat);
  if (applies("attention")) out["attention"] = to_string(t.attention);
  if (applies("flops_convention")) out["flops_convention"] = to_string(t.flops_convention);
  return out;
}

Json strategies(const StrategySpecs& s, const std::vector<MeshAxis>& mesh) {
  Json out = Json::object();
  for (const MeshAxis& axis : mesh) {
    Json one = Json::object();
    if (axis.name == "data") {
      one["overlap"] = s.data.overlap;
      one["bucket_bytes"] = s.data.bucket_bytes;
      one["compression"] = to_string(s.data.compression);
    } else if (axis.name == "fsdp") {
      one["zero_stage"] = s.fsdp.zero_stage;
      one["prefetch"] = s.fsdp.prefetch;
    } else if (axis.name == "tensor") {
      one["sequence_parallel"] = s.tensor.sequence_parallel;
    } else if (axis.name == "pipeline") {
      one["schedule"] = to_string(s.pipeline.schedule);
      one["virtual_stages"] = s.pipeline.virtual_stages;
    } else {
      internal_error(__FILE__, __LINE__, "known axis", "no strategy is called " + axis.name);
    }
    out[axis.name] = std::move(one);
  }
  return out;
}

Json table(const std::vector<ShardingRule>& rules) {
  Json out = Json::object();
  for (const ShardingRule& r : rules) out[r.key] = r.mesh_axes;
  return out;
}

Json sharding(const ShardingSpec& s) {
  Json out = Json::object();
  out["parameters"] = table(s.parameters);
  out["gradients"] = table(s.gradients);
  out["optimizer"] = table(s.optimizer);
  out["activations"] = table(s.activations);
  return out;
}

Json input(const InputSpec& in) {
  Json storage = Json::object();
  put_quantity(storage, "bandwidth", in.storage.bandwidth);
  storage["latency"] = number(in.storage.latency.value());
  storage["shared_by"] = to_string(in.storage.shared_by);
  Json stages = Json::array();
  for (const InputStage& s : in.stages) {
    Json one = Json::object();
    one["name"] = s.name;
    one["threads"] = s.threads;
    one["time_per_example"] = number(s.time_per_example.value());
    stages.push_back(std::move(one));
  }
  Json out = Json::object();
  out["storage"] = std::move(storage);
  out["stages"] = std::move(stages);
  out["prefetch"] = in.prefetch;
  put_quantity(out, "host_to_chip", in.host_to_chip);
  return out;
}

}  // namespace

std::string to_json(const Scenario& s) {
  Json out = Json::object();
  out["version"] = 1;
  if (!s.name.empty()) out["name"] = s.name;
  out["model"] = model(s.model);
  out["cluster"] = cluster(s.cluster);
  if (!s.mesh.empty()) {
    Json axes = Json::object();
    for (const MeshAxis& a : s.mesh) axes[a.name] = a.size;
    out["mesh"] = std::move(axes);
  }
  out["training"] = training(s.training, s.model);
  out["strategies"] = strategies(s.strategies, s.mesh);
  out["sharding"] = sharding(s.sharding);
  if (s.input) out["input"] = input(*s.input);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tpusim::scenario
