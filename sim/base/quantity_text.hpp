// Quantities as people write and read them: "25 MiB", "2 GB/s", "400 Gb/s", "10 us", "312 TFLOP/s".
//
// Grammar: a decimal number (JSON's, a leading '+' or '.' allowed), optional spaces, a unit. Without a unit the number
// is in bytes, seconds, bytes a second or FLOPs a second. Units are case-sensitive, because Gb (bits) is not GB
// (bytes). Prefixes: k (also K) M G T P E are powers of 1000, Ki Mi Gi Ti Pi Ei are powers of 1024 (IEC 80000-13). A
// decimal prefix is applied to the digits before they are rounded, so "323 ms" is exactly the double nearest to 0.323.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"

namespace tpusim {

// A quantity, or why the text is none: the fields are those of a Diagnostic (DiagnosticSink::error takes them in
// order).
template <class Q>
struct ParsedQuantity {
  std::optional<Q> value;
  Code code = Code::bad_unit;  // bad_unit: the unit; bad_value: no number, negative, or not finite
  std::string message;
  std::string suggestion;            // the whole text as it was probably meant, "2 GB/s" for "2 GB"
  std::vector<std::string> choices;  // units that fit
  explicit operator bool() const { return value.has_value(); }
};

// Sizes: B, kB ... EB, KiB ... EiB; b or bit with the same prefixes for bits; "byte", "bytes", "bits" too.
ParsedQuantity<Bytes> parse_bytes(std::string_view text);
// Times: ps ns us (also µs) ms s min h d.
ParsedQuantity<Seconds> parse_seconds(std::string_view text);
// Rates: a size followed by "/s", or bits as in "400 Gbps".
ParsedQuantity<BytesPerSecond> parse_bytes_per_second(std::string_view text);
// Compute rates: FLOP/s, FLOPs/s, FLOPS with a decimal prefix.
ParsedQuantity<FlopsPerSecond> parse_flops_per_second(std::string_view text);

// For people: three significant digits, trailing zeros dropped, never for a machine to read back.
std::string format_seconds(Seconds time);       // "323 ms", "1.5 h"; below 1 ps "0 s"
std::string format_bytes(Bytes size);           // "15.9 GiB" (powers of 1024)
std::string format_rate(BytesPerSecond rate);   // "2 GB/s" (powers of 1000, as vendors do)
std::string format_flops(Flops work);           // "1.2 PFLOP"
std::string format_flops(FlopsPerSecond rate);  // "197 TFLOP/s"
std::string format_share(double share);         // 0.631 -> "63.1 %"
std::string format_count(std::int64_t count);   // "6,738,415,616"
std::string format_short_count(double count);   // "6.74 B" (K M B T: thousand, million, billion, trillion)
// `value` with `digits` significant digits and no exponent between 1e-6 and 1e15; trailing zeros are dropped.
std::string format_number(double value, int digits = 3);

}  // namespace tpusim
