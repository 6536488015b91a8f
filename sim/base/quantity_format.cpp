#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/quantity_text.hpp"

namespace tpusim {
namespace {

// How many decimals leave `digits` significant ones; the integer part is always shown in full.
int decimals_of(double value, int digits) {
  if (value == 0) return 0;
  const int decade = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::max(0, digits - 1 - decade);
}

struct Scale {
  const char* symbol;
  double size;
};

// In the largest unit that leaves at least 1, judged by what will be printed: 999.7 ms shows as 1 s, not as 1000 ms.
template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales, const char* base) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, base);
  std::size_t i = 0;
  for (; i + 1 < N; ++i) {
    const double own = value / scales[i].size;
    const double shift = std::pow(10.0, decimals_of(own, 3));
    if (std::round(std::abs(own) * shift) / shift * scales[i].size < scales[i + 1].size) break;
  }
  return fmt::format("{} {}", format_number(value / scales[i].size), scales[i].symbol);
}

}  // namespace

std::string format_number(double value, int digits) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double size = std::abs(value);
  if (size < 1e-6 || size >= 1e15) return fmt::format("{:.{}e}", value, digits - 1);
  std::string text = fmt::format("{:.{}f}", value, decimals_of(value, digits));
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string format_seconds(Seconds time) {
  static constexpr std::array<Scale, 8> kScales = {
      {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
  return scaled(time.value(), kScales, "s");
}

std::string format_bytes(Bytes size) {
  static constexpr std::array<Scale, 7> kScales = {
      {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}, {"EiB", 0x1p60}}};
  return scaled(size.value(), kScales, "B");
}

std::string format_rate(BytesPerSecond rate) {
  static constexpr std::array<Scale, 7> kScales = {
      {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}, {"EB/s", 1e18}}};
  return scaled(rate.value(), kScales, "B/s");
}

std::string format_flops(Flops work) {
  static constexpr std::array<Scale, 7> kScales = {
      {{"FLOP", 1}, {"kFLOP", 1e3}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18}}};
  return scaled(work.value(), kScales, "FLOP");
}

std::string format_flops(FlopsPerSecond rate) {
  return format_flops(Flops(rate.value())) + "/s";
}

std::string format_share(double share) {
  return format_number(share * 100) + " %";
}

std::string format_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string format_short_count(double count) {
  static constexpr std::array<Scale, 5> kScales = {{{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}}};
  std::string text = scaled(count, kScales, "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace tpusim
