// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// 16-bit floats to and from fp32. Branch-free, so that loops over them vectorise; correct also
/// where the processor flushes subnormal numbers to zero. Always inlined, and free of functions of
/// the library, so that a copy compiled for one processor is never run on another.
#pragma once

#include <sucl/fp8.hpp>
#include <sucl/types.hpp>

#include <cstdint>

namespace sucl::base {

/// The fp32 of the same value. A NaN stays one, with its sign and payload.
[[gnu::always_inline]] inline float to_float(fp16 h) noexcept {
  const std::uint32_t sign = (h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = (h.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  // Exponents move from bias 15 to bias 127; those of infinity and NaN to 255.
  const std::uint32_t normal = magnitude + ((exponent == 0x0f800000u ? 224u : 112u) << 23);
  // A subnormal has no hidden bit: give it one at 2^-14, and take 2^-14 off again.
  constexpr std::uint32_t hidden = 113u << 23;
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude + hidden) -
                                            __builtin_bit_cast(float, hidden));
  return __builtin_bit_cast(float, (exponent == 0 ? subnormal : normal) | sign);
}

/// The nearest fp16, of two equally near ones the even; too large becomes infinity. A NaN keeps its
/// sign and the upper bits of its payload, so that widening and this give what there was.
[[gnu::always_inline]] inline fp16 to_fp16(float f) noexcept {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t rebiased = magnitude - (112u << 23);
  std::uint32_t result = (rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13;
  // Below 2^-14 one fp16 unit is 2^-24, which is the unit of fp32 numbers from 0.5 on: the
  // addition rounds. An fp32 subnormal that is flushed rounds to zero anyway.
  const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - (126u << 23);
  result = magnitude < (113u << 23) ? subnormal : result;
  result = magnitude >= (143u << 23) ? 0x7c00u : result;
  const std::uint32_t payload = (magnitude >> 13) & 0x3ffu;
  const std::uint32_t nan = 0x7c00u | (payload == 0 ? 0x200u : payload);
  result = magnitude > 0x7f800000u ? nan : result;
  return {static_cast<std::uint16_t>(result | sign)};
}

/// The fp32 of the same value.
[[gnu::always_inline]] inline float to_float(bf16 b) noexcept {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(b.bits) << 16);
}

/// The nearest bf16, of two equally near ones the even; too large becomes infinity. A NaN keeps its
/// sign and the upper bits of its payload.
[[gnu::always_inline]] inline bf16 to_bf16(float f) noexcept {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t upper = bits >> 16;
  const std::uint32_t nan = (upper & 0x7fu) == 0 ? upper | 0x40u : upper;
  return {static_cast<std::uint16_t>(is_nan ? nan : rounded)};
}

// The same of results, whose NaN is one: all bits but the sign.

[[gnu::always_inline]] inline bool is_nan(float f) noexcept {
  return (__builtin_bit_cast(std::uint32_t, f) & 0x7fffffffu) > 0x7f800000u;
}
[[gnu::always_inline]] inline fp16 result_fp16(float f) noexcept {
  const fp16 rounded = to_fp16(f);
  return {is_nan(f) ? std::uint16_t{0x7fff} : rounded.bits};
}
[[gnu::always_inline]] inline bf16 result_bf16(float f) noexcept {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<std::uint16_t>(is_nan(f) ? 0x7fffu : rounded)};
}
[[gnu::always_inline]] inline fp8_e4m3 result_fp8_e4m3(float f) noexcept {
  const fp8_e4m3 rounded = to_fp8_e4m3(f);
  return {(rounded.bits & 0x7fu) == 0x7fu ? std::uint8_t{0x7f} : rounded.bits};
}
[[gnu::always_inline]] inline fp8_e5m2 result_fp8_e5m2(float f) noexcept {
  const fp8_e5m2 rounded = to_fp8_e5m2(f);
  return {is_nan(f) ? std::uint8_t{0x7f} : rounded.bits};
}

/// The fp32 next to `d` whose last bit is odd, or `d` itself where fp32 has it: rounding that to
/// 16 bits gives what rounding `d` once would give.
[[gnu::always_inline]] inline float to_odd_float(double d) noexcept {
  const float nearest = static_cast<float>(d);
  const double back = nearest;
  // Without their signs, bits compare as magnitudes; near ones differ by less than half the range.
  const std::uint64_t mine = __builtin_bit_cast(std::uint64_t, d) << 1;
  const std::uint64_t theirs = __builtin_bit_cast(std::uint64_t, back) << 1;
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, nearest);
  const std::uint32_t even = ~bits & 1u;
  const std::uint32_t up = static_cast<std::uint32_t>((theirs - mine) >> 63);
  const std::uint32_t down = static_cast<std::uint32_t>((mine - theirs) >> 63);
  return __builtin_bit_cast(float, bits + (even & up) - (even & down));
}

}  // namespace sucl::base
