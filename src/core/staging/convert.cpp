// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/convert.hpp"

#include "base/elements/half.hpp"

#include <array>

// Loops that gain from wide registers are compiled for them too, and chosen when the library is
// loaded, which the sanitizers do not stand.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SUCL_WIDE __attribute__((target_clones("default", "avx2")))
#else
#define SUCL_WIDE
#endif

namespace sucl::core {
namespace {

using base::to_bf16;
using base::to_float;
using base::to_fp16;
using base::to_odd_float;
using sucl::to_float;

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

template <class Narrow>
Narrow narrow(float f) noexcept {
  if constexpr (std::is_same_v<Narrow, fp16>)
    return to_fp16(f);
  else if constexpr (std::is_same_v<Narrow, bf16>)
    return to_bf16(f);
  else if constexpr (std::is_same_v<Narrow, fp8_e4m3>)
    return base::is_nan(f) ? to_fp8_e4m3(f) : base::result_fp8_e4m3(f);  // it has no infinities
  else
    return to_fp8_e5m2(f);
}

template <class Narrow>
SUCL_WIDE void load_narrow(void* wire, const void* user, std::size_t n) {
  auto* __restrict to = static_cast<float*>(wire);
  const auto* __restrict from = static_cast<const Narrow*>(user);
  for (std::size_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

template <class Narrow>
SUCL_WIDE void store_narrow(void* user, const void* wire, std::size_t n, int) {
  auto* __restrict to = static_cast<Narrow*>(user);
  const auto* __restrict from = static_cast<const float*>(wire);
  for (std::size_t i = 0; i < n; ++i) to[i] = narrow<Narrow>(from[i]);
}

// A quotient of doubles is never so near to a tie of so narrow a float that it hides on which side.
template <class Narrow>
SUCL_WIDE void store_narrow_average(void* user, const void* wire, std::size_t n, int ranks) {
  auto* __restrict to = static_cast<Narrow*>(user);
  const auto* __restrict from = static_cast<const float*>(wire);
  const double divisor = ranks;
  for (std::size_t i = 0; i < n; ++i) to[i] = narrow<Narrow>(to_odd_float(from[i] / divisor));
}

// `Parts` is 2 for complex numbers. The division may happen in place.
template <class Real, std::size_t Parts>
void store_real_average(void* user, const void* wire, std::size_t n, int ranks) {
  auto* to = static_cast<Real*>(user);
  const auto* from = static_cast<const Real*>(wire);
  const Real divisor = static_cast<Real>(ranks);
  for (std::size_t i = 0; i < n * Parts; ++i) to[i] = from[i] / divisor;
}

template <class Integer>
void load_integer(void* wire, const void* user, std::size_t n) {
  auto* __restrict to = static_cast<std::int64_t*>(wire);
  const auto* __restrict from = static_cast<const Integer*>(user);
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

template <class Integer>
void store_integer_average(void* user, const void* wire, std::size_t n, int ranks) {
  auto* __restrict to = static_cast<Integer*>(user);
  const auto* __restrict from = static_cast<const std::int64_t*>(wire);
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<Integer>(from[i] / ranks);
}

// The upper half keeps the sign, the lower is not negative: x = upper * 2^32 + lower.
template <class Integer>
void load_wide(void* wire, const void* user, std::size_t n) {
  auto* __restrict to = static_cast<Integer*>(wire);
  const auto* __restrict from = static_cast<const Integer*>(user);
  for (std::size_t i = 0; i < n; ++i) {
    to[2 * i] = from[i] >> 32;
    to[2 * i + 1] = from[i] & Integer{0xffffffff};
  }
}

template <class Integer, class Wide>
void store_wide_average(void* user, const void* wire, std::size_t n, int ranks) {
  auto* __restrict to = static_cast<Integer*>(user);
  const auto* __restrict from = static_cast<const Integer*>(wire);
  for (std::size_t i = 0; i < n; ++i) {
    const Wide sum = Wide{from[2 * i]} * (Wide{1} << 32) + Wide{from[2 * i + 1]};
    to[i] = static_cast<Integer>(sum / ranks);
  }
}

template <class Narrow>
const conversion* narrow_conversion(sucl_op op) noexcept {
  static constexpr std::array<conversion, 5> rows{{
      {SUCL_TYPE_FP32, SUCL_OP_SUM, 1, load_narrow<Narrow>, store_narrow<Narrow>},
      {SUCL_TYPE_FP32, SUCL_OP_PROD, 1, load_narrow<Narrow>, store_narrow<Narrow>},
      {SUCL_TYPE_FP32, SUCL_OP_MIN, 1, load_narrow<Narrow>, store_narrow<Narrow>},
      {SUCL_TYPE_FP32, SUCL_OP_MAX, 1, load_narrow<Narrow>, store_narrow<Narrow>},
      {SUCL_TYPE_FP32, SUCL_OP_SUM, 1, load_narrow<Narrow>, store_narrow_average<Narrow>},
  }};
  static_assert(SUCL_OP_SUM == 1 && SUCL_OP_AVG == 5);
  return op >= SUCL_OP_SUM && op <= SUCL_OP_AVG ? &rows[static_cast<std::size_t>(op - 1)] : nullptr;
}

template <class Integer>
constexpr conversion integer_average{SUCL_TYPE_INT64, SUCL_OP_SUM, 1, load_integer<Integer>,
                                     store_integer_average<Integer>};
constexpr conversion int64_average{SUCL_TYPE_INT64, SUCL_OP_SUM, 2, load_wide<std::int64_t>,
                                   store_wide_average<std::int64_t, int128>};
constexpr conversion uint64_average{SUCL_TYPE_UINT64, SUCL_OP_SUM, 2, load_wide<std::uint64_t>,
                                    store_wide_average<std::uint64_t, uint128>};
constexpr conversion fp32_average{SUCL_TYPE_FP32, SUCL_OP_SUM, 1, nullptr,
                                  store_real_average<float, 1>};
constexpr conversion fp64_average{SUCL_TYPE_FP64, SUCL_OP_SUM, 1, nullptr,
                                  store_real_average<double, 1>};
constexpr conversion complex_fp32_average{SUCL_TYPE_COMPLEX_FP32, SUCL_OP_SUM, 1, nullptr,
                                          store_real_average<float, 2>};
constexpr conversion complex_fp64_average{SUCL_TYPE_COMPLEX_FP64, SUCL_OP_SUM, 1, nullptr,
                                          store_real_average<double, 2>};

}  // namespace

const conversion* conversion_for(sucl_type type, sucl_op op) noexcept {
  if (type == SUCL_TYPE_FP16) return narrow_conversion<fp16>(op);
  if (type == SUCL_TYPE_BF16) return narrow_conversion<bf16>(op);
  if (type == SUCL_TYPE_FP8_E4M3) return narrow_conversion<fp8_e4m3>(op);
  if (type == SUCL_TYPE_FP8_E5M2) return narrow_conversion<fp8_e5m2>(op);
  if (op != SUCL_OP_AVG) return nullptr;
  switch (type) {
    case SUCL_TYPE_INT8: return &integer_average<std::int8_t>;
    case SUCL_TYPE_UINT8: return &integer_average<std::uint8_t>;
    case SUCL_TYPE_INT16: return &integer_average<std::int16_t>;
    case SUCL_TYPE_UINT16: return &integer_average<std::uint16_t>;
    case SUCL_TYPE_INT32: return &integer_average<std::int32_t>;
    case SUCL_TYPE_UINT32: return &integer_average<std::uint32_t>;
    case SUCL_TYPE_INT64: return &int64_average;
    case SUCL_TYPE_UINT64: return &uint64_average;
    case SUCL_TYPE_FP32: return &fp32_average;
    case SUCL_TYPE_FP64: return &fp64_average;
    case SUCL_TYPE_COMPLEX_FP32: return &complex_fp32_average;
    case SUCL_TYPE_COMPLEX_FP64: return &complex_fp64_average;
    default: return nullptr;
  }
}

}  // namespace sucl::core
