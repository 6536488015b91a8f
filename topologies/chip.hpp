// A chip as plain data: every number carries its unit, its source and how far it is to be trusted.
//
// Rates are per chip (a TPU chip with two TensorCores is one chip here; JAX shows a TPU7x chip as two devices). Peaks
// are dense and in FLOP/s, a multiply-add being two. What is achieved is the peak times a measured or fitted
// efficiency; nothing here is fitted per case. Numbers from the catalogue are never read past a scenario's overrides
// (apply_overrides).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"

namespace tpusim::topologies {

// Where a number comes from. `scenario`: the user's own file replaced it.
enum class Confidence { measured, vendor, paper, fitted, guess, scenario };
std::string_view confidence_name(Confidence confidence);  // "measured"
std::optional<Confidence> confidence_from_name(std::string_view name);

template <class T>
struct Fact {
  T value{};
  std::string unit;    // "B/s", "FLOP/s", "s", "B", "1" (a fraction or a count), "USD/h", "Hz"
  std::string source;  // a document, a measured row, or the derivation
  Confidence confidence = Confidence::guess;
  bool operator==(const Fact&) const = default;
};

enum class ChipKind { tpu, gpu, cpu };
enum class Precision { bf16, f32, int8, fp8 };

// When an axis of a TPU slice is a ring.
enum class WrapRule {
  none,                 // never: no torus links at all (GPU, CPU), or an always open mesh
  multiples_of_four,    // every axis, if every dimension is a multiple of 4 (optical switches join cubes 4x4x4)
  axis_of_wrap_length,  // an axis exactly as long as `wrap_length` (the pod's edge)
  every_axis            // always (the ideal chip)
};

using Shape = std::vector<std::int64_t>;
std::string shape_text(const Shape& shape);  // "4x4x8"
std::optional<Shape> parse_shape(
    std::string_view text);  // "4x4x8" or "4X4x8"; nullopt unless positive integers below 2^31

// Which slices of this chip can be had. `dimensions` is 0 for chips without a torus.
struct SliceRules {
  int dimensions = 0;
  WrapRule wrap = WrapRule::none;
  std::int64_t wrap_length = 0;
  Shape pod;                   // the largest shape, e.g. 16x16; a slice fits inside it in some order of its axes
  std::int64_t max_chips = 0;  // of one slice
  std::vector<Shape> listed;   // shapes that the provider offers, small to large
  std::string source;
  Confidence confidence = Confidence::guess;
  bool operator==(const SliceRules&) const = default;
};

// A missing (nullopt) peak means that the chip has no such unit. All values are finite: an ideal chip writes 1e30 for
// "no limit".
struct Chip {
  std::string name;  // "tpu-v5e"
  std::string help;  // one line
  ChipKind kind = ChipKind::tpu;

  // Matrix unit. A product [m,k] x [k,n] costs 2 m' n' k' / (peak * matrix_efficiency), primes: rounded up to the
  // tiles.
  std::optional<Fact<FlopsPerSecond>> peak_bf16, peak_f32, peak_int8, peak_fp8;
  Fact<double> matrix_efficiency;                            // of a large product, of peak
  Fact<double> matrix_tile_m, matrix_tile_n, matrix_tile_k;  // 1: no tiles
  // Vector unit and memory.
  Fact<FlopsPerSecond> vector_flops;  // f32 elementwise FLOP/s of the whole chip
  Fact<Bytes> hbm_capacity;
  Fact<Bytes> hbm_reserved;  // kept by the runtime, not usable by a program
  Fact<BytesPerSecond> hbm_bandwidth;
  Fact<double> hbm_efficiency;  // achieved of hbm_bandwidth by a long stream
  Fact<Seconds> kernel_floor;   // fixed cost of one fused instruction
  // Links between chips. TPU: ICI, two links per torus axis. GPU: one port into NVSwitch. CPU: none (rate 0).
  Fact<double> link_count;
  Fact<BytesPerSecond> link_rate;     // one direction of one link (TPU) or of the chip's port (GPU)
  Fact<double> link_efficiency;       // achieved of link_rate by a long transfer
  Fact<Seconds> link_latency;         // one hop (TPU) or one message through the switch (GPU)
  Fact<Seconds> collective_overhead;  // fixed cost of starting one collective
  // What the collective library needs to know besides, where the chip has one (libraries/).
  std::string library;                                // "nccl"; "": rings at link_latency and link_rate
  std::optional<Fact<BytesPerSecond>> ll_rate;        // most that its LL protocol moves over one port
  std::optional<Fact<double>> in_network_efficiency;  // of the link's rate, where the switch reduces; none: it cannot
  // Hosts. Exactly one of the two NIC facts is there: a card shared by the chips of a host, or one per chip.
  Fact<double> chips_per_host;
  std::optional<Fact<BytesPerSecond>> host_nic_rate;  // one direction, whole host
  std::optional<Fact<BytesPerSecond>> chip_nic_rate;  // one direction, each chip's own card
  Fact<double> nic_efficiency;
  Fact<Seconds> nic_latency;       // one message between hosts or slices
  Fact<BytesPerSecond> pcie_rate;  // host to chip, one direction, per chip
  // Facts for people and prices; the simulator does not read clock_rate.
  std::optional<Fact<double>> clock_rate;
  std::optional<Fact<double>> price_per_hour;  // USD per chip and hour, on demand

  SliceRules slices;

  // nullopt: the chip cannot multiply this type.
  std::optional<FlopsPerSecond> peak(Precision precision) const;
  // One direction of the network card that one chip can count on, before nic_efficiency.
  BytesPerSecond nic_share() const;
  // hbm_capacity - hbm_reserved.
  Bytes usable_hbm() const { return hbm_capacity.value - hbm_reserved.value; }
  bool operator==(const Chip&) const = default;
};

// A fact flattened for lists: what result.assumptions and `list chips` show.
struct FactRow {
  std::string name;  // the override key, "hbm_bandwidth"
  double value = 0;  // in `unit`
  std::string unit;
  std::string source;
  Confidence confidence = Confidence::guess;
  bool operator==(const FactRow&) const = default;
};
// All facts that the chip has, in the order of the declaration above.
std::vector<FactRow> facts(const Chip& chip);
// Only those named, in the given order; a name without a fact is an InternalError.
std::vector<FactRow> facts(const Chip& chip, const std::vector<std::string>& names);

// What a scenario may replace, e.g. {"preset": "tpu-v5e", "hbm_bandwidth": "900 GB/s"}.
struct OverrideKey {
  std::string name;
  std::string unit;  // what a value with a unit must be a quantity of
  std::string help;
};
std::vector<OverrideKey> override_keys();

struct Override {
  std::string key;
  double value = 0;  // in the key's unit
};
// Replaces facts; replaced ones have source "scenario" and confidence scenario. Unknown keys (with a suggestion) and
// values out of range go to `sink` with pointer `pointer + "/" + key`. chip_nic_rate displaces host_nic_rate and the
// other way round.
Chip apply_overrides(Chip chip, const std::vector<Override>& overrides, const std::string& pointer,
                     DiagnosticSink& sink);

}  // namespace tpusim::topologies
