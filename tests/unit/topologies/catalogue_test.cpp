#include "topologies/catalogue.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/base/check.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

TEST_CASE("the catalogue holds every chip that the contract names, in order") {
  CHECK(chip_names() == std::vector<std::string>{"tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu7x",
                                                 "v100", "a100-40gb", "a100-80gb", "h100", "h200", "b200",
                                                 "cpu-epyc-9654", "ideal-v5p"});
}

TEST_CASE("every card in the folder is embedded") {
  std::size_t cards = 0;
  for (const auto& file : std::filesystem::directory_iterator(TPUSIM_SOURCE_DIR "/topologies/catalogue")) {
    ++cards;
    CHECK_MESSAGE(find_chip(file.path().stem().string()).has_value(), file.path().string());
  }
  CHECK(cards == chip_names().size());
}

TEST_CASE("every number of every chip has a unit, a source and a confidence other than the scenario's") {
  for (const std::string& name : chip_names()) {
    const Chip chip = *find_chip(name);
    for (const FactRow& row : facts(chip)) {
      CAPTURE(name);
      CAPTURE(row.name);
      CHECK_FALSE(row.unit.empty());
      CHECK(row.source.size() > 5);
      CHECK(row.confidence != Confidence::scenario);
    }
    CHECK_FALSE(chip.slices.source.empty());
  }
}

TEST_CASE("published peaks, memories and links are those of hardware documents") {
  struct Row {
    const char* chip;
    double bf16, capacity, bandwidth, link;
  };
  // Peaks and memory: vendor pages; 16 GiB = 17179869184 B, 32 GiB = 34359738368 B; links: the scaling book's one-way
  // rates. What A100 and H100 have is what nvidia-smi prints: 81,920 MiB, and 85,520,809,984 B as 81,559 MiB.
  const Row rows[] = {
      {"tpu-v3", 123e12, 34359738368., 900e9, 83e9},
      {"tpu-v4", 275e12, 34359738368., 1200e9, 45e9},
      {"tpu-v5e", 197e12, 17179869184., 819e9, 45e9},
      {"tpu-v5p", 459e12, 103079215104., 2765e9, 90e9},
      {"tpu-v6e", 918e12, 34359738368., 1638e9, 90e9},
      {"tpu7x", 2307e12, 206158430208., 7380e9, 100e9},
      {"a100-80gb", 312e12, 85899345920., 2039e9, 300e9},
      {"h100", 989e12, 85520809984., 3350e9, 450e9},
      {"h200", 989e12, 141e9, 4800e9, 450e9},
      {"b200", 2250e12, 180e9, 8000e9, 900e9},
  };
  for (const Row& row : rows) {
    CAPTURE(row.chip);
    const Chip chip = *find_chip(row.chip);
    CHECK(chip.peak(Precision::bf16)->value() == row.bf16);
    CHECK(chip.hbm_capacity.value.value() == row.capacity);
    CHECK(chip.hbm_bandwidth.value.value() == row.bandwidth);
    CHECK(chip.link_rate.value.value() == row.link);
  }
}

TEST_CASE("peaks agree with matrix units x clock where both are published") {
  // MXUs per chip x 2 x 128^2 x clock: 4 x 2 x 16384 x 1.5e9 = 196.6e12; 8 x ... x 1.75e9 = 458.8e12; 8 x ... x 1.05e9
  // = 275.3e12.
  struct Row {
    const char* chip;
    double units;
  };
  for (const Row row : {Row{"tpu-v4", 8}, Row{"tpu-v5e", 4}, Row{"tpu-v5p", 8}, Row{"tpu-v3", 4}, Row{"tpu-v2", 2}}) {
    const Chip chip = *find_chip(row.chip);
    const double derived = row.units * 2 * 128 * 128 * chip.clock_rate->value;
    CAPTURE(row.chip);
    CHECK(derived / chip.peak(Precision::bf16)->value() == doctest::Approx(1).epsilon(0.01));
  }
}

TEST_CASE("a chip's share of the network card is its own card, or its host's divided by the chips of the host") {
  CHECK(find_chip("h100")->nic_share() == BytesPerSecond(50e9));
  CHECK(find_chip("tpu-v5p")->nic_share() == BytesPerSecond(6.25e9));  // 25 GB/s / 4, the scaling book's 6.25
  CHECK(find_chip("tpu-v5e")->nic_share() == BytesPerSecond(3.125e9));
}

TEST_CASE("usable memory is what XLA reports: capacity less the runtime's reserve") {
  const double gib = 1073741824;
  CHECK(find_chip("tpu-v5e")->usable_hbm().value() / gib == 15.75);
  CHECK(find_chip("tpu-v4")->usable_hbm().value() / gib == 30.75);
  CHECK(find_chip("tpu-v6e")->usable_hbm().value() / gib == 31.25);
  CHECK(find_chip("tpu-v5p")->usable_hbm().value() / gib == doctest::Approx(95.74).epsilon(1e-4));
}

TEST_CASE("a chip without a unit for a type says so") {
  CHECK(find_chip("tpu-v4")->peak(Precision::fp8) == std::nullopt);
  CHECK(find_chip("tpu7x")->peak(Precision::int8) == std::nullopt);
  CHECK(find_chip("tpu7x")->peak(Precision::fp8) == FlopsPerSecond(4614e12));
}

TEST_CASE("the ideal chip has the book's peak and link rate and no other cost") {
  const Chip chip = *find_chip("ideal-v5p");
  CHECK(chip.peak(Precision::bf16) == FlopsPerSecond(459e12));
  CHECK(chip.link_rate.value * chip.link_efficiency.value == BytesPerSecond(90e9));
  CHECK(chip.matrix_efficiency.value == 1);
  CHECK(chip.matrix_tile_m.value * chip.matrix_tile_n.value * chip.matrix_tile_k.value == 1);
  CHECK(chip.kernel_floor.value == Seconds(0));
  CHECK(chip.link_latency.value == Seconds(0));
  CHECK(chip.collective_overhead.value == Seconds(0));
  CHECK(chip.hbm_bandwidth.value.value() >= 1e30);
}

TEST_CASE("an unknown chip is not there, and the nearest name is offered") {
  CHECK(find_chip("tpu-v5") == std::nullopt);
  CHECK(nearest("tpu_v5pp", chip_names()) == "tpu-v5p");
}

TEST_CASE("overrides replace numbers, say so, and leave the rest") {
  DiagnosticSink sink;
  const Chip before = *find_chip("tpu-v5e");
  const Chip after = apply_overrides(before, {{"hbm_bandwidth", 900e9}, {"peak_fp8", 400e12}}, "/cluster/chip", sink);
  CHECK(sink.all().empty());
  Chip expected = before;
  expected.hbm_bandwidth = {BytesPerSecond(900e9), "B/s", "scenario", Confidence::scenario};
  expected.peak_fp8 = Fact<FlopsPerSecond>{FlopsPerSecond(400e12), "FLOP/s", "scenario", Confidence::scenario};
  CHECK(after == expected);
}

TEST_CASE("a chip's own card displaces its host's") {
  DiagnosticSink sink;
  const Chip chip = apply_overrides(*find_chip("tpu-v5e"), {{"chip_nic_rate", 10e9}}, "", sink);
  CHECK(chip.nic_share() == BytesPerSecond(10e9));
  CHECK_FALSE(chip.host_nic_rate.has_value());
}

TEST_CASE("wrong overrides are all reported, each at its place") {
  DiagnosticSink sink;
  apply_overrides(*find_chip("tpu-v5e"),
                  {{"hbm_bandwith", 1}, {"link_rate", -1}, {"matrix_efficiency", 1.5}, {"matrix_tile_m", 2.5}}, "/c",
                  sink);
  REQUIRE(sink.all().size() == 4);
  CHECK(sink.all()[0].code == Code::unknown_key);
  CHECK(sink.all()[0].pointer == "/c/hbm_bandwith");
  CHECK(sink.all()[0].suggestion == "hbm_bandwidth");
  CHECK(sink.all()[1].pointer == "/c/link_rate");
  CHECK(sink.all()[2].pointer == "/c/matrix_efficiency");
  CHECK(sink.all()[3].pointer == "/c/matrix_tile_m");
  CHECK(sink.all()[1].message == "expected 0, or a number from 1e-30 to 1e30 in B/s, found -1");
  CHECK(sink.all()[3].message == "expected a whole number from 1 to 1e9, found 2.5");
}

TEST_CASE("a reserve larger than the memory is a conflict") {
  DiagnosticSink sink;
  apply_overrides(*find_chip("tpu-v5e"), {{"hbm_capacity", 1e6}}, "/c", sink);
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].code == Code::conflict);
}

TEST_CASE("facts can be listed by name, in the asked order") {
  const Chip chip = *find_chip("tpu-v5e");
  const std::vector<FactRow> rows = facts(chip, {"link_rate", "peak_bf16"});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "link_rate");
  CHECK(rows[0].value == 45e9);
  CHECK(rows[1] == FactRow{"peak_bf16", 197e12, "FLOP/s", chip.peak_bf16->source, Confidence::vendor});
  CHECK_THROWS_AS(facts(chip, {"peak_fp8"}), InternalError);
}

namespace {

std::vector<Diagnostic> faults_of(const std::string& card) {
  try {
    parse_chip(card, "x.json");
  } catch (const ScenarioError& e) {
    return e.diagnostics;
  }
  return {};
}

bool has_fault(const std::vector<Diagnostic>& faults, Code code, const std::string& pointer) {
  for (const Diagnostic& d : faults)
    if (d.code == code && d.pointer == pointer && d.file == "x.json") return true;
  return false;
}

}  // namespace

TEST_CASE("a card without a source, a confidence or the right unit is refused with every fault") {
  const std::vector<Diagnostic> faults = faults_of(R"({
    "name": "x", "help": "y", "kind": "tpu",
    "facts": {
      "peak_bf16": {"value": 1, "unit": "FLOP/s", "confidence": "vendor"},
      "peak_f32": {"value": 1, "unit": "FLOP/s", "source": "z"},
      "hbm_bandwidth": {"value": 1, "unit": "B", "source": "z", "confidence": "vendor"},
      "hbm_capacity": {"value": -1, "unit": "B", "source": "z", "confidence": "hearsay"},
      "link_rat": {}
    },
    "slices": {"dimensions": 2, "wrap": "sometimes", "wrap_length": 0, "pod": "16", "max_chips": 1, "listed": ["0x1"],
               "source": "s", "confidence": "guess"}})");
  CHECK(has_fault(faults, Code::missing_key, "/facts/peak_bf16"));
  CHECK(has_fault(faults, Code::missing_key, "/facts/peak_f32"));
  CHECK(has_fault(faults, Code::bad_unit, "/facts/hbm_bandwidth/unit"));
  CHECK(has_fault(faults, Code::bad_value, "/facts/hbm_capacity/value"));
  CHECK(has_fault(faults, Code::unknown_name, "/facts/hbm_capacity/confidence"));
  CHECK(has_fault(faults, Code::unknown_key, "/facts/link_rat"));
}

TEST_CASE("a card that is not JSON, or not an object, is refused") {
  CHECK(has_fault(faults_of("{"), Code::syntax, ""));
  CHECK(has_fault(faults_of("[]"), Code::wrong_type, ""));
}

TEST_CASE("the registries offer all chips and the four GPU systems") {
  Registry<Chip> chips;
  register_builtin(chips);
  CHECK(chips.names() == chip_names());
  CHECK(chips.find("h100")->value == *find_chip("h100"));
  Registry<ClusterPreset> presets;
  register_builtin(presets);
  CHECK(presets.names() == std::vector<std::string>{"dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200"});
  for (const auto& entry : presets.entries()) CHECK(find_chip(entry.value.chip).has_value());
}

TEST_CASE("shapes are read as sizes joined by x and nothing else") {
  CHECK(parse_shape("4x4x8") == Shape{4, 4, 8});
  CHECK(parse_shape("16X16") == Shape{16, 16});
  CHECK(parse_shape("7") == Shape{7});
  for (const char* bad : {"", "x", "4x", "x4", "4xx4", "0x4", "-4x4", "4*4", "4 x 4", "99999999999x4", "4x4.0"})
    CHECK_MESSAGE(parse_shape(bad) == std::nullopt, bad);
  CHECK(shape_text({4, 4, 8}) == "4x4x8");
}
