#include "sim/result/json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/base/check.hpp"

using namespace tpusim;
using namespace tpusim::result;

namespace {

// Every field set to a value of its own, so that a swapped pair shows.
Result full_result() {
  Result r;
  r.scenario_json = R"({"version":1,"name":"Tiny \"quoted\" </script>","mesh":{"fsdp":16,"tensor":8},"rate":2.50})";
  r.model = {6738415616, 32};
  r.step = {Seconds(1.25), Seconds(0.75), Seconds(0.25), Seconds(0.125), Seconds(0.0625), Seconds(0.0625)};
  r.startup = {Seconds(1.5)};
  r.throughput.tokens_per_s = 1677721.6;
  r.throughput.examples_per_s = 409.6;
  r.throughput.model_flops_per_step = Flops(1.5e20);
  r.throughput.tflops_per_chip = 187.25;
  r.throughput.mfu = 0.475;
  r.throughput.hfu = 0.5;
  r.throughput.flops_convention = "full";
  r.memory = {21, 17179869184, true, 1, 2, 3, 4, 5, 6};
  r.communication = {{"all-gather", {"fsdp"}, "ring", 64, 1e9, Seconds(0.5), Seconds(0.125)},
                     {"all-reduce", {"data", "fsdp"}, "torus", 1.5, 0.1, Seconds(1e-7), Seconds(0)}};
  Verification v;
  v.passed = true;
  v.mesh = {{"fsdp", 4}, {"tensor", 2}};
  v.steps = 3;
  v.loss_reference = {4.5, 4.25, 4};
  v.loss_sharded = {4.5, 4.25, 4};
  v.max_relative_error = 3e-15;
  v.bytes_executed = v.bytes_charged = 7;
  v.flops_executed = v.flops_charged = 8;
  v.peak_bytes_executed = v.peak_bytes_charged = 9;
  v.checks = {{"tally", true, "bytes, FLOPs and peak are equal"}};
  r.verification = v;
  r.diagnosis = {{"HBM", 0.25, "mesh tensor 4: 12 % faster"}};
  r.assumptions = {{"peak bf16", 1.97e14, "FLOP/s", "vendor page", Confidence::vendor},
                   {"attention", std::string("flash"), "", "default", Confidence::guess}};
  r.device_classes = 3;
  r.notes = {"no input described: the batch is always there"};
  r.warnings = {"unlisted shape"};
  return r;
}

const char* const kDocument = R"({
  "version": 1,
  "scenario": {
    "version": 1,
    "name": "Tiny \"quoted\" </script>",
    "mesh": {
      "fsdp": 16,
      "tensor": 8
    },
    "rate": 2.5
  },
  "model": {
    "parameters": 6738415616,
    "layers": 32
  },
  "step": {
    "time_s": 1.25,
    "compute_s": 0.75,
    "communication_exposed_s": 0.25,
    "bubble_s": 0.125,
    "input_stall_s": 0.0625,
    "overhead_s": 0.0625
  },
  "startup": {
    "first_step_s": 1.5
  },
  "throughput": {
    "tokens_per_s": 1677721.6,
    "examples_per_s": 409.6,
    "model_flops_per_step": 1.5e+20,
    "tflops_per_chip": 187.25,
    "mfu": 0.475,
    "hfu": 0.5,
    "flops_convention": "full"
  },
  "memory": {
    "peak_bytes": 21,
    "capacity_bytes": 17179869184,
    "fits": true,
    "parameters_bytes": 1,
    "gradients_bytes": 2,
    "optimizer_bytes": 3,
    "activations_bytes": 4,
    "workspace_bytes": 5,
    "reserved_bytes": 6
  },
  "communication": [
    {
      "collective": "all-gather",
      "axes": ["fsdp"],
      "algorithm": "ring",
      "count": 64,
      "bytes_per_chip": 1000000000,
      "busy_s": 0.5,
      "exposed_s": 0.125
    },
    {
      "collective": "all-reduce",
      "axes": ["data", "fsdp"],
      "algorithm": "torus",
      "count": 1.5,
      "bytes_per_chip": 0.1,
      "busy_s": 1e-07,
      "exposed_s": 0
    }
  ],
  "verification": {
    "passed": true,
    "mesh": {
      "fsdp": 4,
      "tensor": 2
    },
    "steps": 3,
    "loss_reference": [4.5, 4.25, 4],
    "loss_sharded": [4.5, 4.25, 4],
    "max_relative_error": 3e-15,
    "culprit": null,
    "bytes_executed": 7,
    "bytes_charged": 7,
    "flops_executed": 8,
    "flops_charged": 8,
    "peak_bytes_executed": 9,
    "peak_bytes_charged": 9,
    "checks": [
      {
        "name": "tally",
        "passed": true,
        "detail": "bytes, FLOPs and peak are equal"
      }
    ]
  },
  "diagnosis": [
    {
      "bottleneck": "HBM",
      "share": 0.25,
      "suggestion": "mesh tensor 4: 12 % faster"
    }
  ],
  "assumptions": [
    {
      "name": "peak bf16",
      "value": 197000000000000,
      "unit": "FLOP/s",
      "source": "vendor page",
      "confidence": "vendor"
    },
    {
      "name": "attention",
      "value": "flash",
      "unit": "",
      "source": "default",
      "confidence": "guess"
    }
  ],
  "verdict": {
    "feasible": true,
    "reason": "",
    "needed": "",
    "available": "",
    "pointer": ""
  },
  "device_classes": 3,
  "notes": ["no input described: the batch is always there"],
  "warnings": ["unlisted shape"]
}
)";

std::string error_of(const std::string& text) {
  try {
    from_json(text);
  } catch (const ScenarioError& error) {
    REQUIRE(error.diagnostics.size() == 1);
    return error.diagnostics[0].pointer + ": " + error.diagnostics[0].message;
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a result is written as the whole contract document") {
  CHECK(to_json(full_result()) == kDocument);
}

TEST_CASE("what was written reads back as the same document") {
  CHECK(to_json(from_json(kDocument)) == kDocument);
}

TEST_CASE("what was written reads back as the same values") {
  const Result r = full_result();
  const Result back = from_json(to_json(r));
  CHECK(back.model == r.model);
  CHECK(back.step == r.step);
  CHECK(back.startup == r.startup);
  CHECK(back.throughput == r.throughput);
  CHECK(back.memory == r.memory);
  CHECK(back.communication == r.communication);
  CHECK(back.verification == r.verification);
  CHECK(back.diagnosis == r.diagnosis);
  CHECK(back.assumptions == r.assumptions);
  CHECK(back.device_classes == r.device_classes);
  CHECK(back.notes == r.notes);
  CHECK(back.warnings == r.warnings);
}

TEST_CASE("a step without verification, and a model without tokens, are null") {
  Result r = full_result();
  r.verification.reset();
  r.throughput.tokens_per_s.reset();
  r.throughput.mfu.reset();
  const std::string text = to_json(r);
  CHECK(text.find("\"verification\": null") != std::string::npos);
  CHECK(text.find("\"tokens_per_s\": null") != std::string::npos);
  const Result back = from_json(text);
  CHECK_FALSE(back.verification.has_value());
  CHECK(back.throughput == r.throughput);
  CHECK(back.notes == r.notes);  // absent is not "not finite"
}

TEST_CASE("a number that is not finite is written as null and named in the notes") {
  Result r = full_result();
  r.step.bubble = Seconds(std::numeric_limits<double>::quiet_NaN());
  r.communication[1].busy = Seconds(std::numeric_limits<double>::infinity());
  r.throughput.mfu = std::numeric_limits<double>::infinity();
  const Result back = from_json(to_json(r));
  CHECK(std::isnan(back.step.bubble.value()));
  CHECK(std::isnan(back.communication[1].busy.value()));
  CHECK(back.notes == std::vector<std::string>{"no input described: the batch is always there",
                                               "step.bubble_s is not a finite number and is shown as null",
                                               "throughput.mfu is not a finite number and is shown as null",
                                               "communication[1].busy_s is not a finite number and is shown as null"});
}

TEST_CASE("numbers are written in the shortest form that reads back the same") {
  CHECK(number_text(0) == "0");
  CHECK(number_text(-0.0) == "0");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(100000) == "100000");
  CHECK(number_text(1.0 / 3) == "0.3333333333333333");
  CHECK(number_text(9007199254740993.0) == "9007199254740992");  // 2^53 + 1 rounds to even
  CHECK(number_text(1e16) == "1e+16");
  CHECK(number_text(6.02e23) == "6.02e+23");
  CHECK(number_text(0.00001) == "0.00001");
  CHECK(number_text(1.5e-6) == "1.5e-06");
  CHECK(number_text(-2.5) == "-2.5");
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("of a plan that does not work, what was not planned or timed is null and reads back as nothing") {
  Result r;
  r.scenario_json = "{}";
  r.verdict = {false, "tensor 6 does not divide the heads", "", "", "/mesh/tensor"};
  const std::string unplanned = to_json(r);
  for (const char* key : {"step", "startup", "throughput", "memory"})
    CHECK(unplanned.find("\"" + std::string(key) + "\": null") != std::string::npos);
  CHECK(to_json(from_json(unplanned)) == unplanned);
  r.verdict.reason = "out of memory";
  r.memory.peak_bytes = r.memory.parameters_bytes = 2;
  r.memory.capacity_bytes = 1;
  r.memory.fits = false;
  const std::string untimed = to_json(r);
  CHECK(untimed.find("\"step\": null") != std::string::npos);
  CHECK(untimed.find("\"fits\": false") != std::string::npos);
  CHECK(to_json(from_json(untimed)) == untimed);
}

TEST_CASE("invalid UTF-8 in a name does not stop the document") {
  Result r = full_result();
  r.notes = {"bad \xff byte"};
  CHECK(from_json(to_json(r)).notes == std::vector<std::string>{"bad \xef\xbf\xbd byte"});  // U+FFFD
}

TEST_CASE("a scenario that is not JSON is our own fault") {
  Result r;
  r.scenario_json = "{";
  CHECK_THROWS_AS(to_json(r), InternalError);
}

TEST_CASE("reading points at what is missing or wrong") {
  CHECK(error_of("{") == ": the result is not JSON");
  CHECK(error_of("[]") == ": expected an object, found array");
  CHECK(error_of(R"({"version": 2})") == "/version: expected version 1");
  CHECK(error_of(replaced(kDocument, "\"bubble_s\"", "\"bubbles\"")) == "/step: expected the key \"bubble_s\"");
  CHECK(error_of(replaced(kDocument, "\"parameters\": 6738415616", "\"parameters\": 1.5")) ==
        "/model/parameters: expected an integer, found number");
  CHECK(error_of(replaced(kDocument, "\"tensor\": 2", "\"tensor\": \"2\"")) ==
        "/verification/mesh/tensor: expected an integer, found string");
  CHECK(error_of(replaced(kDocument, "\"axes\": [\"fsdp\"]", "\"axes\": [1]")) ==
        "/communication/0/axes/0: expected a string, found number");
  CHECK(error_of(replaced(kDocument, "\"confidence\": \"guess\"", "\"confidence\": \"sure\"")) ==
        "/assumptions/1/confidence: expected measured, vendor, paper, fitted or guess, found \"sure\"");
}

TEST_CASE("the contract's sums are what a producer can assert") {
  Result r = full_result();
  CHECK(step_parts_minus_time(r.step).value() == 0);  // 0.75 + 0.25 + 0.125 + 2 * 0.0625 = 1.25, all exact in binary
  CHECK(memory_parts_minus_peak(r.memory) == 0);      // 1 + ... + 6 = 21
  r.step.bubble += Seconds(0.5);
  r.memory.workspace_bytes -= 2;
  CHECK(step_parts_minus_time(r.step).value() == 0.5);
  CHECK(memory_parts_minus_peak(r.memory) == -2);
}
