#include "reports/text.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "reports/summary.hpp"

using namespace tpusim;
using namespace tpusim::reports;

TEST_CASE("width counts code points, not bytes") {
  CHECK(display_width("8 × 8") == 5);
  CHECK(pad_left("×", 3) == "  ×");
  CHECK(pad_right("×", 3) == "×  ");
  CHECK(truncate("8 × 8 × 8", 5) == "8 × …");
  CHECK(truncate("12345", 5) == "12345");
}

TEST_CASE("wrapping breaks at spaces, keeps newlines and never splits a word") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("a\nb", 7) == std::vector<std::string>{"a", "b"});
  CHECK(wrap("incomprehensible x", 5) == std::vector<std::string>{"incomprehensible", "x"});
  CHECK(wrap("", 5) == std::vector<std::string>{""});
}

TEST_CASE("control characters of a name never reach the terminal") {
  CHECK(printable("a\x1b[31mb\x07\tc") == "a [31mb  c");
}

TEST_CASE("a grid aligns its columns and gives way in the widest one on the left") {
  Grid grid("lrl");
  grid.row({"name", "1 s", "x"});
  grid.row({"a longer name", "100 ms", "y"});
  CHECK(grid.render(2, 80) ==
        "  name              1 s  x\n"
        "  a longer name  100 ms  y\n");
  CHECK(grid.render(2, 22) ==
        "  name          1 s  x\n"
        "  a longer   100 ms  y\n"
        "  name\n");
  Grid word("l");
  word.row({"incomprehensible"});
  CHECK(word.render(0, 10) == "incompreh…\n");
}

TEST_CASE("a bar is exact to an eighth of a block and never leaves its width") {
  CHECK(bar(0.5, 4) == "██");
  CHECK(bar(0.28125, 4) == "█▏");  // 0.28125 * 4 * 8 = 9 eighths
  CHECK(bar(7, 2) == "██");
  CHECK(bar(-1, 2) == "");
  CHECK(bar(std::numeric_limits<double>::quiet_NaN(), 2) == "");
}

TEST_CASE("a share has one decimal, so that a column of them lines up") {
  CHECK(share_text(0.6) == "60.0 %");
  CHECK(share_text(std::numeric_limits<double>::infinity()) == "-");
}

TEST_CASE("counts and rates keep their digits while those are short") {
  CHECK(count_text(5376) == "5,376");
  CHECK(count_text(1.5) == "1.5");
  CHECK(count_text(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(rate_text(44110.8, "tokens/s") == "44,111 tokens/s");
  CHECK(rate_text(1.6777216e6, "tokens/s") == "1.68 M tokens/s");
  CHECK(rate_text(std::nullopt, "tokens/s") == "-");
}

TEST_CASE("an assumption is shown in the unit that fits its size") {
  const auto value = [](std::variant<double, std::string> v, const char* unit) {
    result::Assumption a;
    a.value = std::move(v);
    a.unit = unit;
    return assumption_value(a);
  };
  CHECK(value(3.12e14, "FLOP/s") == "312 TFLOP/s");
  CHECK(value(2.039e12, "B/s") == "2.04 TB/s");
  CHECK(value(4e-6, "s") == "4 us");
  CHECK(value(17179869184.0, "B") == "16 GiB");
  CHECK(value(128.0, "rows") == "128 rows");
  CHECK(value(0.12345, "") == "0.1235");
  CHECK(value(0.9, "1") == "0.9");
  CHECK(value(std::string("flash"), "") == "flash");
}

TEST_CASE("facts come out of any form of scenario, and what is not there is left out") {
  result::Result r;
  r.scenario_json = R"({"model":{"preset":"llama2-70b","layers":4},"mesh":{"data":2,"fsdp":3072},)"
                    R"("cluster":{"chip":{"preset":"tpu-v4"},"topology":"12x16x16","slices":2}})";
  r.model = {540'000'000'000, 118};
  Facts f = facts(r);
  CHECK(f.title == "llama2-70b");
  CHECK(f.model == "llama2-70b: 540 B parameters, 118 layers");
  CHECK(f.cluster == "2 slices of tpu-v4 12x16x16, 6,144 chips");
  CHECK(f.mesh == "data 2 × fsdp 3,072");
  CHECK(f.training == "");
  r.scenario_json = R"({"model":{"family":"fixed"},"cluster":{"chip":"h100","hosts":1},"training":{"global_batch":7}})";
  f = facts(r);
  CHECK(f.model == "fixed: a step of known length");
  CHECK(f.cluster == "1 host of h100, 1 chip");
  CHECK(f.training == "batch of 7 examples");
  for (const char* odd : {"[]", "7", "{\"mesh\":[1],\"model\":3,\"cluster\":null,\"training\":[]}"}) {
    r.scenario_json = odd;
    CHECK(facts(r).mesh == "one chip");
  }
}

TEST_CASE("the headline names step, MFU, the largest loss and the strongest bottleneck") {
  result::Result r;
  CHECK(headline_sentence(r) == "");
  r.step = {Seconds(2), Seconds(1), Seconds(0.25), Seconds(0.5), Seconds(0.25), Seconds(0)};
  r.throughput.mfu = 0.4;
  r.diagnosis = {{"HBM", 0.1, ""}, {"ICI", 0.2, ""}};
  CHECK(headline_sentence(r) ==
        "A step takes 2 s at 40.0 % MFU. Compute is 50.0 % of it; the largest loss is bubble (25.0 %). Twice the ICI "
        "would save 20.0 % of the step.");
}
