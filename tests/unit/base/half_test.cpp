// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/elements/half.hpp"

#include "bench/reference/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace sucl;

struct fp16_format {
  static float widen(std::uint16_t bits) { return base::to_float(fp16{bits}); }
  static std::uint16_t narrow(float f) { return base::to_fp16(f).bits; }
  static constexpr auto format = reference::binary16;
};

struct bf16_format {
  static float widen(std::uint16_t bits) { return base::to_float(bf16{bits}); }
  static std::uint16_t narrow(float f) { return base::to_bf16(f).bits; }
  static constexpr auto format = reference::brain16;
};

template <class Format>
class half : public testing::Test {};
using half_formats = testing::Types<fp16_format, bf16_format>;
TYPED_TEST_SUITE(half, half_formats);

TYPED_TEST(half, widens_every_value) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float got = TypeParam::widen(static_cast<std::uint16_t>(bits));
    const double wanted = TypeParam::format.decode(static_cast<std::uint16_t>(bits));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      EXPECT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
    } else {
      EXPECT_EQ(got, wanted) << bits;
      EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << bits;
    }
  }
}

TYPED_TEST(half, narrows_what_it_widened) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto from = static_cast<std::uint16_t>(bits);
    const std::uint16_t back = TypeParam::narrow(TypeParam::widen(from));
    EXPECT_EQ(back, from);
  }
}

// Around every value and every tie between two neighbours: the floats there and next to it.
TYPED_TEST(half, rounds_to_nearest_even) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto here = static_cast<std::uint16_t>(bits);
    const double value = TypeParam::format.decode(here);
    if (!std::isfinite(value)) continue;
    const double next = TypeParam::format.decode(static_cast<std::uint16_t>(here + 1));
    const double after =
        std::isfinite(next)
            ? next
            : value + (value - TypeParam::format.decode(static_cast<std::uint16_t>(here - 1)));
    for (const double point : {value, (value + after) / 2}) {
      const float f = static_cast<float>(point);
      for (const float g : {f, std::nextafterf(f, INFINITY), std::nextafterf(f, -INFINITY)})
        EXPECT_EQ(TypeParam::narrow(g), TypeParam::format.encode(g)) << g;
    }
  }
}

TYPED_TEST(half, rounds_floats_of_every_magnitude) {
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093) {
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(TypeParam::format.decode(TypeParam::narrow(f)))) << bits;
    else
      ASSERT_EQ(TypeParam::narrow(f), TypeParam::format.encode(f)) << bits;
  }
}

TYPED_TEST(half, keeps_nan_though_its_payload_is_low) {
  const float f = std::bit_cast<float>(0xff800001u);
  EXPECT_TRUE(std::isnan(TypeParam::format.decode(TypeParam::narrow(f))));
  EXPECT_NE(TypeParam::narrow(f) & 0x8000, 0);
}

// A double just beside a tie, by less than fp32 can show, must not be taken for the tie.
TYPED_TEST(half, odd_float_rounds_a_double_once) {
  for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const double value = TypeParam::format.decode(static_cast<std::uint16_t>(bits));
    const double next = TypeParam::format.decode(static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(next)) continue;
    const double tie = (value + next) / 2;
    for (const double point : {tie, std::nextafter(tie, INFINITY), std::nextafter(tie, 0.0), value})
      for (const double d : {point, -point})
        ASSERT_EQ(TypeParam::narrow(base::to_odd_float(d)), TypeParam::format.encode(d)) << d;
  }
}

TEST(odd_float, keeps_what_fp32_has) {
  for (const double d : {0.0, -0.0, 1.0, -1.5, 65504.0, HUGE_VAL, -HUGE_VAL, 0x1p-149})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(base::to_odd_float(d)),
              std::bit_cast<std::uint32_t>(static_cast<float>(d)));
  EXPECT_TRUE(std::isnan(base::to_odd_float(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
