// Bad scenarios, one fault each: where it is seen (JSON pointer), what it is called (code), and what is proposed
// instead.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/cli/cli.hpp"
#include "sim/scenario/read.hpp"

namespace tpusim::diagnostics {

// A sound scenario with one section replaced, or one added. `extra` goes in front of the other sections.
struct Parts {
  std::string model = R"("gpt2")";
  std::string cluster = R"({"chip": "tpu-v5e", "topology": "4x4"})";
  std::string mesh = R"({"fsdp": 8, "tensor": 2})";
  std::string training = R"({"global_batch": 32, "sequence_length": 1024})";
  std::string extra;
  std::string text() const {
    return "{" + extra + "\"model\": " + model + ",\n\"cluster\": " + cluster + ",\n\"mesh\": " + mesh +
           ",\n\"training\": " + training + "}";
  }
};
inline std::string model(std::string v) {
  Parts p;
  p.model = std::move(v);
  return p.text();
}
inline std::string cluster(std::string v) {
  Parts p;
  p.cluster = std::move(v);
  return p.text();
}
inline std::string mesh(std::string v) {
  Parts p;
  p.mesh = std::move(v);
  return p.text();
}
inline std::string training(std::string v) {
  Parts p;
  p.training = std::move(v);
  return p.text();
}
inline std::string extra(std::string v) {
  Parts p;
  p.extra = std::move(v) + ",\n";
  return p.text();
}
// A transformer of its own, with some fields after the required ones.
inline std::string transformer(std::string more) {
  return model(R"({"family": "transformer", "layers": 4, "embed": 64, "heads": 8, "mlp": 256, "vocab": 1000, )" + more +
               "}");
}

inline std::string fixed(std::string step_compute) {
  Parts p;
  p.model = R"({"family": "fixed", "step_compute": )" + std::move(step_compute) + "}";
  p.training = R"({"global_batch": 32})";
  return p.text();
}

struct Row {
  std::string name;
  std::string text;
  std::string pointer;  // "*" where the place has no meaning
  Code code;
  std::string suggestion;
};

inline void run(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto start = std::chrono::steady_clock::now();
    DiagnosticSink sink;
    scenario::read(row.text, "bad.json", sink);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    CHECK(took.count() < 1.0);
    REQUIRE(sink.all().size() >= 1);
    std::string all;
    for (const Diagnostic& d : sink.all()) all += format(d) + "\n";
    CAPTURE(all);
    // One mistake, one diagnostic.
    CHECK(sink.all().size() == 1);
    const Diagnostic& d = sink.all().front();
    CHECK(d.severity == Severity::error);
    CHECK(code_name(d.code) == code_name(row.code));
    if (row.pointer != "*") CHECK(d.pointer == row.pointer);
    CHECK(d.suggestion == row.suggestion);
    CHECK(d.file == "bad.json");
    if (row.text.size() < (1u << 20)) CHECK(d.line >= 1);

    // And so the command says it, on standard error alone, with status 2.
    std::istringstream in(row.text);
    std::ostringstream out, err;
    cli::Streams streams{in, out, err};
    CHECK(cli::run_command({"check", "-"}, streams) == cli::exit_usage);
    CHECK(out.str() == "");
    Diagnostic said = d;
    said.file = "-";
    CHECK(err.str() == format(said) + "\n");
  }
}

}  // namespace tpusim::diagnostics
