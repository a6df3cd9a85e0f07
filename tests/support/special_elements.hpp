// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Elements on which ops go wrong.
#pragma once

#include "bench/reference/fold.hpp"

#include <random>

namespace sucl::reference {

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
void add_all(std::vector<value>& to, const std::vector<T>& list) {
  for (const T& v : list) to.push_back(written(v));
}

template <class T>
void add_pairs(std::vector<value>& to, const std::vector<T>& list) {
  for (const T v : list)
    for (const std::int32_t index : {-1, 0, 1, 0x7fffffff}) {
      value e(sizeof(loc<T>));
      std::memcpy(e.data(), &v, sizeof v);
      std::memcpy(e.data() + offsetof(loc<T>, index), &index, sizeof index);
      to.push_back(e);
    }
}

template <class T>
void add_complex(std::vector<value>& to, const std::vector<T>& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const std::size_t step : {0, 1, 5, 8})
      to.push_back(written(std::complex<T>(list[i], list[(i + step) % list.size()])));
}

/// Of a type that can be reduced.
inline std::vector<value> special_elements(type t) {
  std::vector<value> all;
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
      for (const unsigned bits : special_narrow(narrow_format_of(t)))
        if (size_of(t) == 1)
          all.push_back(written(static_cast<std::uint8_t>(bits)));
        else
          all.push_back(written(static_cast<std::uint16_t>(bits)));
  }
  return all;
}

/// Two of three a special element, else any number with all of its bits.
inline value any_element(type t, const std::vector<value>& special, std::mt19937_64& random) {
  const std::uint64_t drawn = random();
  value e = special[(drawn >> 8) % special.size()];
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

/// Zeroes the padding of a pair.
inline value bare(type t, value e) {
  if (t == type::int16_loc) std::fill_n(e.data() + 2, 2, std::byte{0});
  if (t == type::int64_loc || t == type::fp64_loc) std::fill_n(e.data() + 12, 4, std::byte{0});
  return e;
}

}  // namespace sucl::reference
