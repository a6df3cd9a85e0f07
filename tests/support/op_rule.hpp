// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What every op gives on every type, as in docs/reference/operations.md: by value, one
/// element after the other, with nothing of the library's. And elements on which ops go wrong.
#pragma once

#include <sucl/types.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace sucl::rule {

__extension__ using int128 = __int128;
using element = std::vector<std::byte>;

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
    if (field == 0) return std::ldexp(part, least - fraction);
    return std::ldexp(part + (1 << fraction), field - 1 + least - fraction);
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

/// The format, or one of no bits.
constexpr narrow_format format_of(type t) {
  switch (t) {
    case type::fp16: return binary16;
    case type::bf16: return brain16;
    case type::fp8_e4m3: return e4m3;
    case type::fp8_e5m2: return e5m2;
    default: return {};
  }
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof value);
  return value;
}

template <class T>
element written(const T& value) {
  element e(sizeof value);
  std::memcpy(e.data(), &value, sizeof value);
  return e;
}

template <class T>
T the_nan() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(std::uint32_t{0x7fffffff});
  else
    return std::bit_cast<T>(std::uint64_t{0x7fffffffffffffff});
}

template <class T>
T one_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(v)) return the_nan<T>();
  return v;
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  return false;
}

template <class T>
bool below(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  return a < b;
}

/// IEEE 754-2019 minimum and maximum.
template <class T>
T extreme(op o, T a, T b) {
  if (is_nan(a) || is_nan(b)) return one_nan(is_nan(a) ? a : b);
  return below(a, b) == (o == op::min) ? a : b;
}

template <class T>
T real(op o, T a, T b) {
  if (o == op::min || o == op::max) return extreme(o, a, b);
  volatile T result = o == op::prod ? a * b : a + b;  // rounded here and now
  return one_nan(static_cast<T>(result));
}

template <class T>
std::complex<T> complex(op o, std::complex<T> a, std::complex<T> b) {
  const auto sum = [](T x, T y) { return real(op::sum, x, y); };
  const auto prod = [](T x, T y) { return real(op::prod, x, y); };
  if (o != op::prod) return {sum(a.real(), b.real()), sum(a.imag(), b.imag())};
  return {sum(prod(a.real(), b.real()), -prod(a.imag(), b.imag())),
          sum(prod(a.real(), b.imag()), prod(a.imag(), b.real()))};
}

/// NaN before every number, for the least as for the greatest; then the lower index.
template <class T>
loc<T> located(op o, loc<T> a, loc<T> b) {
  bool second;
  if (is_nan(a.value) || is_nan(b.value)) {
    second = is_nan(a.value) && is_nan(b.value) ? b.index < a.index : is_nan(b.value);
  } else if (!below(a.value, b.value) && !below(b.value, a.value)) {
    second = b.index < a.index;
  } else {
    second = below(b.value, a.value) == (o == op::minloc);
  }
  loc<T> best = second ? b : a;
  best.value = one_nan(best.value);
  return best;
}

template <class T>
T integer(op o, T a, T b) {
  const int128 x = a, y = b;
  switch (o) {
    case op::sum: return static_cast<T>(x + y);
    case op::prod: return static_cast<T>(x * y);
    case op::min: return std::min(a, b);
    case op::max: return std::max(a, b);
    case op::logical_and: return static_cast<T>(a != 0 && b != 0);
    case op::logical_or: return static_cast<T>(a != 0 || b != 0);
    case op::logical_xor: return static_cast<T>((a != 0) != (b != 0));
    case op::bit_and: return static_cast<T>(a & b);
    case op::bit_or: return static_cast<T>(a | b);
    default: return static_cast<T>(a ^ b);
  }
}

using elements = std::vector<const std::byte*>;

template <class T, class Combine>
T combined(const elements& from, Combine combine) {
  T result = read<T>(from[0]);
  for (std::size_t i = 1; i < from.size(); ++i) result = combine(result, read<T>(from[i]));
  return result;
}

template <class T>
element of_integers(op o, const elements& from, int ranks) {
  if (o != op::avg) return written(combined<T>(from, [&](T a, T b) { return integer(o, a, b); }));
  int128 sum = 0;
  for (const std::byte* e : from) sum += read<T>(e);
  return written(static_cast<T>(sum / ranks));
}

template <class T>
element of_reals(op o, const elements& from, int ranks) {
  T result = combined<T>(from, [&](T a, T b) { return real(o, a, b); });
  if (o == op::avg) result = one_nan(static_cast<T>(result / static_cast<T>(ranks)));
  return written(result);
}

template <class T>
element of_complex(op o, const elements& from, int ranks) {
  using number = std::complex<T>;
  number result = combined<number>(from, [&](number a, number b) { return complex(o, a, b); });
  const T n = static_cast<T>(ranks);
  if (o == op::avg) result = {one_nan(result.real() / n), one_nan(result.imag() / n)};
  return written(result);
}

/// In fp32, the quotient in fp64, and rounded once.
inline element of_narrow(narrow_format f, op o, const elements& from, int ranks) {
  const auto bits_at = [&](const std::byte* at) -> unsigned {
    return f.bits == 8 ? static_cast<unsigned>(*at) : read<std::uint16_t>(at);
  };
  float result = static_cast<float>(f.decode(bits_at(from[0])));
  for (std::size_t i = 1; i < from.size(); ++i)
    result = real(o, result, static_cast<float>(f.decode(bits_at(from[i]))));
  unsigned bits = f.encode(o == op::avg ? static_cast<double>(result) / ranks : result);
  if (f.is_nan(static_cast<int>(bits) & f.all())) bits = static_cast<unsigned>(f.all());
  return f.bits == 8 ? written(static_cast<std::uint8_t>(bits))
                     : written(static_cast<std::uint16_t>(bits));
}

template <class T>
element of_pairs(op o, const elements& from) {
  return written(combined<loc<T>>(from, [&](loc<T> a, loc<T> b) { return located(o, a, b); }));
}

/// Whatever is not 0 is true.
inline element of_bools(op o, const elements& from) {
  bool result = from[0][0] != std::byte{0};
  for (std::size_t i = 1; i < from.size(); ++i) {
    const bool other = from[i][0] != std::byte{0};
    if (o == op::logical_xor)
      result = result != other;
    else
      result = o == op::logical_and || o == op::min ? result && other : result || other;
  }
  return written(static_cast<std::uint8_t>(result));
}

/// Combines elements, one a rank, in their order. What one rank alone gives is the result as it is.
/// Bytes of pairs that are nobody's have any value.
inline element reduce(type t, op o, const elements& from) {
  const int ranks = static_cast<int>(from.size());
  if (ranks == 1) return element(from[0], from[0] + size_of(t));
  switch (t) {
    case type::int8: return of_integers<std::int8_t>(o, from, ranks);
    case type::uint8: return of_integers<std::uint8_t>(o, from, ranks);
    case type::int16: return of_integers<std::int16_t>(o, from, ranks);
    case type::uint16: return of_integers<std::uint16_t>(o, from, ranks);
    case type::int32: return of_integers<std::int32_t>(o, from, ranks);
    case type::uint32: return of_integers<std::uint32_t>(o, from, ranks);
    case type::int64: return of_integers<std::int64_t>(o, from, ranks);
    case type::uint64: return of_integers<std::uint64_t>(o, from, ranks);
    case type::fp32: return of_reals<float>(o, from, ranks);
    case type::fp64: return of_reals<double>(o, from, ranks);
    case type::complex_fp32: return of_complex<float>(o, from, ranks);
    case type::complex_fp64: return of_complex<double>(o, from, ranks);
    case type::int16_loc: return of_pairs<std::int16_t>(o, from);
    case type::int32_loc: return of_pairs<std::int32_t>(o, from);
    case type::int64_loc: return of_pairs<std::int64_t>(o, from);
    case type::fp32_loc: return of_pairs<float>(o, from);
    case type::fp64_loc: return of_pairs<double>(o, from);
    case type::boolean: return of_bools(o, from);
    default: return of_narrow(format_of(t), o, from, ranks);
  }
}

// ---- elements on which ops go wrong

template <class T>
std::vector<T> special_integers() {
  using limit = std::numeric_limits<T>;
  const T most = limit::max(), least = limit::min();
  return {T(0), T(1), T(2), T(-1), T(-2), most, T(most - 1), T(most / 2 + 1), least, T(least + 1)};
}

/// Zeros, subnormal numbers, ends of the range, infinities, and NaN, quiet and signalling.
template <class T, class Bits>
std::vector<T> special_reals() {
  using limit = std::numeric_limits<T>;
  std::vector<T> all;
  for (const T v :
       {T(0), T(1), T(1.5), T(1) / T(3), limit::denorm_min(), T(limit::min() - limit::denorm_min()),
        limit::min(), limit::max(), T(limit::max() / 2), limit::infinity()})
    all.insert(all.end(), {v, -v});
  const Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  const Bits infinity = std::bit_cast<Bits>(limit::infinity());
  const Bits quiet = std::bit_cast<Bits>(limit::quiet_NaN());
  for (const Bits nan : {quiet, quiet | 1, quiet | (quiet - infinity) >> 1, infinity | 1,
                         infinity | (quiet - infinity) >> 1, static_cast<Bits>(sign - 1)})
    for (const Bits b : {nan, static_cast<Bits>(nan | sign)}) all.push_back(std::bit_cast<T>(b));
  return all;
}

inline std::vector<unsigned> special_narrow(narrow_format f) {
  const int i = f.infinity(), unit = 1 << f.fraction;
  std::vector<unsigned> all;
  for (const int code : {0, 1, unit - 1, unit, unit + 1, i / 2, i / 2 + 1, i - 1, i, f.all(),
                         f.all() - 1, i + (f.all() - i) / 2, i + 1 > f.all() ? i : i + 1})
    all.insert(all.end(), {static_cast<unsigned>(code), static_cast<unsigned>(code + f.all() + 1)});
  return all;
}

template <class T>
void add_all(std::vector<element>& to, const std::vector<T>& values) {
  for (const T& v : values) to.push_back(written(v));
}

template <class T>
void add_pairs(std::vector<element>& to, const std::vector<T>& values) {
  for (const T v : values)
    for (const std::int32_t index : {-1, 0, 1, 0x7fffffff}) {
      element e(sizeof(loc<T>));
      std::memcpy(e.data(), &v, sizeof v);
      std::memcpy(e.data() + offsetof(loc<T>, index), &index, sizeof index);
      to.push_back(e);
    }
}

template <class T>
void add_complex(std::vector<element>& to, const std::vector<T>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (const std::size_t step : {0, 1, 5, 8})
      to.push_back(written(std::complex<T>(values[i], values[(i + step) % values.size()])));
}

/// Of a type that can be reduced.
inline std::vector<element> special_elements(type t) {
  std::vector<element> all;
  const auto reals = special_reals<float, std::uint32_t>();
  const auto doubles = special_reals<double, std::uint64_t>();
  switch (t) {
    case type::int8: add_all(all, special_integers<std::int8_t>()); break;
    case type::uint8: add_all(all, special_integers<std::uint8_t>()); break;
    case type::int16: add_all(all, special_integers<std::int16_t>()); break;
    case type::uint16: add_all(all, special_integers<std::uint16_t>()); break;
    case type::int32: add_all(all, special_integers<std::int32_t>()); break;
    case type::uint32: add_all(all, special_integers<std::uint32_t>()); break;
    case type::int64: add_all(all, special_integers<std::int64_t>()); break;
    case type::uint64: add_all(all, special_integers<std::uint64_t>()); break;
    case type::fp32: add_all(all, reals); break;
    case type::fp64: add_all(all, doubles); break;
    case type::complex_fp32: add_complex(all, reals); break;
    case type::complex_fp64: add_complex(all, doubles); break;
    case type::int16_loc: add_pairs(all, special_integers<std::int16_t>()); break;
    case type::int32_loc: add_pairs(all, special_integers<std::int32_t>()); break;
    case type::int64_loc: add_pairs(all, special_integers<std::int64_t>()); break;
    case type::fp32_loc: add_pairs(all, reals); break;
    case type::fp64_loc: add_pairs(all, doubles); break;
    case type::boolean: add_all(all, std::vector<std::uint8_t>{0, 1, 2, 0x80, 0xff}); break;
    default:
      for (const unsigned bits : special_narrow(format_of(t)))
        if (size_of(t) == 1)
          all.push_back(written(static_cast<std::uint8_t>(bits)));
        else
          all.push_back(written(static_cast<std::uint16_t>(bits)));
  }
  return all;
}

/// Two of three a special element, else any number with all of its bits.
inline element any_element(type t, const std::vector<element>& special, std::mt19937_64& random) {
  const std::uint64_t drawn = random();
  element e = special[(drawn >> 8) % special.size()];
  if (drawn % 3 != 0) return e;
  const auto fraction = [&] { return std::ldexp(static_cast<double>(random() >> 11), -50) - 4; };
  switch (t) {
    case type::fp32: return written(static_cast<float>(fraction()));
    case type::fp64: return written(fraction());
    case type::complex_fp32:
      return written(std::complex<float>(std::complex<double>(fraction(), fraction())));
    case type::complex_fp64: return written(std::complex<double>(fraction(), fraction()));
    default:
      if (size_of(t) > 8 || (t >= type::int16_loc && t <= type::fp64_loc)) return e;
      const std::uint64_t bits = random();
      std::memcpy(e.data(), &bits, e.size());
      return e;
  }
}

/// Zeroes the bytes of a pair that are nobody's.
inline element bare(type t, element e) {
  if (t == type::int16_loc) std::fill_n(e.data() + 2, 2, std::byte{0});
  if (t == type::int64_loc || t == type::fp64_loc) std::fill_n(e.data() + 12, 4, std::byte{0});
  return e;
}

}  // namespace sucl::rule
