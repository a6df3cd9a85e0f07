// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// 8-bit floats to and from fp32, on hosts and devices. Branch-free, so that loops over them
/// vectorise; correct also where the processor flushes subnormal numbers to zero.
#pragma once

#include <sucl/types.hpp>

#include <cstdint>

namespace sucl {

/// The fp32 of the same value. A NaN stays one, with its sign.
[[gnu::always_inline]] inline float to_float(fp8_e4m3 v) noexcept {
  const std::uint32_t bits = v.bits;
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t magnitude = (bits & 0x7fu) << 20;
  // Exponents move from bias 7 to bias 127; all bits set is NaN.
  const std::uint32_t normal =
      magnitude == 0x07f00000u ? 0x7ff00000u : magnitude + (std::uint32_t{120} << 23);
  // A subnormal has no hidden bit: give it one at 2^-6, and take 2^-6 off again.
  constexpr std::uint32_t hidden = std::uint32_t{121} << 23;
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude + hidden) -
                                            __builtin_bit_cast(float, hidden));
  return __builtin_bit_cast(float, (magnitude < (1u << 23) ? subnormal : normal) | sign);
}

/// The nearest e4m3, of two equally near ones the even. Above 464, which is a tie between 448 and a
/// number that there is not: NaN, so that infinities become NaN too. A NaN keeps its sign.
[[gnu::always_inline]] inline fp8_e4m3 to_fp8_e4m3(float f) noexcept {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t rebiased = magnitude - (std::uint32_t{120} << 23);
  std::uint32_t result = (rebiased + 0x7ffffu + ((rebiased >> 20) & 1u)) >> 20;
  // Below 2^-6 one unit is 2^-9, which is the unit of fp32 numbers from 2^14 on: the addition
  // rounds.
  constexpr std::uint32_t unit = std::uint32_t{127 + 14} << 23;
  const float shifted = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, unit);
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - unit;
  result = magnitude < (std::uint32_t{121} << 23) ? subnormal : result;
  result = magnitude > 0x43e80000u ? 0x7fu : result;  // 464
  return {static_cast<std::uint8_t>(result | sign)};
}

/// The fp32 of the same value. A NaN stays one, with its sign and payload.
[[gnu::always_inline]] inline float to_float(fp8_e5m2 v) noexcept {
  const std::uint32_t bits = v.bits;
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t magnitude = (bits & 0x7fu) << 21;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  const std::uint32_t normal = magnitude + ((exponent == 0x0f800000u ? 224u : 112u) << 23);
  constexpr std::uint32_t hidden = std::uint32_t{113} << 23;
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude + hidden) -
                                            __builtin_bit_cast(float, hidden));
  return __builtin_bit_cast(float, (exponent == 0 ? subnormal : normal) | sign);
}

/// The nearest e5m2, of two equally near ones the even. From 61440, which is a tie between 57344
/// and a number that there is not: infinity. A NaN keeps its sign and the upper bits of its
/// payload.
[[gnu::always_inline]] inline fp8_e5m2 to_fp8_e5m2(float f) noexcept {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t rebiased = magnitude - (std::uint32_t{112} << 23);
  std::uint32_t result = (rebiased + 0xfffffu + ((rebiased >> 21) & 1u)) >> 21;
  // Below 2^-14 one unit is 2^-16, which is the unit of fp32 numbers from 2^7 on.
  constexpr std::uint32_t unit = std::uint32_t{127 + 7} << 23;
  const float shifted = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, unit);
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - unit;
  const std::uint32_t payload = (magnitude >> 21) & 3u;
  const std::uint32_t nan = 0x7cu | (payload == 0 ? 2u : payload);
  result = magnitude < (std::uint32_t{113} << 23) ? subnormal : result;
  result = magnitude >= (std::uint32_t{143} << 23) ? 0x7cu : result;
  result = magnitude > 0x7f800000u ? nan : result;
  return {static_cast<std::uint8_t>(result | sign)};
}

}  // namespace sucl
