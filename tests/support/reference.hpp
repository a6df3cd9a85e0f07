// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What reductions ought to give, worked out on its own: inputs that depend on the rank and the
/// index, folded exactly (128-bit integers, long double) and rounded once. Nothing here is taken
/// from the library; inputs are chosen so that the exact result does not depend on the order.
#pragma once

#include <sucl/types.hpp>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace sucl::reference {

__extension__ using int128 = __int128;

/// A well mixed 64-bit number for each pair.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A float format of 16 bits or fewer: all bits and those of the fraction, the exponents of the
/// least normal and of the greatest number. Where `finite`, there is no infinity and one NaN, of
/// all bits.
struct narrow {
  int fraction;
  int least;
  int greatest;
  int bits = 16;
  bool finite = false;
  constexpr unsigned sign() const { return 1u << (bits - 1); }
};
inline constexpr narrow binary16{10, -14, 15};
inline constexpr narrow brain16{7, -126, 127};
inline constexpr narrow e4m3{3, -6, 8, 8, true};
inline constexpr narrow e5m2{2, -14, 15, 8};

inline long double widen(std::uint16_t bits, narrow f) {
  const unsigned magnitude = bits & (f.sign() - 1);
  const int field = static_cast<int>(magnitude >> f.fraction);
  const int fraction = bits & ((1 << f.fraction) - 1);
  const int special = f.greatest - f.least + 2;
  long double v = 0;
  if (f.finite && magnitude == f.sign() - 1)
    v = std::numeric_limits<long double>::quiet_NaN();
  else if (!f.finite && field == special)
    v = fraction != 0 ? std::numeric_limits<long double>::quiet_NaN()
                      : std::numeric_limits<long double>::infinity();
  else if (field == 0)
    v = std::ldexp(static_cast<long double>(fraction), f.least - f.fraction);
  else
    v = std::ldexp(1.0L + std::ldexp(static_cast<long double>(fraction), -f.fraction),
                   f.least + field - 1);
  return (bits & f.sign()) != 0 ? -v : v;
}

/// To the nearest, ties to even.
inline std::uint16_t round_to(long double v, narrow f) {
  const unsigned sign = std::signbit(v) ? f.sign() : 0u;
  const unsigned infinite =
      f.finite ? f.sign() - 1 : static_cast<unsigned>(f.greatest - f.least + 2) << f.fraction;
  long double a = std::fabs(v);
  if (std::isnan(v)) return static_cast<std::uint16_t>(sign | infinite | 1u);
  if (std::isinf(v)) return static_cast<std::uint16_t>(sign | infinite);
  int exponent = f.least;
  if (a >= std::ldexp(1.0L, f.least)) exponent = std::ilogb(a);
  const long double unit = std::ldexp(1.0L, exponent - f.fraction);
  a = std::nearbyint(a / unit) * unit;
  if (a >= std::ldexp(1.0L, f.greatest + 1)) return static_cast<std::uint16_t>(sign | infinite);
  if (f.finite && a > std::ldexp(2.0L - std::ldexp(1.0L, 1 - f.fraction), f.greatest))
    return static_cast<std::uint16_t>(sign | infinite);  // its last number is the NaN
  if (a >= std::ldexp(1.0L, exponent + 1)) ++exponent;
  const bool normal = a >= std::ldexp(1.0L, f.least);
  const auto units = static_cast<unsigned>(a / std::ldexp(1.0L, exponent - f.fraction));
  const unsigned field = normal ? static_cast<unsigned>(exponent - f.least + 1) : 0u;
  const unsigned fraction = normal ? units - (1u << f.fraction) : units;
  return static_cast<std::uint16_t>(sign | field << f.fraction | fraction);
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
template <class T>
inline constexpr narrow format_of = std::is_same_v<T, fp16>       ? binary16
                                    : std::is_same_v<T, bf16>     ? brain16
                                    : std::is_same_v<T, fp8_e4m3> ? e4m3
                                                                  : e5m2;
/// The nearest number of such a type.
template <class T>
T narrowed(long double v) {
  return T{static_cast<decltype(T::bits)>(round_to(v, format_of<T>))};
}

/// One input: that of `rank` among `ranks` at `index`.
struct spot {
  int ranks;
  int rank;
  std::uint64_t index;
  std::uint64_t random() const { return mix(static_cast<std::uint64_t>(rank) + 1, index); }
  bool last() const { return rank == ranks - 1; }
};

/// True, mostly where all have to be, and false where one is enough.
inline bool bool_input(op o, spot s) {
  const std::uint64_t h = s.random();
  if (o == op::logical_xor) return (h & 1) != 0;
  return (h % 8 == 0) == (o == op::logical_or || o == op::max);
}

template <class T>
T integer_input(op o, spot s) {
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = std::numeric_limits<T>::max();
  const std::uint64_t h = s.random();
  const T any = static_cast<T>(h);
  switch (o) {
    // Overflow is in op_rule.hpp.
    case op::sum: return static_cast<T>(any / static_cast<T>(s.ranks));
    case op::prod: {
      const int magnitude = s.rank < 6 && (h & 2) != 0 ? 2 : 1;  // 2^6 is in range of 8 bits
      return static_cast<T>(std::is_unsigned_v<T> || (h & 1) != 0 ? magnitude : -magnitude);
    }
    case op::avg:  // everybody at an end of the range; small negatives that do not divide; anything
      if (s.index % 5 == 0) return s.index % 2 == 0 ? most : least;
      if (s.index % 5 == 1) return static_cast<T>(std::is_signed_v<T> && s.rank == 0 ? -1 : 0);
      return any;
    case op::min:
    case op::max:
      if (s.index % 7 == static_cast<std::uint64_t>(s.rank)) return (h & 1) != 0 ? most : least;
      return any;
    case op::logical_and:
    case op::logical_or:
    case op::logical_xor:  // true has many faces: the low bit, the high bit, all bits
      switch (h % (o == op::logical_and ? 24 : 5)) {
        case 0: return T{0};
        case 1: return T{1};
        case 2: return static_cast<T>(std::uint64_t{1} << (8 * sizeof(T) - 1));
        case 3: return static_cast<T>(~std::uint64_t{0});
        default: return static_cast<T>(o == op::logical_or ? 0 : 2);
      }
    default: return any;
  }
}

/// A number with few significant bits, so that sums and products of a few of them are exact in
/// fp32, though not in 16 bits.
template <class T>
long double real_input(op o, spot s) {
  constexpr bool half = std::is_same_v<T, fp16>;
  constexpr bool brain = std::is_same_v<T, bf16>;
  const std::uint64_t h = s.random();
  if (o == op::prod) {
    static constexpr long double factors[] = {1, -1, 2, 0.5L, 1.5L, -1.25L};
    return factors[h % 6];
  }
  if (o == op::min || o == op::max) {
    constexpr bool finite = std::is_same_v<T, fp8_e4m3>;
    if (h % 97 == 0) return finite ? -448 : -std::numeric_limits<long double>::infinity();
    if (h % 97 == 1) return finite ? 448 : std::numeric_limits<long double>::infinity();
  } else if (half || brain) {
    // What a 16-bit accumulator loses; sums and averages near the largest number; subnormals.
    const long double big = half ? 2048 : 256;
    if (s.index % 7 == 3 && s.ranks > 2) return s.rank == 0 ? big : s.last() ? -big : 1;
    if (half && s.index % 11 == 5) return 65504;
    if (half && s.index % 13 == 6) return std::ldexp(static_cast<long double>(h % 1000), -24);
  }
  // Significant bits and the least one: less than the type's, so that the input is exact.
  const int bits = is_fp8<T>                  ? format_of<T>.fraction + 1
                   : half                     ? 10
                   : brain                    ? 7
                   : std::is_same_v<T, float> ? 20
                                              : 49;
  const int least = half ? -6 : brain ? -4 : is_fp8<T> || std::is_same_v<T, float> ? -2 : -10;
  const auto units = static_cast<std::int64_t>(h >> (64 - bits)) - (std::int64_t{1} << (bits - 1));
  return std::ldexp(static_cast<long double>(units), least);
}

/// The input of an element as the program holds it. With op::none any bit pattern.
template <class T>
T input(op o, spot s) {
  if constexpr (std::is_same_v<T, bool>) {
    return bool_input(o, s);
  } else if constexpr (std::is_integral_v<T>) {
    return integer_input<T>(o, s);
  } else if constexpr (is_narrow<T>) {
    return narrowed<T>(real_input<T>(o, s));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real_input<T>(o, s));
  } else if constexpr (is_complex<T>) {
    using V = typename T::value_type;
    static const T factors[] = {{1, 0}, {0, 1}, {-1, 0}, {1, 1}, {0, -2}, {2, -1}};
    if (o == op::prod) return factors[s.random() % 6];
    return {input<V>(o, s), input<V>(o, {s.ranks, s.rank, ~s.index})};
  } else if constexpr (is_loc<T>) {
    using V = decltype(T::value);
    T result;
    std::memset(static_cast<void*>(&result), 0, sizeof result);
    const std::uint64_t h = s.random();
    result.value = static_cast<V>(static_cast<int>(h % 3) - 1);  // many ties
    if (h % 13 == 0) result.value = std::numeric_limits<V>::max();
    if (h % 13 == 1) result.value = std::numeric_limits<V>::lowest();
    result.index = static_cast<std::int32_t>((h >> 32) % (s.index % 2 == 0 ? 3 : 0x7fffffff));
    return result;
  } else {
    return static_cast<T>(s.random());
  }
}

template <class T>
T fold_integers(op o, spot s, int first, int last) {
  int128 total = 0;
  int128 product = 1;
  T result{};
  for (int r = first; r <= last; ++r) {
    const T v = input<T>(o, {s.ranks, r, s.index});
    total += v;
    if (o == op::prod) product *= v;
    if (r == first) {
      result = v;
      continue;
    }
    switch (o) {
      case op::min: result = v < result ? v : result; break;
      case op::max: result = v > result ? v : result; break;
      case op::logical_and: result = static_cast<T>(v != 0 && result != 0); break;
      case op::logical_or: result = static_cast<T>(v != 0 || result != 0); break;
      case op::logical_xor: result = static_cast<T>((v != 0) != (result != 0)); break;
      case op::bit_and: result = static_cast<T>(result & v); break;
      case op::bit_or: result = static_cast<T>(result | v); break;
      case op::bit_xor: result = static_cast<T>(result ^ v); break;
      default: break;
    }
  }
  if (o == op::sum) return static_cast<T>(total);
  if (o == op::prod) return static_cast<T>(product);
  if (o == op::avg) return static_cast<T>(total / (last - first + 1));
  return result;
}

template <class T>
long double widened(T v) {
  if constexpr (is_narrow<T>)
    return widen(v.bits, format_of<T>);
  else
    return v;
}

template <class T>
T rounded(long double v) {
  if constexpr (is_narrow<T>)
    return narrowed<T>(v);
  else
    return static_cast<T>(v);
}

template <class T>
T fold_reals(op o, spot s, int first, int last) {
  long double result = 0;
  for (int r = first; r <= last; ++r) {
    const long double v = widened(input<T>(o, {s.ranks, r, s.index}));
    if (r == first)
      result = v;
    else if (o == op::min)
      result = std::fmin(result, v);
    else if (o == op::max)
      result = std::fmax(result, v);
    else
      result = o == op::prod ? result * v : result + v;
  }
  // The sum is exact in T or, for 16 bits, in fp32: the quotient is the only step that rounds. In
  // long double it would be rounded twice for fp64.
  if (o != op::avg) return rounded<T>(result);
  if constexpr (std::is_same_v<T, double>) return static_cast<double>(result) / (last - first + 1);
  return rounded<T>(result / (last - first + 1));
}

template <class T>
T fold_complex(op o, spot s, int first, int last) {
  using V = typename T::value_type;
  std::complex<long double> result{};
  for (int r = first; r <= last; ++r) {
    const T v = input<T>(o, {s.ranks, r, s.index});
    const std::complex<long double> w(v.real(), v.imag());
    if (r == first)
      result = w;
    else
      result = o == op::prod ? result * w : result + w;
  }
  const V n = o == op::avg ? static_cast<V>(last - first + 1) : V{1};
  return {static_cast<V>(result.real()) / n, static_cast<V>(result.imag()) / n};
}

template <class T>
T fold_pairs(op o, spot s, int first, int last) {
  T best = input<T>(o, {s.ranks, first, s.index});
  for (int r = first + 1; r <= last; ++r) {
    const T v = input<T>(o, {s.ranks, r, s.index});
    const bool better = o == op::minloc ? v.value < best.value : v.value > best.value;
    if (better || (v.value == best.value && v.index < best.index)) best = v;
  }
  return best;
}

/// The reduction over the ranks first to last.
template <class T>
T fold(op o, spot s, int first, int last) {
  if constexpr (std::is_integral_v<T>)
    return fold_integers<T>(o, s, first, last);
  else if constexpr (is_complex<T>)
    return fold_complex<T>(o, s, first, last);
  else if constexpr (is_loc<T>)
    return fold_pairs<T>(o, s, first, last);
  else if constexpr (std::is_floating_point_v<T> || is_narrow<T>)
    return fold_reals<T>(o, s, first, last);
  else
    return T{};
}

/// An element type of a call: one that SuCL knows, or opaque elements of `size` bytes.
struct element {
  type t;
  std::size_t size;
};

/// Writes the inputs of `count` indices. Elements that are only moved are any bytes.
inline void write_inputs(element e, op o, spot s, std::size_t count, std::byte* out) {
  if (o == op::none) {
    for (std::size_t i = 0; i < count; ++i, ++s.index)
      for (std::size_t b = 0; b < e.size; ++b)
        *out++ = static_cast<std::byte>(mix(s.random(), b / 8) >> (8 * (b % 8)));
    return;
  }
  with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::size_t i = 0; i < count; ++i, ++s.index, out += sizeof(T)) {
      const T v = input<T>(o, s);
      std::memcpy(out, &v, sizeof(T));
    }
  });
}

/// Writes the reduction over the ranks first to last.
inline void write_folds(element e, op o, spot s, int first, int last, std::size_t count,
                        std::byte* out) {
  with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::size_t i = 0; i < count; ++i, ++s.index, out += sizeof(T)) {
      const T v = fold<T>(o, s, first, last);
      std::memcpy(out, &v, sizeof(T));
    }
  });
}

/// Whether two elements are the same: as values where there was a reduction (zeros of either sign,
/// any NaN, padding), else byte by byte.
inline bool same(element e, op o, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, e.size) == 0) return true;
  if (o == op::none) return false;
  return with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    T x, y;
    std::memcpy(static_cast<void*>(&x), a, sizeof(T));
    std::memcpy(static_cast<void*>(&y), b, sizeof(T));
    const auto equal = [](auto u, auto v) { return u == v || (u != u && v != v); };
    if constexpr (is_loc<T>) return x.value == y.value && x.index == y.index;
    if constexpr (is_narrow<T>) return equal(widened(x), widened(y));
    if constexpr (is_complex<T>) return equal(x.real(), y.real()) && equal(x.imag(), y.imag());
    if constexpr (std::is_floating_point_v<T>) return equal(x, y);
    return false;
  });
}

/// Whether two narrow floats differ by the least subnormal number at most: what dividing each of
/// two numbers before they are added costs, and not after.
inline bool a_subnormal_apart(element e, const std::byte* a, const std::byte* b) {
  return with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (is_narrow<T>) {
      T x, y;
      std::memcpy(static_cast<void*>(&x), a, sizeof(T));
      std::memcpy(static_cast<void*>(&y), b, sizeof(T));
      const double least = std::is_same_v<T, fp16> ? 0x1p-24 : 0x1p-133;
      return std::abs(static_cast<double>(widened(x)) - static_cast<double>(widened(y))) <= least;
    }
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
      T x;
      std::memcpy(static_cast<void*>(&x), at, sizeof(T));
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
