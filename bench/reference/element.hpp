// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Elements of every type: their C++ types, what narrow floats mean, and how elements are compared
/// and printed. Nothing here is taken from the library.
#pragma once

#include <sucl/types.hpp>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace sucl::reference {

/// A well mixed 64-bit number for each pair.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// 2 to the power of n, which a double has as a normal number.
inline double power_of_two(int n) {
  const auto bits = static_cast<std::uint64_t>(1023 + n) << 52;
  double result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// A float of 16 bits or fewer.
struct narrow_format {
  int bits, fraction, least;  ///< all bits, stored ones of the fraction, least normal exponent
  bool has_infinity;

  int all() const { return (1 << (bits - 1)) - 1; }
  int infinity() const { return has_infinity ? all() >> fraction << fraction : all(); }
  bool is_nan(int code) const { return has_infinity ? code > infinity() : code == all(); }
  /// Of a code without its sign, also of one that is no finite number, as if it were.
  double value(int code) const {
    const int field = code >> fraction;
    const int part = code & ((1 << fraction) - 1);
    if (field == 0) return part * power_of_two(least - fraction);
    return (part + (1 << fraction)) * power_of_two(field - 1 + least - fraction);
  }
  double decode(unsigned stored) const {
    const int code = static_cast<int>(stored) & all();
    const double size = is_nan(code)                         ? NAN
                        : has_infinity && code == infinity() ? HUGE_VAL
                                                             : value(code);
    return static_cast<int>(stored) > all() ? -size : size;
  }
  /// The nearest, of two the one with an even code.
  unsigned encode(double v) const {
    if (std::isnan(v)) return static_cast<unsigned>(all());
    const double size = std::fabs(v);
    int low = 0, high = infinity();  // the value of low is not above v
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (value(middle) <= size ? low : high) = middle;
    }
    const double below = size - value(low), above = value(high) - size;
    const bool up = size >= value(high) || above < below || (above == below && high % 2 == 0);
    const int code = up ? high : low;
    return static_cast<unsigned>(code + (std::signbit(v) ? all() + 1 : 0));
  }
};

inline constexpr narrow_format binary16{16, 10, -14, true}, brain16{16, 7, -126, true},
    e4m3{8, 3, -6, false}, e5m2{8, 2, -14, true};

/// The format of a type, or one of no bits.
constexpr narrow_format narrow_format_of(type t) {
  switch (t) {
    case type::fp16: return binary16;
    case type::bf16: return brain16;
    case type::fp8_e4m3: return e4m3;
    case type::fp8_e5m2: return e5m2;
    default: return {};
  }
}

/// Calls f with a null pointer of the C++ type behind t.
template <class F>
auto with_type(type t, F&& f) {
  switch (t) {
    case type::int8: return f(static_cast<std::int8_t*>(nullptr));
    case type::uint8: return f(static_cast<std::uint8_t*>(nullptr));
    case type::int16: return f(static_cast<std::int16_t*>(nullptr));
    case type::uint16: return f(static_cast<std::uint16_t*>(nullptr));
    case type::int32: return f(static_cast<std::int32_t*>(nullptr));
    case type::uint32: return f(static_cast<std::uint32_t*>(nullptr));
    case type::int64: return f(static_cast<std::int64_t*>(nullptr));
    case type::uint64: return f(static_cast<std::uint64_t*>(nullptr));
    case type::fp16: return f(static_cast<fp16*>(nullptr));
    case type::bf16: return f(static_cast<bf16*>(nullptr));
    case type::fp32: return f(static_cast<float*>(nullptr));
    case type::fp64: return f(static_cast<double*>(nullptr));
    case type::complex_fp32: return f(static_cast<std::complex<float>*>(nullptr));
    case type::complex_fp64: return f(static_cast<std::complex<double>*>(nullptr));
    case type::int16_loc: return f(static_cast<loc<std::int16_t>*>(nullptr));
    case type::int32_loc: return f(static_cast<loc<std::int32_t>*>(nullptr));
    case type::int64_loc: return f(static_cast<loc<std::int64_t>*>(nullptr));
    case type::fp32_loc: return f(static_cast<loc<float>*>(nullptr));
    case type::fp64_loc: return f(static_cast<loc<double>*>(nullptr));
    case type::boolean: return f(static_cast<bool*>(nullptr));
    case type::fp8_e4m3: return f(static_cast<fp8_e4m3*>(nullptr));
    case type::fp8_e5m2: return f(static_cast<fp8_e5m2*>(nullptr));
    default: return f(static_cast<std::byte*>(nullptr));
  }
}

template <class T>
inline constexpr bool is_loc = false;
template <class V>
inline constexpr bool is_loc<loc<V>> = true;
template <class T>
inline constexpr bool is_complex = false;
template <class V>
inline constexpr bool is_complex<std::complex<V>> = true;
template <class T>
inline constexpr bool is_fp8 = std::is_same_v<T, fp8_e4m3> || std::is_same_v<T, fp8_e5m2>;
template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, fp16> || std::is_same_v<T, bf16> || is_fp8<T>;
/// The format of such a type.
template <class T>
inline constexpr narrow_format format_of = std::is_same_v<T, fp16>       ? binary16
                                           : std::is_same_v<T, bf16>     ? brain16
                                           : std::is_same_v<T, fp8_e4m3> ? e4m3
                                                                         : e5m2;

/// The nearest number of such a type.
template <class T>
T narrowed(double v) {
  return T{static_cast<decltype(T::bits)>(format_of<T>.encode(v))};
}

/// As the type in which its elements are computed with.
template <class T>
auto widened(T v) {
  if constexpr (is_narrow<T>)
    return static_cast<float>(format_of<T>.decode(v.bits));
  else
    return v;
}

/// The bytes of an element.
using value = std::vector<std::byte>;

template <class T>
T read(const std::byte* from) {
  T v;
  std::memcpy(static_cast<void*>(&v), from, sizeof v);
  return v;
}

template <class T>
value written(const T& v) {
  value bytes(sizeof v);
  std::memcpy(bytes.data(), &v, sizeof v);
  return bytes;
}

/// An element type of a call: one that SuCL knows, or opaque elements of `size` bytes.
struct element {
  type t;
  std::size_t size;
};

/// Whether two elements are the same: as values where there was a reduction (zeros of either sign,
/// any NaN, padding), else byte by byte.
inline bool same(element e, op o, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, e.size) == 0) return true;
  if (o == op::none) return false;
  return with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T x = read<T>(a), y = read<T>(b);
    const auto equal = [](auto u, auto v) { return u == v || (u != u && v != v); };
    if constexpr (is_loc<T>) return x.value == y.value && x.index == y.index;
    if constexpr (is_narrow<T>) return equal(widened(x), widened(y));
    if constexpr (is_complex<T>) return equal(x.real(), y.real()) && equal(x.imag(), y.imag());
    if constexpr (std::is_floating_point_v<T>) return equal(x, y);
    return false;
  });
}

/// An element, human-readable; opaque ones in hexadecimal.
inline std::string text(element e, op o, const std::byte* at) {
  const auto number = [](long double v) {
    char line[64];
    std::snprintf(line, sizeof line, "%.20Lg", v);
    return std::string(line);
  };
  if (o != op::none)
    return with_type(e.t, [&](auto* null) -> std::string {
      using T = std::remove_pointer_t<decltype(null)>;
      const T x = read<T>(at);
      if constexpr (is_loc<T>)
        return "{" + number(x.value) + ", " + std::to_string(x.index) + "}";
      else if constexpr (is_complex<T>)
        return number(x.real()) + (x.imag() < 0 ? "" : "+") + number(x.imag()) + "i";
      else if constexpr (std::is_same_v<T, std::byte>)
        return "?";
      else
        return number(widened(x));
    });
  std::string line = "0x";
  for (std::size_t i = 0; i < e.size; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(at[i]));
    line += digits;
  }
  return line;
}

}  // namespace sucl::reference
