// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/fp8.hpp>

#include "support/special_elements.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace {

using namespace sucl;

struct e4m3_format {
  static float widen(unsigned bits) { return to_float(fp8_e4m3{static_cast<std::uint8_t>(bits)}); }
  static unsigned narrow(float f) { return to_fp8_e4m3(f).bits; }
  static constexpr reference::narrow_format format = reference::e4m3;
};

struct e5m2_format {
  static float widen(unsigned bits) { return to_float(fp8_e5m2{static_cast<std::uint8_t>(bits)}); }
  static unsigned narrow(float f) { return to_fp8_e5m2(f).bits; }
  static constexpr reference::narrow_format format = reference::e5m2;
};

template <class Format>
class fp8 : public testing::Test {};
using fp8_formats = testing::Types<e4m3_format, e5m2_format>;
TYPED_TEST_SUITE(fp8, fp8_formats);

TYPED_TEST(fp8, widens_every_value_and_narrows_it_again) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const float got = TypeParam::widen(bits);
    const double wanted = TypeParam::format.decode(bits);
    EXPECT_EQ(std::isnan(got), std::isnan(wanted)) << bits;
    EXPECT_TRUE(got == wanted || std::isnan(wanted)) << bits;
    EXPECT_EQ(std::signbit(got), bits >= 128) << bits;
    EXPECT_EQ(TypeParam::narrow(got), bits);
  }
}

// Around every value and every tie, and a number of every magnitude.
TYPED_TEST(fp8, rounds_to_nearest_even) {
  const auto check = [](float f) {
    const unsigned got = TypeParam::narrow(f);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(TypeParam::format.decode(got)));
    } else {
      ASSERT_EQ(got, TypeParam::format.encode(f)) << f;
    }
  };
  for (int code = 0; code <= TypeParam::format.infinity(); ++code)
    for (const double point :
         {TypeParam::format.value(code),
          (TypeParam::format.value(code) + TypeParam::format.value(code + 1)) / 2}) {
      const float f = static_cast<float>(point);
      for (const float g : {f, std::nextafterf(f, INFINITY), std::nextafterf(f, -INFINITY)})
        for (const float h : {g, -g}) check(h);
    }
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093)
    check(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

TEST(fp8_conversion, of_what_is_too_large) {
  EXPECT_EQ(to_fp8_e4m3(464.f).bits, 0x7e);
  EXPECT_EQ(to_fp8_e4m3(464.1f).bits, 0x7f);
  EXPECT_EQ(to_fp8_e4m3(-INFINITY).bits, 0xff);
  EXPECT_EQ(to_fp8_e5m2(61439.f).bits, 0x7b);
  EXPECT_EQ(to_fp8_e5m2(61440.f).bits, 0x7c);
  EXPECT_EQ(to_fp8_e5m2(-INFINITY).bits, 0xfc);
}

}  // namespace
