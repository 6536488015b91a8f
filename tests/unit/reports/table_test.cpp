#include "reports/table.hpp"

#include <doctest/doctest.h>

#include <string>

#include "reports/text.hpp"
#include "tests/unit/reports/sample_support.hpp"

using namespace tpusim;
using namespace tpusim::reports;

namespace {

// 750 ms of 5 s is 15 %: 0.15 * 40 = 6 blocks. 3 GiB of 16 GiB is 18.75 %, shown as 18.8 %: 7.5 blocks.
const char* const kQuickstart = R"(Llama 2 7B on a v5e 4x4 slice
  model         llama2-7b: 6.74 B parameters, 32 layers
  cluster       tpu-v5e 4x4, 16 chips
  mesh          fsdp 16
  training      batch of 64 sequences of 4,096 tokens, microbatch 1, bf16, adamw, remat full

  step time     5 s in the steady state; first step 5.12 s
  throughput    52,429 tokens/s; 12.8 examples/s
  MFU           76.1 % of peak; HFU 90.0 %; 150 TFLOP/s per chip; attention FLOPs: full
  model work    12 PFLOP per step, whole job
  verification  passed: 3 steps on fsdp 4 equal one device (largest relative error 4.4e-16);
                bytes, FLOPs and peak memory are those that timing charges

Where the step goes (mean over all chips)
  compute                   4 s  80.0 %  ████████████████████████████████
  exposed communication  750 ms  15.0 %  ██████
  bubble                    0 s   0.0 %
  input stall               0 s   0.0 %
  overhead               250 ms   5.0 %  ██

Memory of the fullest chip: 12 GiB of 16 GiB, fits
  parameters         3 GiB  18.8 %  ███████▌
  gradients          2 GiB  12.5 %  █████
  optimizer state    4 GiB  25.0 %  ██████████
  activations        2 GiB  12.5 %  █████
  workspace        512 MiB   3.1 %  █▎
  reserved         512 MiB   3.1 %  █▎

Communication of one chip in one step
  collective      over  algorithm                  times      sent    busy  exposed
  all-gather      fsdp  two axes, both directions  128 x  23.3 GiB   1.5 s   500 ms
  reduce-scatter  fsdp  two axes, both directions   64 x  23.3 GiB  1.25 s   250 ms

What holds it back (each replayed twice as fast)
  - peak FLOP/s: saves 37.5 % of the step; fsdp 8, tensor 2: 4.5 % slower, measured
  - ICI: saves 6.2 % of the step

Notes
  - no input described: the batch is always there
  - timed with 1 device class
  - 2 assumptions, 1 of them guesses: --json lists each with its source
)";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the table of a small run is, line by line, this one") {
  CHECK(table(samples::quickstart()) == kQuickstart);
}

TEST_CASE("no line of a table is wider than asked, and nothing is coloured unless asked") {
  for (std::size_t width : {std::size_t{60}, std::size_t{80}, std::size_t{100}})
    for (const result::Result& r :
         {samples::quickstart(), samples::pipeline(), samples::minimal(), samples::hostile()}) {
      TableOptions options;
      options.width = width;
      const std::string text = table(r, options);
      CHECK_FALSE(has(text, "\x1b"));
      for (const std::string& line : wrap(text, 100000)) CHECK(display_width(line) <= width);
    }
}

TEST_CASE("colours change nothing but the escape sequences") {
  TableOptions options;
  options.colour = true;
  const std::string coloured = table(samples::hostile(), options);
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') i = coloured.find('m', i) + 1;
    if (i < coloured.size() && coloured[i] == '\x1b') i = coloured.find('m', i) + 1;
    plain += coloured[i];
  }
  CHECK(plain == table(samples::hostile()));
  CHECK(has(coloured, "\x1b[1;31mThis plan cannot work"));
}

TEST_CASE("an empty section says so in a word") {
  const std::string text = table(samples::minimal());
  CHECK(has(text, "\nCommunication of one chip in one step\n  none\n"));
  CHECK(has(text, "  no replay was made\n"));
  CHECK(has(text, "  verification  not run\n"));
  CHECK_FALSE(has(text, "tokens/s"));
}

TEST_CASE("a plan that does not fit says so at the top, and a number that does not exist is a dash") {
  const std::string text = table(samples::hostile());
  CHECK(has(text, "This plan cannot work: out of memory; it needs <42 GiB> on the fullest chip; there is 16 GiB"));
  // The peak: 12 GiB + 30e9 B = 42,884,901,888 B = 39.9 GiB.
  CHECK(has(text, "\nMemory of the fullest chip: 39.9 GiB of 16 GiB, DOES NOT FIT\n"));
  CHECK(has(text, "\n  bubble                      -       -\n"));
  CHECK(has(text, "\n  MFU           -; HFU 90.0 %"));
  CHECK(has(text, "FAILED: 3 steps on fsdp 4 differ from one device, first at layer 3, backward"));
}

TEST_CASE("a run that was not timed has no shares") {
  result::Result r = samples::quickstart();
  r.step = {};
  CHECK(has(table(r), "\nWhere the step goes (mean over all chips)\n  no step was timed\n"));
}

TEST_CASE("a chip whose memory has no bound is said to be unlimited, and shares are of the peak") {
  result::Result r = samples::quickstart();
  r.memory.capacity_bytes = INT64_MAX;
  const std::string text = table(r);
  CHECK(has(text,
            "\nMemory of the fullest chip: 12 GiB of unlimited, fits\n  parameters         3 GiB  25.0 %"));  // 3 / 12
}

TEST_CASE("a name with a newline in it stays one line of the table") {
  result::Result r = samples::quickstart();
  r.scenario_json = R"({"version":1,"name":"one\ntwo","model":"gpt2"})";
  CHECK(table(r).rfind("one two\n", 0) == 0);
}
