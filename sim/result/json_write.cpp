#include <cmath>

#include "sim/base/check.hpp"
#include "sim/result/json.hpp"
#include "sim/result/json_text.hpp"

namespace tpusim::result {

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::measured:
      return "measured";
    case Confidence::vendor:
      return "vendor";
    case Confidence::paper:
      return "paper";
    case Confidence::fitted:
      return "fitted";
    case Confidence::guess:
      return "guess";
  }
  return "guess";
}

bool has_plan(const Result& r) {
  return r.verdict.feasible || r.memory.peak_bytes > 0;
}

bool has_step(const Result& r) {
  return r.verdict.feasible || r.step.time.value() > 0;
}

Seconds step_parts_minus_time(const Step& step) {
  return step.compute + step.communication_exposed + step.bubble + step.input_stall + step.overhead - step.time;
}

std::int64_t memory_parts_minus_peak(const Memory& memory) {
  return memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes + memory.activations_bytes +
         memory.workspace_bytes + memory.reserved_bytes - memory.peak_bytes;
}

namespace {

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json number(Seconds value) {
  return number(value.value());
}
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}
Json number(const std::optional<Flops>& value) {
  return value ? number(value->value()) : Json(nullptr);
}

Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (double value : values) out.push_back(number(value));
  return out;
}

Json step_tree(const Step& s) {
  return {{"time_s", number(s.time)},
          {"compute_s", number(s.compute)},
          {"communication_exposed_s", number(s.communication_exposed)},
          {"bubble_s", number(s.bubble)},
          {"input_stall_s", number(s.input_stall)},
          {"overhead_s", number(s.overhead)}};
}

Json throughput_tree(const Throughput& t) {
  return {{"tokens_per_s", number(t.tokens_per_s)},
          {"examples_per_s", number(t.examples_per_s)},
          {"model_flops_per_step", number(t.model_flops_per_step)},
          {"tflops_per_chip", number(t.tflops_per_chip)},
          {"mfu", number(t.mfu)},
          {"hfu", number(t.hfu)},
          {"flops_convention", t.flops_convention}};
}

Json memory_tree(const Memory& m) {
  return {{"peak_bytes", m.peak_bytes},
          {"capacity_bytes", m.capacity_bytes},
          {"fits", m.fits},
          {"parameters_bytes", m.parameters_bytes},
          {"gradients_bytes", m.gradients_bytes},
          {"optimizer_bytes", m.optimizer_bytes},
          {"activations_bytes", m.activations_bytes},
          {"workspace_bytes", m.workspace_bytes},
          {"reserved_bytes", m.reserved_bytes}};
}

Json communication_tree(const Communication& c) {
  return {{"collective", c.collective},
          {"axes", c.axes},
          {"algorithm", c.algorithm},
          {"count", number(c.count)},
          {"bytes_per_chip", number(c.bytes_per_chip)},
          {"busy_s", number(c.busy)},
          {"exposed_s", number(c.exposed)}};
}

Json verification_tree(const Verification& v) {
  Json mesh = Json::object();
  for (const auto& [axis, size] : v.mesh) mesh[axis] = size;
  Json checks = Json::array();
  for (const Check& c : v.checks) checks.push_back({{"name", c.name}, {"passed", c.passed}, {"detail", c.detail}});
  return {{"passed", v.passed},
          {"mesh", mesh},
          {"steps", v.steps},
          {"loss_reference", numbers(v.loss_reference)},
          {"loss_sharded", numbers(v.loss_sharded)},
          {"max_relative_error", number(v.max_relative_error)},
          {"culprit", v.culprit.empty() ? Json(nullptr) : Json(v.culprit)},
          {"bytes_executed", v.bytes_executed},
          {"bytes_charged", v.bytes_charged},
          {"flops_executed", v.flops_executed},
          {"flops_charged", v.flops_charged},
          {"peak_bytes_executed", v.peak_bytes_executed},
          {"peak_bytes_charged", v.peak_bytes_charged},
          {"checks", checks}};
}

Json assumption_tree(const Assumption& a) {
  const double* value = std::get_if<double>(&a.value);
  return {{"name", a.name},
          {"value", value ? number(*value) : Json(std::get<std::string>(a.value))},
          {"unit", a.unit},
          {"source", a.source},
          {"confidence", confidence_name(a.confidence)}};
}

template <class T>
Json list(const std::vector<T>& items, Json (*tree)(const T&)) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(tree(item));
  return out;
}

// Names every number that a tree shows as null because it is NaN or infinite. (Empty optionals are null by right.)
void note_not_finite(const Result& r, Json& notes) {
  const auto check = [&](const std::string& name, double value) {
    if (!std::isfinite(value)) notes.push_back(name + " is not a finite number and is shown as null");
  };
  check("step.time_s", r.step.time.value());
  check("step.compute_s", r.step.compute.value());
  check("step.communication_exposed_s", r.step.communication_exposed.value());
  check("step.bubble_s", r.step.bubble.value());
  check("step.input_stall_s", r.step.input_stall.value());
  check("step.overhead_s", r.step.overhead.value());
  check("startup.first_step_s", r.startup.first_step.value());
  check("throughput.tokens_per_s", r.throughput.tokens_per_s.value_or(0));
  check("throughput.examples_per_s", r.throughput.examples_per_s);
  check("throughput.model_flops_per_step", r.throughput.model_flops_per_step.value_or(Flops()).value());
  check("throughput.tflops_per_chip", r.throughput.tflops_per_chip.value_or(0));
  check("throughput.mfu", r.throughput.mfu.value_or(0));
  check("throughput.hfu", r.throughput.hfu.value_or(0));
  for (std::size_t i = 0; i < r.communication.size(); ++i) {
    const Communication& c = r.communication[i];
    const std::string at = "communication[" + std::to_string(i) + "].";
    check(at + "count", c.count);
    check(at + "bytes_per_chip", c.bytes_per_chip);
    check(at + "busy_s", c.busy.value());
    check(at + "exposed_s", c.exposed.value());
  }
  if (r.verification) {
    const Verification& v = *r.verification;
    for (double loss : v.loss_reference) check("verification.loss_reference", loss);
    for (double loss : v.loss_sharded) check("verification.loss_sharded", loss);
    check("verification.max_relative_error", v.max_relative_error);
  }
  for (std::size_t i = 0; i < r.diagnosis.size(); ++i)
    check("diagnosis[" + std::to_string(i) + "].share", r.diagnosis[i].share);
  for (const Assumption& a : r.assumptions)
    if (const double* value = std::get_if<double>(&a.value)) check("assumption \"" + a.name + "\"", *value);
}

Json diagnosis_tree(const Diagnosis& d) {
  return {{"bottleneck", d.bottleneck}, {"share", number(d.share)}, {"suggestion", d.suggestion}};
}

}  // namespace

Json result_tree(const Result& r) {
  Json scenario = Json::parse(r.scenario_json, nullptr, false);
  TPUSIM_CHECK(!scenario.is_discarded(), "the result's scenario is not JSON");
  Json notes = r.notes;
  note_not_finite(r, notes);
  return {{"version", kContractVersion},
          {"scenario", scenario},
          {"model", {{"parameters", r.model.parameters}, {"layers", r.model.layers}}},
          {"step", has_step(r) ? step_tree(r.step) : Json(nullptr)},
          {"startup", has_step(r) ? Json{{"first_step_s", number(r.startup.first_step)}} : Json(nullptr)},
          {"throughput", has_step(r) ? throughput_tree(r.throughput) : Json(nullptr)},
          {"memory", has_plan(r) ? memory_tree(r.memory) : Json(nullptr)},
          {"communication", list(r.communication, communication_tree)},
          {"verification", r.verification ? verification_tree(*r.verification) : Json(nullptr)},
          {"diagnosis", list(r.diagnosis, diagnosis_tree)},
          {"assumptions", list(r.assumptions, assumption_tree)},
          {"verdict",
           {{"feasible", r.verdict.feasible},
            {"reason", r.verdict.reason},
            {"needed", r.verdict.needed},
            {"available", r.verdict.available},
            {"pointer", r.verdict.pointer}}},
          {"device_classes", r.device_classes},
          {"notes", notes},
          {"warnings", r.warnings}};
}

std::string to_json(const Result& result) {
  return pretty(result_tree(result)) + "\n";
}

Json timeline_tree(const Timeline& t) {
  Json classes = Json::array();
  for (const DeviceClass& c : t.classes) {
    Json streams = Json::array();
    for (const Stream& s : c.streams) {
      Json spans = Json::array();
      for (const Span& x : s.spans)
        spans.push_back({x.start_ps, x.end_ps, x.busy_ps, x.label, static_cast<int>(x.kind), static_cast<int>(x.phase),
                         x.layer, x.microbatch, x.joined});
      streams.push_back({{"name", s.name}, {"spans", spans}});
    }
    classes.push_back({{"name", c.name}, {"devices", c.device_count}, {"streams", streams}});
  }
  Json memory = Json::array();
  for (const MemorySample& m : t.memory) memory.push_back({m.time_ps, m.bytes});
  return {{"start_ps", t.start_ps},
          {"end_ps", t.end_ps},
          {"labels", t.labels},
          {"classes", classes},
          {"memory_class", t.memory_class},
          {"memory", memory},
          {"spans_joined", t.spans_joined},
          {"spans_left_out", t.spans_left_out}};
}

std::string timeline_to_json(const Timeline& timeline) {
  return compact(timeline_tree(timeline)) + "\n";
}

}  // namespace tpusim::result
