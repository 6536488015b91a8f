// From names to things: the scenario's presets, chips, mesh axes and rules looked up in the catalogues.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

#include "models/huggingface.hpp"
#include "models/presets.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/session/job.hpp"
#include "sim/session/session.hpp"
#include "topologies/catalogue.hpp"
#include "topologies/chip_fields.hpp"

namespace tpusim::session {

namespace {

template <class T>
void take(const std::optional<T>& from, T& to) {
  if (from) to = *from;
}

models::Positions convert(scenario::Positions p) {
  return static_cast<models::Positions>(p);
}
static_assert(static_cast<int>(scenario::Positions::none) == static_cast<int>(models::Positions::none));
models::Norm convert(scenario::Norm n) {
  return n == scenario::Norm::rms ? models::Norm::rms : models::Norm::layer;
}
ir::Activation convert(scenario::Activation a) {
  switch (a) {
    case scenario::Activation::silu:
      return ir::Activation::silu;
    case scenario::Activation::gelu:
      return ir::Activation::gelu;
    case scenario::Activation::relu:
      return ir::Activation::relu;
  }
  return ir::Activation::silu;
}
ir::DType convert(scenario::DType d) {
  switch (d) {
    case scenario::DType::bf16:
      return ir::DType::bf16;
    case scenario::DType::f32:
      return ir::DType::f32;
    case scenario::DType::f64:
      return ir::DType::f64;
  }
  return ir::DType::f32;
}

std::optional<std::string> read_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) return std::nullopt;
  std::string text(std::size_t{1} << 20, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::optional<models::ModelConfig> base_config(const scenario::ModelSpec& spec, const std::string& folder,
                                               DiagnosticSink& sink) {
  if (!spec.preset.empty()) {
    if (const auto preset = models::find_preset(spec.preset)) return preset->config;
    const std::vector<std::string> names = models::preset_names();
    sink.error(Code::unknown_name, "/model/preset", fmt::format("there is no model preset \"{}\"", spec.preset),
               nearest(spec.preset, names), nearest_choices(spec.preset, names));
    return std::nullopt;
  }
  if (!spec.huggingface.empty()) {
    const std::string path =
        spec.huggingface.front() == '/' || folder.empty() ? spec.huggingface : folder + "/" + spec.huggingface;
    const auto text = read_file(path);
    if (!text) {
      sink.error(Code::io, "/model/huggingface", fmt::format("cannot read {}", path));
      return std::nullopt;
    }
    return models::import_huggingface(*text, spec.huggingface, sink);
  }
  models::ModelConfig config;
  if (spec.family == scenario::Family::mlp) {
    config.family = models::Family::mlp;
    config.gated_mlp = false;
    config.activation = ir::Activation::relu;
  } else if (spec.family == scenario::Family::fixed) {
    config.family = models::Family::fixed;
  }
  return config;
}

std::optional<models::ModelConfig> model_config(const scenario::ModelSpec& spec, std::int64_t sequence_length,
                                                const std::string& folder, DiagnosticSink& sink) {
  std::optional<models::ModelConfig> found = base_config(spec, folder, sink);
  if (!found) return std::nullopt;
  models::ModelConfig& c = *found;
  const bool from_scratch = spec.preset.empty() && spec.huggingface.empty();
  take(spec.layers, c.layers);
  take(spec.embed, c.embed);
  take(spec.mlp, c.mlp);
  take(spec.vocab, c.vocab);
  take(spec.heads, c.heads);
  // A preset's kv_heads and head_dim follow overridden heads and embed, unless they are given too.
  if (spec.heads && (from_scratch || !spec.kv_heads))
    c.kv_heads = from_scratch ? c.heads : std::min(c.kv_heads, c.heads);
  take(spec.kv_heads, c.kv_heads);
  if (from_scratch && c.family == models::Family::transformer && c.heads > 0)
    c.head_dim = std::max<std::int64_t>(1, c.embed / c.heads);
  take(spec.head_dim, c.head_dim);
  take(spec.gated_mlp, c.gated_mlp);
  take(spec.tied_embeddings, c.tied_embeddings);
  take(spec.parallel_block, c.parallel_block);
  take(spec.bias, c.bias);
  take(spec.norm_eps, c.norm_eps);
  take(spec.rope_theta, c.rope_theta);
  take(spec.step_compute, c.step_compute);
  take(spec.example_bytes, c.example_bytes);
  if (spec.positions) c.positions = convert(*spec.positions);
  if (spec.norm) c.norm = convert(*spec.norm);
  if (spec.activation) c.activation = convert(*spec.activation);
  if (from_scratch) c.max_positions = sequence_length;
  take(spec.max_positions, c.max_positions);
  if (c.name.empty()) c.name = spec.preset.empty() ? std::string(models::to_string(c.family)) : spec.preset;
  models::check(c, "/model", sink);
  if (c.family == models::Family::transformer && c.positions == models::Positions::learned &&
      sequence_length > c.max_positions)
    sink.error(
        Code::bad_value, "/training/sequence_length",
        fmt::format("{} tokens do not fit the {} learned positions of the model", sequence_length, c.max_positions),
        std::to_string(c.max_positions));
  return found;
}

// An override in its key's unit: a number as it stands, text as a quantity ("900 GB/s"). nullopt after a fault.
std::optional<double> override_value(const scenario::Override& o, DiagnosticSink& sink) {
  const std::string pointer = "/cluster/chip/" + o.name;
  const double* number = std::get_if<double>(&o.value);
  if (number != nullptr) return *number;
  const auto* text = std::get_if<std::string>(&o.value);
  std::vector<std::string> names;
  const std::vector<topologies::OverrideKey> keys = topologies::override_keys();
  for (const topologies::OverrideKey& key : keys) names.push_back(key.name);
  const auto key = std::find(names.begin(), names.end(), o.name);
  if (key == names.end()) {
    sink.error(Code::unknown_key, pointer, fmt::format("a chip has no \"{}\"", o.name), nearest(o.name, names),
               nearest_choices(o.name, names));
    return std::nullopt;
  }
  const auto take_quantity = [&](auto parsed) -> std::optional<double> {
    if (parsed) return parsed.value->value();
    sink.error(parsed.code, pointer, parsed.message, parsed.suggestion, parsed.choices);
    return std::nullopt;
  };
  const std::string& unit = keys[static_cast<std::size_t>(key - names.begin())].unit;
  if (text != nullptr && unit == "B/s") return take_quantity(parse_bytes_per_second(*text));
  if (text != nullptr && unit == "FLOP/s") return take_quantity(parse_flops_per_second(*text));
  if (text != nullptr && unit == "B") return take_quantity(parse_bytes(*text));
  if (text != nullptr && unit == "s") return take_quantity(parse_seconds(*text));
  sink.error(Code::wrong_type, pointer, fmt::format("a number in {} is expected", unit == "1" ? "no unit" : unit));
  return std::nullopt;
}

// A chip without a preset: every needed fact is given, and is put in as an override of this blank one. A cluster with a
// slice shape makes it a chip with torus links, whose axes are open, since no rule says when they close; one of hosts a
// chip with a port into its host's switch. nullopt after naming the facts that are missing.
std::optional<topologies::Chip> whole_chip(const scenario::ClusterSpec& spec, DiagnosticSink& sink) {
  topologies::Chip chip;
  chip.name = "chip of the scenario";
  chip.kind = spec.topology.empty() ? topologies::ChipKind::gpu : topologies::ChipKind::tpu;
  const auto given = [&](std::string_view key) {
    for (const scenario::Override& o : spec.chip.overrides)
      if (o.name == key) return true;
    return false;
  };
  std::vector<std::string> missing;
  topologies::for_each_fact(chip, [&](const topologies::FieldInfo& info, const auto& member) {
    if (topologies::is_required(member) && !given(info.key)) missing.emplace_back(info.key);
  });
  if (!given("peak_bf16") && !given("peak_f32")) missing.emplace_back("peak_bf16 or peak_f32");
  if (!given("host_nic_rate") && !given("chip_nic_rate")) missing.emplace_back("host_nic_rate or chip_nic_rate");
  if (given("host_nic_rate") && given("chip_nic_rate"))
    sink.error(Code::conflict, "/cluster/chip/chip_nic_rate", "a chip has host_nic_rate or chip_nic_rate, not both");
  if (!missing.empty()) {
    std::string list;
    for (const std::string& key : missing) list += (list.empty() ? "" : ", ") + key;
    sink.error(Code::missing_key, "/cluster/chip",
               "a chip without a preset needs all its facts; missing: " + list + "; or name a preset to start from");
    // Perhaps the preset is there under another name.
    std::vector<std::string> names = {"preset"};
    for (const topologies::OverrideKey& key : topologies::override_keys()) names.push_back(key.name);
    for (const scenario::Override& o : spec.chip.overrides)
      if (std::find(names.begin(), names.end(), o.name) == names.end())
        sink.error(Code::unknown_key, "/cluster/chip/" + o.name, "a chip has no \"" + o.name + "\"",
                   nearest(o.name, names), nearest_choices(o.name, names));
    return std::nullopt;
  }
  chip.slices.dimensions = static_cast<int>(spec.topology.size());
  chip.slices.pod = spec.topology;
  chip.slices.max_chips = std::accumulate(spec.topology.begin(), spec.topology.end(), std::int64_t{1},
                                          std::multiplies<>());  // the reader has bounded it
  if (!spec.topology.empty()) chip.slices.listed = {spec.topology};
  chip.slices.source = "scenario";
  chip.slices.confidence = topologies::Confidence::scenario;
  return chip;
}

std::optional<topologies::Chip> chip_of(const scenario::ClusterSpec& spec, const std::string& name,
                                        DiagnosticSink& sink) {
  const std::vector<std::string> names = topologies::chip_names();
  std::optional<topologies::Chip> chip = name.empty() ? whole_chip(spec, sink) : topologies::find_chip(name);
  if (!chip && name.empty()) return std::nullopt;
  if (!chip) {
    sink.error(Code::unknown_name, "/cluster/chip/preset", fmt::format("there is no chip \"{}\"", name),
               nearest(name, names), nearest_choices(name, names));
    return std::nullopt;
  }
  std::vector<topologies::Override> overrides;
  for (const scenario::Override& o : spec.chip.overrides)
    if (const std::optional<double> value = override_value(o, sink)) overrides.push_back({o.name, *value});
  return topologies::apply_overrides(std::move(*chip), overrides, "/cluster/chip", sink);
}

std::optional<topologies::Cluster> cluster_of(const scenario::ClusterSpec& spec, DiagnosticSink& sink) {
  std::string chip_name = spec.chip.preset;
  topologies::ClusterRequest request;
  request.chips_per_host = spec.chips_per_host;
  if (!spec.preset.empty()) {
    Registry<topologies::ClusterPreset> presets;
    topologies::register_builtin(presets);
    const auto* entry = presets.find(spec.preset);
    if (entry == nullptr) {
      sink.error(Code::unknown_name, "/cluster/preset", fmt::format("there is no cluster preset \"{}\"", spec.preset),
                 nearest(spec.preset, presets.names()), nearest_choices(spec.preset, presets.names()));
      return std::nullopt;
    }
    chip_name = entry->value.chip;
    if (!request.chips_per_host) request.chips_per_host = entry->value.chips_per_host;
  }
  std::optional<topologies::Chip> chip = chip_of(spec, chip_name, sink);
  if (!chip || sink.has_errors()) return std::nullopt;
  const bool torus = chip->kind == topologies::ChipKind::tpu;
  request.chip = std::move(*chip);
  request.slice_shape = spec.topology;
  request.slices = spec.slices;
  request.hosts = spec.hosts.value_or(torus ? 0 : 1);
  if (torus && request.slice_shape.empty() && !spec.hosts)  // nothing said: one chip
    request.slice_shape.assign(static_cast<std::size_t>(std::max(request.chip.slices.dimensions, 1)), 1);
  return topologies::build(request, sink);
}

std::optional<strategies::HandRule> hand_rule(ir::Table table, std::string_view name,
                                              const scenario::ShardingRule& rule, DiagnosticSink& sink) {
  strategies::HandRule out;
  out.table = table;
  out.mesh_axes = rule.mesh_axes;
  out.pointer = fmt::format("/sharding/{}/{}", name, rule.key);
  bool found = false;
  for (int a = 0; a < ir::kAxisCount; ++a)
    if (ir::name_of(static_cast<ir::Axis>(a)) == rule.axis()) out.axis = static_cast<ir::Axis>(a), found = true;
  if (!rule.place().empty())
    for (int p = 0; p < ir::kPlaceCount; ++p)
      if (ir::name_of(static_cast<ir::Place>(p)) == rule.place()) out.place = static_cast<ir::Place>(p);
  if (found) return out;
  sink.error(Code::unknown_name, out.pointer, fmt::format("there is no logical axis \"{}\"", rule.axis()));
  return std::nullopt;
}

ir::OptimizerSettings optimizer_of(const scenario::TrainingSpec& training) {
  ir::OptimizerSettings out;
  switch (training.optimizer.name) {
    case scenario::Optimizer::sgd:
      out.kind = ir::Optimizer::sgd;
      break;
    case scenario::Optimizer::momentum:
      out.kind = ir::Optimizer::momentum;
      break;
    case scenario::Optimizer::adam:
      out.kind = ir::Optimizer::adam;
      break;
    case scenario::Optimizer::adamw:
      out.kind = ir::Optimizer::adamw;
      break;
    case scenario::Optimizer::adafactor:
      out.kind = ir::Optimizer::adafactor;
      break;
  }
  out.learning_rate = training.learning_rate;
  out.beta1 = training.optimizer.beta1;
  out.beta2 = training.optimizer.beta2;
  out.eps = training.optimizer.epsilon;
  out.weight_decay = training.optimizer.name == scenario::Optimizer::adamw ? training.optimizer.weight_decay : 0;
  out.momentum = training.optimizer.momentum;
  out.clip_norm = training.clip_norm;
  return out;
}

timing::HostInput input_of(const scenario::InputSpec& spec, const Job& job) {
  timing::HostInput out;
  const double hosts = static_cast<double>(job.cluster.hosts);
  out.examples_per_host = static_cast<double>(job.spec.global_batch) / hosts;
  const double tokens = 4.0 * static_cast<double>(job.spec.sequence_length);
  out.example_bytes = job.spec.model.example_bytes.value() > 0 ? job.spec.model.example_bytes : Bytes(tokens);
  if (spec.storage.bandwidth)
    out.storage_bandwidth = *spec.storage.bandwidth / (spec.storage.shared_by == scenario::SharedBy::job ? hosts : 1.0);
  out.storage_latency = spec.storage.latency;
  for (const scenario::InputStage& stage : spec.stages)
    out.stages.push_back({stage.name, stage.threads, stage.time_per_example});
  out.prefetch = spec.prefetch;
  if (spec.host_to_chip) out.host_to_chip = *spec.host_to_chip;
  return out;
}

void fill_spec(const scenario::Scenario& s, JobSpec& spec) {
  spec.global_batch = s.training.global_batch;
  spec.microbatch = s.training.microbatch.value_or(0);
  spec.strategies.zero_stage = s.strategies.fsdp.zero_stage;
  spec.strategies.sequence_parallel = s.strategies.tensor.sequence_parallel;
  spec.strategies.schedule = s.strategies.pipeline.schedule == scenario::Schedule::gpipe
                                 ? strategies::PipelineSchedule::gpipe
                                 : strategies::PipelineSchedule::one_f_one_b;
  spec.compute_dtype = convert(s.training.compute_dtype);
  spec.parameter_dtype = convert(s.training.parameter_dtype);
  spec.gradient_dtype = convert(s.training.gradient_dtype);
  spec.master_dtype = spec.parameter_dtype == ir::DType::f64 ? ir::DType::f64 : ir::DType::f32;
  spec.optimizer = optimizer_of(s.training);
  spec.remat = s.training.remat == scenario::Remat::none   ? ir::Remat::none
               : s.training.remat == scenario::Remat::full ? ir::Remat::full
                                                           : ir::Remat::selective;
  spec.attention =
      s.training.attention == scenario::Attention::flash ? ir::AttentionKind::flash : ir::AttentionKind::unfused;
  spec.prefetch = s.strategies.fsdp.prefetch;
  spec.bucket_bytes = s.strategies.data.bucket_bytes;
  spec.overlap = s.strategies.data.overlap;
}

}  // namespace

std::optional<Job> resolve(const scenario::Scenario& s, const std::string& folder, DiagnosticSink& sink) {
  Job job;
  const bool language = s.model.family.value_or(scenario::Family::transformer) == scenario::Family::transformer;
  job.spec.sequence_length = s.training.sequence_length.value_or(language ? 2048 : 1);
  fill_spec(s, job.spec);
  std::optional<models::ModelConfig> config = model_config(s.model, job.spec.sequence_length, folder, sink);
  std::optional<topologies::Cluster> cluster = cluster_of(s.cluster, sink);
  const std::pair<ir::Table, const std::vector<scenario::ShardingRule>*> tables[] = {
      {ir::Table::parameters, &s.sharding.parameters},
      {ir::Table::gradients, &s.sharding.gradients},
      {ir::Table::optimizer, &s.sharding.optimizer},
      {ir::Table::activations, &s.sharding.activations}};
  const char* names[] = {"parameters", "gradients", "optimizer", "activations"};
  for (std::size_t t = 0; t < 4; ++t)
    for (const scenario::ShardingRule& rule : *tables[t].second)
      if (auto made = hand_rule(tables[t].first, names[t], rule, sink)) job.spec.by_hand.push_back(std::move(*made));
  if (!config || !cluster || sink.has_errors()) return std::nullopt;
  job.spec.model = std::move(*config);
  job.cluster = std::move(*cluster);
  for (const scenario::MeshAxis& axis : s.mesh) job.spec.mesh.push_back({axis.name, axis.size});
  if (job.spec.mesh.empty()) job.spec.mesh.push_back({"data", job.cluster.chips()});
  if (job.spec.devices() != job.cluster.chips()) {
    sink.error(Code::mesh_mismatch, "/mesh",
               fmt::format("the mesh has {} devices, the cluster {} chips", job.spec.devices(), job.cluster.chips()));
    return std::nullopt;
  }
  job.causal_flops = s.training.flops_convention == scenario::FlopsConvention::causal;
  if (s.input) job.input = input_of(*s.input, job);
  return job;
}

void check_names(const scenario::Scenario& scenario, DiagnosticSink& sink) {
  const auto check = [&](const std::string& name, const std::vector<std::string>& valid, const char* pointer,
                         const char* what) {
    if (name.empty() || std::find(valid.begin(), valid.end(), name) != valid.end()) return;
    sink.error(Code::unknown_name, pointer, fmt::format("there is no {} \"{}\"", what, name), nearest(name, valid),
               nearest_choices(name, valid));
  };
  Registry<topologies::ClusterPreset> clusters;
  topologies::register_builtin(clusters);
  check(scenario.model.preset, models::preset_names(), "/model/preset", "model preset");
  check(scenario.cluster.chip.preset, topologies::chip_names(), "/cluster/chip/preset", "chip");
  check(scenario.cluster.preset, clusters.names(), "/cluster/preset", "cluster preset");
  scenario::locate(sink.all(), scenario.source);
}

}  // namespace tpusim::session
