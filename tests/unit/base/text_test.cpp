// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "base/log.hpp"
#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <locale>
#include <random>

namespace sucl::base {
namespace {

using test::error_of;
using namespace std::chrono_literals;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

TEST(Bytes, EveryUnitIsAPowerOfTwo) {
  EXPECT_EQ(parse_bytes("4"), 4u);
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("12B"), 12u);
  for (const char* text : {"64Ki", "64K", "64k", "64KB", "64KiB", "64kib", " 64 Ki "})
    EXPECT_EQ(parse_bytes(text), 65536u) << text;
  EXPECT_EQ(parse_bytes("1Mi"), 1u << 20);
  EXPECT_EQ(parse_bytes("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("3T"), std::uint64_t{3} << 40);
  EXPECT_EQ(parse_bytes("18446744073709551615"), most);
}

TEST(Bytes, WhatIsNotASizeIsRefused) {
  for (const char* text : {"", " ", "Ki", "-1", "+1", "1.5Mi", "64Kx", "64Kii", "4 5", "1e3",
                           "0x10", "18446744073709551616"})
    EXPECT_NE(error_of([&] { parse_bytes(text); }).find("is not a size"), std::string::npos)
        << text;
  EXPECT_EQ(
      error_of([] { parse_bytes("64Kx"); }),
      "sucl: '64Kx' is not a size [invalid_argument]. Write a whole number of bytes, alone or "
      "with Ki, Mi, Gi or Ti: 64Ki.");
  for (const char* text : {"18446744073709551615Ki", "16777216Ti"})
    EXPECT_NE(error_of([&] { parse_bytes(text); }).find("does not fit"), std::string::npos) << text;
  EXPECT_EQ(parse_bytes("16777215Ti"), std::uint64_t{16777215} << 40);
}

TEST(Bytes, MayBeNegativeInAThreshold) {
  EXPECT_EQ(parse_signed_bytes("-1"), -1);
  EXPECT_EQ(parse_signed_bytes("-4Ki"), -4096);
  EXPECT_EQ(parse_signed_bytes("16Ki"), 16384);
  EXPECT_NE(error_of([] { parse_signed_bytes("--1"); }), "");
  EXPECT_NE(error_of([] { parse_signed_bytes("9223372036854775808"); }), "");
  EXPECT_EQ(print_signed_bytes(-4096), "-4Ki");
}

TEST(Bytes, PrintedSizesReadBackExactly) {
  EXPECT_EQ(print_bytes(0), "0");
  EXPECT_EQ(print_bytes(1000), "1000");
  EXPECT_EQ(print_bytes(65536), "64Ki");
  EXPECT_EQ(print_bytes(65537), "65537");
  EXPECT_EQ(print_bytes(std::uint64_t{5} << 50), "5120Ti");
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t size = (random() >> (random() % 64)) << (random() % 40);
    EXPECT_EQ(parse_bytes(print_bytes(size)), size);
  }
}

TEST(Range, BothEndsBelongToIt) {
  EXPECT_EQ(parse_range("2..8"), (range{2, 8}));
  EXPECT_EQ(parse_range("..8"), (range{0, 8}));
  EXPECT_EQ(parse_range("2.."), (range{2, most}));
  EXPECT_EQ(parse_range(" 2 .. 8 "), (range{2, 8}));
  EXPECT_EQ(parse_range("8"), (range{8, 8}));
  EXPECT_TRUE(parse_range("*").everything());
  EXPECT_TRUE(parse_range("2..8").contains(2));
  EXPECT_TRUE(parse_range("2..8").contains(8));
  EXPECT_FALSE(parse_range("2..8").contains(9));
  EXPECT_FALSE(parse_range("2..8").contains(1));
  EXPECT_EQ(parse_byte_range("4Ki..64Ki"), (range{4096, 65536}));
  EXPECT_EQ(parse_byte_range("1Mi.."), (range{1 << 20, most}));
}

TEST(Range, WhatIsNotARangeIsRefused) {
  for (const char* text : {"", "..", "2...8", "2..8..9", "a..b", "-1..4", "8..2", "2-8", "4Ki"})
    EXPECT_NE(error_of([&] { parse_range(text); }), "") << text;
  EXPECT_EQ(
      error_of([] { parse_byte_range("64Ki..4Ki"); }),
      "sucl: the range '64Ki..4Ki' is empty [invalid_argument]. Write the smaller end first.");
}

TEST(Range, PrintedRangesReadBackExactly) {
  for (const char* text : {"2..8", "..8", "2..", "8", "*", "0"})
    EXPECT_EQ(print_range(parse_range(text)), text);
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; ++i) {
    range r{random() >> (random() % 64), random() >> (random() % 64)};
    if (i % 3 == 0) r.low = 0;
    if (i % 5 == 0) r.high = most;
    if (r.low > r.high) std::swap(r.low, r.high);
    EXPECT_EQ(parse_range(print_range(r)), r);
    EXPECT_EQ(parse_byte_range(print_byte_range(r)), r);
  }
}

TEST(Sequence, DoublesUnlessAFactorIsGiven) {
  using sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_byte_sequence("4:64"), (sizes{4, 8, 16, 32, 64}));
  EXPECT_EQ(parse_byte_sequence("4:63"), (sizes{4, 8, 16, 32}));
  EXPECT_EQ(parse_byte_sequence("4:4"), (sizes{4}));
  EXPECT_EQ(parse_byte_sequence("1Ki:16Ki:4"), (sizes{1024, 4096, 16384}));
  EXPECT_EQ(parse_byte_sequence("0, 4:8, 1Mi"), (sizes{0, 4, 8, 1 << 20}));
  EXPECT_EQ(parse_byte_sequence("4:64Mi").size(), 25u);
  EXPECT_EQ(parse_byte_sequence("1:18446744073709551615").size(), 64u);
  for (const char* text : {"", "0:4", "8:4", "4:8:1", "4:8:2:2", "4:", ":4", "4,,8", "4:x"})
    EXPECT_NE(error_of([&] { parse_byte_sequence(text); }), "") << text;
}

TEST(Duration, SecondsUnlessAUnitIsGiven) {
  EXPECT_EQ(parse_duration("30"), 30s);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("500 MS"), 500ms);
  EXPECT_EQ(parse_duration("10us"), 10us);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("2min"), 2min);
  EXPECT_EQ(parse_duration("1h"), 1h);
  EXPECT_EQ(parse_duration("1.5"), 1500ms);
  EXPECT_EQ(parse_duration("0.000000001s"), 1ns);
  EXPECT_EQ(parse_duration("0"), 0s);
  for (const char* text : {"", "s", "-1", "1.", ".5", "1.5.5", "30sec", "inf", "nan", "1e3"})
    EXPECT_NE(error_of([&] { parse_duration(text); }).find("is not a time"), std::string::npos)
        << text;
  EXPECT_NE(error_of([] { parse_duration("9223372036"); }).find("is too long"), std::string::npos);
  EXPECT_EQ(parse_duration("9223372035.999999999").count(), 9223372035999999999);
}

TEST(Duration, PrintedTimesReadBackExactly) {
  EXPECT_EQ(print_duration(0s), "0s");
  EXPECT_EQ(print_duration(30s), "30s");
  EXPECT_EQ(print_duration(1500ms), "1500ms");
  EXPECT_EQ(print_duration(1us), "1us");
  std::mt19937_64 random(13);
  for (int i = 0; i < 20000; ++i) {
    std::chrono::nanoseconds time(static_cast<std::int64_t>(random() >> (1 + random() % 63)));
    if (time >= 9223372036s) time -= 2s;
    EXPECT_EQ(parse_duration(print_duration(time)), time);
  }
}

// As a program in a German environment has it.
struct comma_for_a_point : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Numbers, AreTheSameInEveryLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new comma_for_a_point));
  const std::string c_locale = std::setlocale(LC_NUMERIC, nullptr);
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");  // where it is installed
  const std::string fixed = print_fixed(1234.5, 3), of_three = print_short(0.0125, 3);
  const auto half = parse_duration("0.5s");
  ::testing::internal::CaptureStderr();
  log(log_level::error, "test", 12345, " ", 0.5);
  const std::string line = ::testing::internal::GetCapturedStderr();
  std::setlocale(LC_NUMERIC, c_locale.c_str());
  std::locale::global(before);
  EXPECT_EQ(fixed, "1234.500");
  EXPECT_EQ(of_three, "0.0125");
  EXPECT_EQ(half, 500ms);
  EXPECT_NE(line.find("12345 0.5"), std::string::npos) << line;
  EXPECT_EQ(print_fixed(-2e300, 0).size(), 302U);
}

TEST(Boolean, HasFourWordsForEach) {
  for (const char* yes : {"true", "on", "yes", "1", "TRUE", " On "})
    EXPECT_TRUE(parse_boolean(yes));
  for (const char* no : {"false", "off", "no", "0", "False"}) EXPECT_FALSE(parse_boolean(no));
  for (const char* text : {"", "2", "truee", "y"})
    EXPECT_NE(error_of([&] { parse_boolean(text); }), "") << text;
}

TEST(Lists, AreTrimmedAndKeepEmptyParts) {
  using parts = std::vector<std::string>;
  EXPECT_EQ(split(" a, b ,c", ','), (parts{"a", "b", "c"}));
  EXPECT_EQ(split("a,,b", ','), (parts{"a", "", "b"}));
  EXPECT_EQ(split("  ", ','), parts{});
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
}

// Whatever comes in, a parser returns or throws sucl::error.
TEST(Parsers, SurviveArbitraryText) {
  std::mt19937_64 random(17);
  const std::string letters = "0123456789.:,*-+kKmMgGtTiIbBsuhn \t\n\"x";
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 8; n > 0; --n) text += letters[random() % letters.size()];
    error_of([&] { parse_bytes(text); });
    error_of([&] { parse_signed_bytes(text); });
    error_of([&] { parse_range(text); });
    error_of([&] { parse_byte_range(text); });
    error_of([&] { parse_byte_sequence(text); });
    error_of([&] { parse_duration(text); });
    error_of([&] { parse_boolean(text); });
  }
}

}  // namespace
}  // namespace sucl::base
