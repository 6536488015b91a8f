#include "reports/summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/text.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/result/json.hpp"

namespace tpusim::reports {

using Json = nlohmann::ordered_json;

namespace {

// The member, or null: the scenario's form is checked elsewhere, a report only shows what it finds.
Json member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(key);
  return it == json.end() ? Json(nullptr) : *it;
}

std::string text_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer()) return format_count(json.get<std::int64_t>());
  if (json.is_number()) return result::number_text(json.get<double>());
  return "";
}

// A name, or the first of some members of an object that is one.
std::string name_of(const Json& json, std::initializer_list<const char*> keys) {
  if (json.is_string()) return json.get<std::string>();
  for (const char* key : keys) {
    const Json inner = member(json, key);
    if (inner.is_string()) return inner.get<std::string>();
  }
  return "";
}

std::int64_t integer_of(const Json& json, std::int64_t otherwise) {
  return json.is_number_integer() ? json.get<std::int64_t>() : otherwise;
}

std::string model_text(const Json& model, const result::Model& counts) {
  std::string name = name_of(model, {"name", "preset", "huggingface", "family"});
  if (name.empty()) name = "model";
  if (name == "fixed") return "fixed: a step of known length";
  if (counts.parameters == 0 && counts.layers == 0) return name;
  return fmt::format("{}: {} parameters, {} layers", name, format_short_count(static_cast<double>(counts.parameters)),
                     format_count(counts.layers));
}

std::string cluster_text(const Json& cluster, double chips) {
  const Json chip_json = member(cluster, "chip");
  const std::string chip = name_of(chip_json, {"preset", "name"});
  const std::string topology = name_of(member(cluster, "topology"), {"name"});
  const std::int64_t slices = integer_of(member(cluster, "slices"), 1);
  const std::int64_t hosts = integer_of(member(cluster, "hosts"), 0);
  std::string text = chip.empty() ? name_of(cluster, {"preset", "name"}) : chip;
  if (!topology.empty()) text += (text.empty() ? "" : " ") + topology;
  if (slices > 1) text = fmt::format("{} slices of {}", slices, text);
  if (hosts > 0) text = fmt::format("{} host{} of {}", format_count(hosts), hosts == 1 ? "" : "s", text);
  if (chips >= 1)
    text += fmt::format("{}{} chip{}", text.empty() ? "" : ", ", count_text(chips), chips == 1 ? "" : "s");
  return text;
}

std::string training_text(const Json& training) {
  if (!training.is_object()) return "";
  std::vector<std::string> parts;
  const std::string batch = text_of(member(training, "global_batch"));
  const std::string length = text_of(member(training, "sequence_length"));
  if (!batch.empty())
    parts.push_back("batch of " + batch + (length.empty() ? " examples" : " sequences of " + length + " tokens"));
  const std::string microbatch = text_of(member(training, "microbatch"));
  if (!microbatch.empty()) parts.push_back("microbatch " + microbatch);
  for (const char* key : {"compute_dtype", "optimizer"}) {
    const std::string value = name_of(member(training, key), {"name"});
    if (!value.empty()) parts.push_back(value);
  }
  const std::string remat = name_of(member(training, "remat"), {});
  if (!remat.empty()) parts.push_back("remat " + remat);
  return joined(parts, ", ");
}

}  // namespace

Facts facts(const result::Result& r) {
  const Json scenario = Json::parse(r.scenario_json, nullptr, false);
  Facts out;
  const Json name = member(scenario, "name");
  double chips = 1;
  std::vector<std::string> axes;
  const Json mesh = member(scenario, "mesh");
  if (mesh.is_object())
    for (auto it = mesh.begin(); it != mesh.end(); ++it)
      if (it->is_number_integer()) {
        chips *= it->get<double>();
        axes.push_back(it.key() + " " + format_count(it->get<std::int64_t>()));
      }
  out.mesh = axes.empty() ? "one chip" : joined(axes, " × ");
  out.model = model_text(member(scenario, "model"), r.model);
  out.cluster = cluster_text(member(scenario, "cluster"), chips);
  out.training = training_text(member(scenario, "training"));
  if (name.is_string()) out.title = name.get<std::string>();
  if (out.title.empty()) out.title = name_of(member(scenario, "model"), {"preset", "family"});
  if (out.title.empty()) out.title = "tpusim";
  return out;
}

std::vector<Part> step_parts(const result::Step& s) {
  std::vector<Part> parts = {{"compute", "compute", s.compute.value(), 0},
                             {"communication", "exposed communication", s.communication_exposed.value(), 0},
                             {"bubble", "bubble", s.bubble.value(), 0},
                             {"input", "input stall", s.input_stall.value(), 0},
                             {"overhead", "overhead", s.overhead.value(), 0}};
  for (Part& part : parts) part.share = s.time.value() > 0 ? part.value / s.time.value() : 0;
  return parts;
}

std::vector<Part> memory_parts(const result::Memory& m) {
  const auto bytes = [](std::int64_t n) { return static_cast<double>(n); };
  std::vector<Part> parts = {{"parameters", "parameters", bytes(m.parameters_bytes), 0},
                             {"gradients", "gradients", bytes(m.gradients_bytes), 0},
                             {"optimizer", "optimizer state", bytes(m.optimizer_bytes), 0},
                             {"activations", "activations", bytes(m.activations_bytes), 0},
                             {"workspace", "workspace", bytes(m.workspace_bytes), 0},
                             {"reserved", "reserved", bytes(m.reserved_bytes), 0}};
  const double whole = bytes(has_capacity(m) ? m.capacity_bytes : m.peak_bytes);
  for (Part& part : parts) part.share = whole > 0 ? part.value / whole : 0;
  return parts;
}

std::string headline_sentence(const result::Result& r) {
  if (!(r.step.time.value() > 0)) return "";
  std::string text = "A step takes " + seconds_text(r.step.time);
  if (r.throughput.mfu && std::isfinite(*r.throughput.mfu)) text += " at " + share_text(*r.throughput.mfu) + " MFU";
  const std::vector<Part> parts = step_parts(r.step);
  text += ". Compute is " + share_text(parts[0].share) + " of it";
  const Part* loss = nullptr;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].share > (loss == nullptr ? 0.001 : loss->share)) loss = &parts[i];
  if (loss != nullptr) text += "; the largest loss is " + loss->name + " (" + share_text(loss->share) + ")";
  text += ".";
  const result::Diagnosis* best = nullptr;
  for (const result::Diagnosis& d : r.diagnosis)
    if (d.share > (best == nullptr ? 0.001 : best->share)) best = &d;
  if (best != nullptr)
    text += " Twice the " + best->bottleneck + " would save " + share_text(best->share) + " of the step.";
  return text;
}

bool has_capacity(const result::Memory& m) {
  return m.capacity_bytes > 0 && m.capacity_bytes < std::int64_t{1} << 62;
}

std::string capacity_text(const result::Memory& m) {
  return has_capacity(m) ? bytes_text(static_cast<double>(m.capacity_bytes)) : "unlimited";
}

std::string verification_sentence(const result::Result& r) {
  if (!r.verification) return "not run";
  const result::Verification& v = *r.verification;
  const std::string where = fmt::format("{} step{} on {}", v.steps, v.steps == 1 ? "" : "s", mesh_text(v.mesh));
  const bool tallies = v.bytes_executed == v.bytes_charged && v.flops_executed == v.flops_charged &&
                       v.peak_bytes_executed == v.peak_bytes_charged;
  if (v.passed)
    return fmt::format("passed: {} equal one device (largest relative error {:.1e}){}", where, v.max_relative_error,
                       tallies ? "; bytes, FLOPs and peak memory are those that timing charges" : "");
  return fmt::format("FAILED: {} differ from one device{}", where, v.culprit.empty() ? "" : ", first at " + v.culprit);
}

std::string obstacle_sentence(const result::Result& r) {
  if (!r.verdict.feasible) {
    std::string text = "This plan cannot work: " + (r.verdict.reason.empty() ? "not feasible" : r.verdict.reason);
    if (!r.verdict.needed.empty()) text += "; it needs " + r.verdict.needed;
    if (!r.verdict.available.empty()) text += "; there is " + r.verdict.available;
    if (!r.verdict.pointer.empty()) text += " (in the scenario: " + r.verdict.pointer + ")";
    return text;
  }
  if (!r.memory.fits)
    return fmt::format("This plan does not fit: the fullest chip needs {} and has {}",
                       bytes_text(static_cast<double>(r.memory.peak_bytes)), capacity_text(r.memory));
  return "";
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (!out.empty()) out += separator;
    out += item;
  }
  return out;
}

std::string mesh_text(const std::vector<std::pair<std::string, std::int64_t>>& mesh) {
  std::vector<std::string> axes;
  for (const auto& [axis, size] : mesh) axes.push_back(axis + " " + format_count(size));
  return axes.empty() ? "one device" : joined(axes, " × ");
}

std::string count_text(double count) {
  if (!std::isfinite(count)) return "-";
  if (count == std::floor(count) && std::abs(count) < 1e15) return format_count(static_cast<std::int64_t>(count));
  return format_number(count);
}

std::string seconds_text(Seconds time) {
  return std::isfinite(time.value()) ? format_seconds(time) : "-";
}

std::string bytes_text(double bytes) {
  return std::isfinite(bytes) ? format_bytes(Bytes(bytes)) : "-";
}

std::string rate_text(const std::optional<double>& per_second, std::string_view unit) {
  if (!per_second || !std::isfinite(*per_second)) return "-";
  // Below a hundred thousand the digits are shorter than a prefix is clear.
  const double value = *per_second;
  const std::string digits = value >= 1e5    ? format_short_count(value)
                             : value >= 1000 ? format_count(static_cast<std::int64_t>(std::llround(value)))
                                             : format_number(value);
  return fmt::format("{} {}", digits, unit);
}

std::string assumption_value(const result::Assumption& a) {
  const double* value = std::get_if<double>(&a.value);
  if (value == nullptr) return std::get<std::string>(a.value) + (a.unit.empty() ? "" : " " + a.unit);
  if (a.unit == "s") return seconds_text(Seconds(*value));
  if (a.unit == "B" || a.unit == "bytes") return bytes_text(*value);
  if (a.unit == "B/s" || a.unit == "bytes/s") return format_rate(BytesPerSecond(*value));
  if (a.unit == "FLOP") return format_flops(Flops(*value));
  if (a.unit == "FLOP/s" || a.unit == "FLOPs/s") return format_flops(FlopsPerSecond(*value));
  const std::string number = *value == std::floor(*value) ? count_text(*value) : format_number(*value, 4);
  return a.unit.empty() || a.unit == "1" ? number : number + " " + a.unit;  // "1": a pure number
}

}  // namespace tpusim::reports
