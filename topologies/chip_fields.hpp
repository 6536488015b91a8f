// The one list of a chip's facts: key, unit, range and member. The card reader, the overrides and the listings all walk
// it, so that a fact added here is read, checked, listed and can be replaced.
#pragma once

#include <optional>
#include <string_view>

#include "topologies/chip.hpp"

namespace tpusim::topologies {

enum class FactRange {
  positive,      // > 0
  non_negative,  // >= 0
  fraction,      // 0 < x <= 1
  count          // a whole number >= 1
};

struct FieldInfo {
  std::string_view key;
  std::string_view unit;
  FactRange range;
  std::string_view help;
};

// Calls f(FieldInfo, member) for each fact in declaration order; a member is Fact<T> or std::optional<Fact<T>>.
template <class ChipT, class F>
void for_each_fact(ChipT& c, F&& f) {
  using R = FactRange;
  f(FieldInfo{"peak_bf16", "FLOP/s", R::positive, "dense matrix rate of bf16"}, c.peak_bf16);
  f(FieldInfo{"peak_f32", "FLOP/s", R::positive, "dense matrix rate of f32"}, c.peak_f32);
  f(FieldInfo{"peak_int8", "FLOP/s", R::positive, "dense matrix rate of int8"}, c.peak_int8);
  f(FieldInfo{"peak_fp8", "FLOP/s", R::positive, "dense matrix rate of fp8"}, c.peak_fp8);
  f(FieldInfo{"matrix_efficiency", "1", R::fraction, "part of the peak that a large product reaches"},
    c.matrix_efficiency);
  f(FieldInfo{"matrix_tile_m", "1", R::count, "rows of a product are rounded up to this"}, c.matrix_tile_m);
  f(FieldInfo{"matrix_tile_n", "1", R::count, "columns of a product are rounded up to this"}, c.matrix_tile_n);
  f(FieldInfo{"matrix_tile_k", "1", R::count, "the contracted size is rounded up to this"}, c.matrix_tile_k);
  f(FieldInfo{"vector_flops", "FLOP/s", R::positive, "elementwise rate of f32"}, c.vector_flops);
  f(FieldInfo{"hbm_capacity", "B", R::positive, "device memory"}, c.hbm_capacity);
  f(FieldInfo{"hbm_reserved", "B", R::non_negative, "device memory kept by the runtime"}, c.hbm_reserved);
  f(FieldInfo{"hbm_bandwidth", "B/s", R::positive, "device memory bandwidth"}, c.hbm_bandwidth);
  f(FieldInfo{"hbm_efficiency", "1", R::fraction, "part of hbm_bandwidth that a long stream reaches"},
    c.hbm_efficiency);
  f(FieldInfo{"kernel_floor", "s", R::non_negative, "fixed cost of one fused instruction"}, c.kernel_floor);
  f(FieldInfo{"link_count", "1", R::non_negative, "links of one chip to other chips"}, c.link_count);
  f(FieldInfo{"link_rate", "B/s", R::non_negative, "one direction of one link"}, c.link_rate);
  f(FieldInfo{"link_efficiency", "1", R::fraction, "part of link_rate that a long transfer reaches"},
    c.link_efficiency);
  f(FieldInfo{"link_latency", "s", R::non_negative, "one hop, or one message through the switch"}, c.link_latency);
  f(FieldInfo{"collective_overhead", "s", R::non_negative, "fixed cost of starting one collective"},
    c.collective_overhead);
  f(FieldInfo{"ll_rate", "B/s", R::positive, "most that NCCL's LL protocol moves over one port"}, c.ll_rate);
  f(FieldInfo{"in_network_efficiency", "1", R::fraction, "part of the link's rate where the switch reduces"},
    c.in_network_efficiency);
  f(FieldInfo{"chips_per_host", "1", R::count, "chips that share a host"}, c.chips_per_host);
  f(FieldInfo{"host_nic_rate", "B/s", R::positive, "network card of a host, one direction"}, c.host_nic_rate);
  f(FieldInfo{"chip_nic_rate", "B/s", R::positive, "network card of each chip, one direction"}, c.chip_nic_rate);
  f(FieldInfo{"nic_efficiency", "1", R::fraction, "part of the card's rate that a long transfer reaches"},
    c.nic_efficiency);
  f(FieldInfo{"nic_latency", "s", R::non_negative, "one message between hosts or slices"}, c.nic_latency);
  f(FieldInfo{"pcie_rate", "B/s", R::positive, "host to chip, one direction, per chip"}, c.pcie_rate);
  f(FieldInfo{"clock_rate", "Hz", R::positive, "clock, for information"}, c.clock_rate);
  f(FieldInfo{"price_per_hour", "USD/h", R::non_negative, "price of one chip on demand"}, c.price_per_hour);
}

// The plain number of a fact and back.
inline double raw(double v) {
  return v;
}
template <int B, int S, int F>
double raw(Quantity<B, S, F> q) {
  return q.value();
}
template <class T>
void assign(Fact<T>& fact, double value, std::string unit, std::string source, Confidence confidence) {
  fact = Fact<T>{T(value), std::move(unit), std::move(source), confidence};
}
template <class T>
void assign(std::optional<Fact<T>>& fact, double value, std::string unit, std::string source, Confidence confidence) {
  fact = Fact<T>{T(value), std::move(unit), std::move(source), confidence};
}
template <class T>
const Fact<T>* get(const Fact<T>& fact) {
  return &fact;
}
template <class T>
const Fact<T>* get(const std::optional<Fact<T>>& fact) {
  return fact ? &*fact : nullptr;
}
template <class T>
constexpr bool is_required(const Fact<T>&) {
  return true;
}
template <class T>
constexpr bool is_required(const std::optional<Fact<T>>&) {
  return false;
}

// "" when the value is in range, else what was expected: "a number greater than 0".
std::string range_error(FactRange range, double value);

}  // namespace tpusim::topologies
