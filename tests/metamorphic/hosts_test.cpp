// Twice the hosts, from the scenario on: what a host prepares is its share of the batch, and storage is each host's own
// or the job's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "sim/scenario/read.hpp"
#include "sim/session/session.hpp"

using namespace tpusim;

namespace {

// A fixed step of 0.4 s on 2 chips, on one host or two; a batch of 8 examples of 1 GB, storage of 8 / h GB/s.
double stall(int hosts, double h, const std::string& shared_by) {
  std::ostringstream text;
  text.precision(17);
  text << R"({"model": {"family": "fixed", "step_compute": "400 ms", "example_bytes": 1e9},
    "cluster": {"chip": "h100", "hosts": )"
       << hosts << R"(, "chips_per_host": )" << 2 / hosts << R"(}, "mesh": {"data": 2},
    "training": {"global_batch": 8},
    "input": {"storage": {"bandwidth": )"
       << 8e9 / h << R"(, "shared_by": ")" << shared_by << R"("}, "prefetch": 2}})";
  DiagnosticSink sink;
  const scenario::Scenario scenario = scenario::read(text.str(), "hosts.json", sink);
  sink.throw_if_errors();
  session::Options options;
  options.verify = options.diagnose = false;
  return session::simulate(scenario, options).step.input_stall.value();
}

}  // namespace

TEST_CASE("twice the hosts with the same chips turn a stall of h - c into max(0, h/2 - c)") {
  const double c = 0.4;
  for (const double h : {0.5, 0.8, 1.0, 2.5}) {
    INFO("h ", h);
    CHECK(stall(1, h, "host") == doctest::Approx(h - c).epsilon(1e-9));
    CHECK(std::abs(stall(2, h, "host") - std::max(0.0, h / 2 - c)) < 1e-9);
  }
}

TEST_CASE("storage that the whole job shares gives each of two hosts half: the stall stays") {
  for (const double h : {0.5, 2.5}) CHECK(stall(2, h, "job") == doctest::Approx(stall(1, h, "job")).epsilon(1e-9));
}
