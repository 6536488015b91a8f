#include <cmath>
#include <limits>
#include <type_traits>

#include "sim/result/json.hpp"
#include "sim/result/json_text.hpp"

namespace tpusim::result {

namespace {

[[noreturn]] void fail(Code code, const std::string& pointer, const std::string& message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.pointer = pointer;
  diagnostic.message = message;
  throw ScenarioError({diagnostic});
}

// A node of the document and where it is.
struct Node {
  const Json* json;
  std::string pointer;

  Node at(const char* key) const {
    if (!json->is_object())
      fail(Code::wrong_type, pointer, "expected an object, found " + std::string(json->type_name()));
    const auto it = json->find(key);
    if (it == json->end()) fail(Code::missing_key, pointer, "expected the key \"" + std::string(key) + "\"");
    return {&*it, pointer + "/" + key};
  }
  std::vector<Node> items() const {
    if (!json->is_array())
      fail(Code::wrong_type, pointer, "expected an array, found " + std::string(json->type_name()));
    std::vector<Node> out;
    for (std::size_t i = 0; i < json->size(); ++i) out.push_back({&(*json)[i], pointer + "/" + std::to_string(i)});
    return out;
  }
  bool null() const { return json->is_null(); }
};

[[noreturn]] void wrong(const Node& node, const char* expected) {
  fail(Code::wrong_type, node.pointer, std::string("expected ") + expected + ", found " + node.json->type_name());
}

void read(const Node& node, double& out) {
  if (node.null()) {
    out = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!node.json->is_number()) wrong(node, "a number");
  out = node.json->get<double>();
}
template <class Integer>
requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>) void read(const Node& node, Integer& out) {
  if (!node.json->is_number_integer()) wrong(node, "an integer");
  if (node.json->is_number_unsigned() && node.json->get<std::uint64_t>() > std::uint64_t{1} << 62)
    fail(Code::too_large, node.pointer, "expected an integer below 2^62");
  const std::int64_t value = node.json->get<std::int64_t>();
  if (value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max())
    fail(Code::too_large, node.pointer, "the integer is out of range");
  out = static_cast<Integer>(value);
}
void read(const Node& node, bool& out) {
  if (!node.json->is_boolean()) wrong(node, "true or false");
  out = node.json->get<bool>();
}
void read(const Node& node, std::string& out) {
  if (!node.json->is_string()) wrong(node, "a string");
  out = node.json->get<std::string>();
}
template <int B, int S, int F>
void read(const Node& node, Quantity<B, S, F>& out) {
  double value = 0;
  read(node, value);
  out = Quantity<B, S, F>(value);
}
template <class T>
void read(const Node& node, std::optional<T>& out) {
  out.reset();
  if (!node.null()) read(node, out.emplace());
}
template <class T>
void read(const Node& node, std::vector<T>& out) {
  out.clear();
  for (const Node& item : node.items()) read(item, out.emplace_back());
}

void read(const Node& n, Communication& c) {
  read(n.at("collective"), c.collective);
  read(n.at("axes"), c.axes);
  read(n.at("algorithm"), c.algorithm);
  read(n.at("count"), c.count);
  read(n.at("bytes_per_chip"), c.bytes_per_chip);
  read(n.at("busy_s"), c.busy);
  read(n.at("exposed_s"), c.exposed);
}

void read(const Node& n, Check& c) {
  read(n.at("name"), c.name);
  read(n.at("passed"), c.passed);
  read(n.at("detail"), c.detail);
}

void read(const Node& n, Verification& v) {
  read(n.at("passed"), v.passed);
  const Node mesh = n.at("mesh");
  if (!mesh.json->is_object()) wrong(mesh, "an object");
  for (auto it = mesh.json->begin(); it != mesh.json->end(); ++it) {
    auto& [axis, size] = v.mesh.emplace_back(it.key(), 0);
    read(Node{&it.value(), mesh.pointer + "/" + axis}, size);
  }
  read(n.at("steps"), v.steps);
  read(n.at("loss_reference"), v.loss_reference);
  read(n.at("loss_sharded"), v.loss_sharded);
  read(n.at("max_relative_error"), v.max_relative_error);
  if (!n.at("culprit").null()) read(n.at("culprit"), v.culprit);
  read(n.at("bytes_executed"), v.bytes_executed);
  read(n.at("bytes_charged"), v.bytes_charged);
  read(n.at("flops_executed"), v.flops_executed);
  read(n.at("flops_charged"), v.flops_charged);
  read(n.at("peak_bytes_executed"), v.peak_bytes_executed);
  read(n.at("peak_bytes_charged"), v.peak_bytes_charged);
  read(n.at("checks"), v.checks);
}

void read(const Node& n, Diagnosis& d) {
  read(n.at("bottleneck"), d.bottleneck);
  read(n.at("share"), d.share);
  read(n.at("suggestion"), d.suggestion);
}

void read(const Node& n, Confidence& out) {
  std::string name;
  read(n, name);
  for (Confidence c :
       {Confidence::measured, Confidence::vendor, Confidence::paper, Confidence::fitted, Confidence::guess})
    if (confidence_name(c) == name) {
      out = c;
      return;
    }
  fail(Code::unknown_name, n.pointer, "expected measured, vendor, paper, fitted or guess, found \"" + name + "\"");
}

void read(const Node& n, Assumption& a) {
  read(n.at("name"), a.name);
  const Node value = n.at("value");
  if (value.json->is_string())
    a.value = value.json->get<std::string>();
  else
    read(value, a.value.emplace<double>());
  read(n.at("unit"), a.unit);
  read(n.at("source"), a.source);
  read(n.at("confidence"), a.confidence);
}

void read(const Node& n, Step& s) {
  read(n.at("time_s"), s.time);
  read(n.at("compute_s"), s.compute);
  read(n.at("communication_exposed_s"), s.communication_exposed);
  read(n.at("bubble_s"), s.bubble);
  read(n.at("input_stall_s"), s.input_stall);
  read(n.at("overhead_s"), s.overhead);
}

void read(const Node& n, Throughput& t) {
  read(n.at("tokens_per_s"), t.tokens_per_s);
  read(n.at("examples_per_s"), t.examples_per_s);
  read(n.at("model_flops_per_step"), t.model_flops_per_step);
  read(n.at("tflops_per_chip"), t.tflops_per_chip);
  read(n.at("mfu"), t.mfu);
  read(n.at("hfu"), t.hfu);
  read(n.at("flops_convention"), t.flops_convention);
}

void read(const Node& n, Memory& m) {
  read(n.at("peak_bytes"), m.peak_bytes);
  read(n.at("capacity_bytes"), m.capacity_bytes);
  read(n.at("fits"), m.fits);
  read(n.at("parameters_bytes"), m.parameters_bytes);
  read(n.at("gradients_bytes"), m.gradients_bytes);
  read(n.at("optimizer_bytes"), m.optimizer_bytes);
  read(n.at("activations_bytes"), m.activations_bytes);
  read(n.at("workspace_bytes"), m.workspace_bytes);
  read(n.at("reserved_bytes"), m.reserved_bytes);
}

void read(const Node& n, Verdict& v) {
  read(n.at("feasible"), v.feasible);
  read(n.at("reason"), v.reason);
  read(n.at("needed"), v.needed);
  read(n.at("available"), v.available);
  read(n.at("pointer"), v.pointer);
}

template <class Enum>
void read_enum(const Node& n, Enum last, Enum& out) {
  int value = 0;
  read(n, value);
  if (value < 0 || value > static_cast<int>(last)) fail(Code::bad_value, n.pointer, "no such kind or phase");
  out = static_cast<Enum>(value);
}

void read(const Node& n, Span& s) {
  const std::vector<Node> item = n.items();
  if (item.size() != 9) fail(Code::bad_value, n.pointer, "expected nine numbers");
  read(item[0], s.start_ps);
  read(item[1], s.end_ps);
  read(item[2], s.busy_ps);
  read(item[3], s.label);
  read_enum(item[4], SpanKind::other, s.kind);
  read_enum(item[5], SpanPhase::update, s.phase);
  read(item[6], s.layer);
  read(item[7], s.microbatch);
  read(item[8], s.joined);
}

void read(const Node& n, Stream& s) {
  read(n.at("name"), s.name);
  read(n.at("spans"), s.spans);
}

void read(const Node& n, DeviceClass& c) {
  read(n.at("name"), c.name);
  read(n.at("devices"), c.device_count);
  read(n.at("streams"), c.streams);
}

void read(const Node& n, MemorySample& m) {
  const std::vector<Node> item = n.items();
  if (item.size() != 2) fail(Code::bad_value, n.pointer, "expected a time and a number of bytes");
  read(item[0], m.time_ps);
  read(item[1], m.bytes);
}

Json parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(Code::syntax, "", "the result is not JSON");
  return json;
}

}  // namespace

Result from_json(std::string_view text) {
  const Json json = parse(text);
  const Node root{&json, ""};
  int version = 0;
  read(root.at("version"), version);
  if (version != kContractVersion)
    fail(Code::bad_value, "/version", "expected version " + std::to_string(kContractVersion));
  Result r;
  r.scenario_json = compact(*root.at("scenario").json);
  read(root.at("model").at("parameters"), r.model.parameters);
  read(root.at("model").at("layers"), r.model.layers);
  // null: of a plan that got no further
  if (!root.at("step").null()) read(root.at("step"), r.step);
  if (!root.at("startup").null()) read(root.at("startup").at("first_step_s"), r.startup.first_step);
  if (!root.at("throughput").null()) read(root.at("throughput"), r.throughput);
  if (!root.at("memory").null()) read(root.at("memory"), r.memory);
  read(root.at("communication"), r.communication);
  read(root.at("verification"), r.verification);
  read(root.at("diagnosis"), r.diagnosis);
  read(root.at("assumptions"), r.assumptions);
  read(root.at("verdict"), r.verdict);
  read(root.at("device_classes"), r.device_classes);
  read(root.at("notes"), r.notes);
  read(root.at("warnings"), r.warnings);
  return r;
}

Timeline timeline_from_json(std::string_view text) {
  const Json json = parse(text);
  const Node root{&json, ""};
  Timeline t;
  read(root.at("start_ps"), t.start_ps);
  read(root.at("end_ps"), t.end_ps);
  read(root.at("labels"), t.labels);
  read(root.at("classes"), t.classes);
  read(root.at("memory_class"), t.memory_class);
  read(root.at("memory"), t.memory);
  read(root.at("spans_joined"), t.spans_joined);
  read(root.at("spans_left_out"), t.spans_left_out);
  return t;
}

}  // namespace tpusim::result
