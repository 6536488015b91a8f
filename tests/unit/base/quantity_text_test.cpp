#include "sim/base/quantity_text.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace tpusim;

namespace {

double bytes(const char* text) {
  const auto parsed = parse_bytes(text);
  REQUIRE_MESSAGE(parsed, text << ": " << parsed.message);
  return parsed.value->value();
}
double seconds(const char* text) {
  const auto parsed = parse_seconds(text);
  REQUIRE_MESSAGE(parsed, text << ": " << parsed.message);
  return parsed.value->value();
}
double rate(const char* text) {
  const auto parsed = parse_bytes_per_second(text);
  REQUIRE_MESSAGE(parsed, text << ": " << parsed.message);
  return parsed.value->value();
}
double flops(const char* text) {
  const auto parsed = parse_flops_per_second(text);
  REQUIRE_MESSAGE(parsed, text << ": " << parsed.message);
  return parsed.value->value();
}

}  // namespace

TEST_CASE("sizes take decimal and binary prefixes, bytes and bits") {
  CHECK(bytes("25 MiB") == 26214400);  // 25 * 2^20
  CHECK(bytes("25MiB") == 26214400);
  CHECK(bytes("25 MB") == 25e6);
  CHECK(bytes("1 kB") == 1000);
  CHECK(bytes("1 KB") == 1000);
  CHECK(bytes("1 KiB") == 1024);
  CHECK(bytes("5 EB") == 5e18);  // E is a prefix here, not an exponent
  CHECK(bytes("5EB") == 5e18);
  CHECK(bytes("8 Gb") == 1e9);
  CHECK(bytes("8 Gibit") == 0x1p30);
  CHECK(bytes("16 bits") == 2);
  CHECK(bytes("7 bytes") == 7);
}

TEST_CASE("a number without a unit is in base units, exponents and spaces allowed") {
  CHECK(bytes("26214400") == 26214400);
  CHECK(bytes(" 1.5e3 ") == 1500);
  CHECK(bytes("1e+3 B") == 1000);
  CHECK(bytes("1.5e-3 GB") == 1.5e6);
  CHECK(flops("197e12") == 197e12);
  CHECK(bytes("+2 B") == 2);
  CHECK(bytes(".5 KiB") == 512);
  CHECK(bytes("0") == 0);
}

TEST_CASE("times come out as the double nearest to the decimal written") {
  CHECK(seconds("323 ms") == 0.323);
  CHECK(seconds("10 us") == 1e-5);
  CHECK(seconds("10 \u00b5s") == 1e-5);  // micro sign
  CHECK(seconds("10 \u03bcs") == 1e-5);  // Greek mu
  CHECK(seconds("1 ps") == 1e-12);
  CHECK(seconds("0.3 ns") == 0.3e-9);
  CHECK(seconds("2 min") == 120);
  CHECK(seconds("1.5 h") == 5400);
  CHECK(seconds("2 d") == 172800);
  CHECK(seconds("2.5") == 2.5);
}

TEST_CASE("rates are in bytes, or in bits as networks are sold") {
  CHECK(rate("2 GB/s") == 2e9);
  CHECK(rate("400 Gb/s") == 50e9);
  CHECK(rate("400 Gbps") == 50e9);
  CHECK(rate("400 Gbit/s") == 50e9);
  CHECK(rate("1 GiB/s") == 0x1p30);
}

TEST_CASE("compute rates are FLOPs a second in the three customary spellings") {
  CHECK(flops("312 TFLOP/s") == 312e12);
  CHECK(flops("312 TFLOPs/s") == 312e12);
  CHECK(flops("312 TFLOPS") == 312e12);
  CHECK(flops("1.97 PFLOP/s") == 1.97e15);
}

TEST_CASE("a unit of another kind is named for what it is, with the probable text") {
  const auto missing_rate = parse_bytes_per_second("2 GB");
  CHECK(!missing_rate);
  CHECK(missing_rate.code == Code::bad_unit);
  CHECK(missing_rate.message == "\"2 GB\" is a size, but a rate of bytes such as \"2 GB/s\" is expected here");
  CHECK(missing_rate.suggestion == "2 GB/s");
  CHECK(missing_rate.choices ==
        std::vector<std::string>{"B/s", "MB/s", "GB/s", "TB/s", "MiB/s", "GiB/s", "Mb/s", "Gb/s"});
  const auto rate_for_size = parse_bytes("25 MiB/s");
  CHECK(rate_for_size.message == "\"25 MiB/s\" is a rate of bytes, but a size such as \"25 MiB\" is expected here");
  CHECK(rate_for_size.suggestion == "25 MiB");
  CHECK(parse_bytes("3 ms").message == "\"3 ms\" is a time, but a size such as \"25 MiB\" is expected here");
  CHECK(parse_seconds("3 TFLOP/s").message ==
        "\"3 TFLOP/s\" is a rate of FLOPs, but a time such as \"10 us\" is expected here");
}

TEST_CASE("a misspelt unit is refused with the unit that was probably meant") {
  const auto parsed = parse_seconds("10 seconds");
  CHECK(!parsed);
  CHECK(parsed.code == Code::bad_unit);
  CHECK(parsed.message == "\"10 seconds\" has an unknown unit \"seconds\"; a time such as \"10 us\" is expected here");
  CHECK(parsed.suggestion == "10 s");
  CHECK(parse_seconds("5 m").suggestion == "5 min");
  CHECK(parse_seconds("5 MS").suggestion == "5 ms");
  CHECK(parse_bytes("16 Gi").suggestion == "16 GiB");
  CHECK(parse_bytes("16 gb").suggestion == "16 GB");
  CHECK(parse_bytes("16 mib").suggestion == "16 MiB");
  CHECK(parse_bytes_per_second("16 GBps").suggestion == "16 GB/s");
  CHECK(parse_bytes_per_second("2 gb/s").suggestion == "2 GB/s");
  CHECK(parse_flops_per_second("197 TOPS").suggestion == "197 TFLOP/s");
  CHECK(parse_flops_per_second("197 tflops").suggestion == "197 TFLOPS");
  CHECK(parse_bytes("3 parsecs").suggestion == "");
}

TEST_CASE("what is no number, negative, or out of range is a bad value and not a bad unit") {
  for (const char* text : {"", "   ", "GB", "fast", "nan", "inf", "-inf", "-", ".", "e5", "0x10", "-5 GB", "-0.0 B",
                           "1e400", "1e-400", "1e99999999999999999999", "9e307 EB"}) {
    const auto parsed = parse_bytes(text);
    CAPTURE(text);
    CHECK(!parsed);
    CHECK(parsed.message != "");
    if (std::string(text) != "0x10") CHECK(parsed.code == Code::bad_value);
  }
  CHECK(parse_bytes("0x10").message ==
        "\"0x10\" has an unknown unit \"x10\"; a size such as \"25 MiB\" is expected here");
  CHECK(parse_bytes("-5 GB").message == "\"-5 GB\" is negative; a size cannot be");
  CHECK(parse_bytes("fast").message ==
        "\"fast\" does not begin with a number; a size such as \"25 MiB\" is expected here");
  CHECK(parse_bytes("1e400").message == "\"1e400\" is too large or too small to compute with");
}

TEST_CASE("what follows a complete quantity, a second point or a long text is refused") {
  CHECK(!parse_bytes("25 MiB extra"));
  CHECK(!parse_bytes("1.2.3 GB"));
  CHECK(!parse_bytes("1,000 B"));
  CHECK(!parse_bytes("1_000 B"));
  CHECK(!parse_bytes("5 e3 B"));
  const auto parsed = parse_bytes(std::string(1'000'000, '1'));
  CHECK(parsed.message == "a size such as \"25 MiB\" is expected, not a text of 1000000 bytes");
}

TEST_CASE("times are shown in the unit that suits them") {
  CHECK(format_seconds(Seconds(0.323)) == "323 ms");
  CHECK(format_seconds(Seconds(0)) == "0 s");
  CHECK(format_seconds(Seconds(1.23456)) == "1.23 s");
  CHECK(format_seconds(Seconds(0.9997)) == "1 s");  // 999.7 ms would print as 1000 ms
  CHECK(format_seconds(Seconds(0.99949)) == "999 ms");
  CHECK(format_seconds(Seconds(90)) == "1.5 min");
  CHECK(format_seconds(Seconds(5400)) == "1.5 h");
  CHECK(format_seconds(Seconds(86400 * 12.25)) ==
        "12.2 d");  // 12.25 is exact in binary: the tie goes to the even digit
  CHECK(format_seconds(Seconds(4e-12)) == "4 ps");
  CHECK(format_seconds(Seconds(1e-6)) == "1 us");
  CHECK(format_seconds(Seconds(-0.002)) == "-2 ms");
  CHECK(format_seconds(Seconds(std::numeric_limits<double>::infinity())) == "inf s");
}

TEST_CASE("sizes are shown in powers of 1024 and rates in powers of 1000") {
  CHECK(format_bytes(Bytes(0x1p30 * 15.9)) == "15.9 GiB");
  CHECK(format_bytes(Bytes(1023)) == "1023 B");
  CHECK(format_bytes(Bytes(1024)) == "1 KiB");
  CHECK(format_bytes(Bytes(0)) == "0 B");
  CHECK(format_bytes(Bytes(0x1p40 * 2000)) == "1.95 PiB");  // 2000 / 1024 = 1.953
  CHECK(format_rate(BytesPerSecond(2e9)) == "2 GB/s");
  CHECK(format_rate(BytesPerSecond(819e9)) == "819 GB/s");
  CHECK(format_rate(BytesPerSecond(2.765e12)) == "2.77 TB/s");
  CHECK(format_flops(FlopsPerSecond(197e12)) == "197 TFLOP/s");
  CHECK(format_flops(Flops(1.234e15)) == "1.23 PFLOP");
}

TEST_CASE("counts and shares are shown for people") {
  CHECK(format_count(6738415616) == "6,738,415,616");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(-1234567) == "-1,234,567");
  CHECK(format_count(-123) == "-123");
  CHECK(format_count(0) == "0");
  CHECK(format_count(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
  CHECK(format_short_count(6738415616.0) == "6.74 B");
  CHECK(format_short_count(12) == "12");
  CHECK(format_short_count(1e12) == "1 T");
  CHECK(format_share(0.631) == "63.1 %");
  CHECK(format_share(0) == "0 %");
  CHECK(format_share(1) == "100 %");
}

TEST_CASE("plain numbers keep their integer part whole and drop trailing zeros") {
  CHECK(format_number(1234.5) == "1234");  // 3 digits: no decimals; an exact tie goes to the even digit
  CHECK(format_number(0.0012345) == "0.00123");
  CHECK(format_number(2.5000) == "2.5");
  CHECK(format_number(3.14159265, 6) == "3.14159");
  CHECK(format_number(1e-9) == "1.00e-09");
  CHECK(format_number(-0.5) == "-0.5");
  CHECK(format_number(100) == "100");
}
