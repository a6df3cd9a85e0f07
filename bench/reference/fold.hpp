// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What every op gives on every type, as in docs/reference/operations.md: one element after the
/// other, in the order of the ranks, with nothing of the library's.
#pragma once

#include "element.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace sucl::reference {

__extension__ using uint128 = unsigned __int128;
__extension__ using int128 = __int128;

template <class T>
T the_nan() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(std::uint32_t{0x7fffffff});
  else
    return std::bit_cast<T>(std::uint64_t{0x7fffffffffffffff});
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  return false;
}

template <class T>
T one_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(v)) return the_nan<T>();
  return v;
}

template <class T>
bool below(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  return a < b;
}

/// Two floating-point numbers. min and max are those of IEEE 754-2019 minimum and maximum.
template <class T>
T combine_reals(op o, T a, T b) {
  if (o == op::min || o == op::max) {
    if (is_nan(a) || is_nan(b)) return one_nan(is_nan(a) ? a : b);
    return below(a, b) == (o == op::min) ? a : b;
  }
  volatile T result = o == op::prod ? a * b : a + b;  // rounded here and now
  return one_nan(static_cast<T>(result));
}

template <class T>
std::complex<T> combine_complex(op o, std::complex<T> a, std::complex<T> b) {
  const auto sum = [](T x, T y) { return combine_reals(op::sum, x, y); };
  const auto prod = [](T x, T y) { return combine_reals(op::prod, x, y); };
  if (o != op::prod) return {sum(a.real(), b.real()), sum(a.imag(), b.imag())};
  return {sum(prod(a.real(), b.real()), -prod(a.imag(), b.imag())),
          sum(prod(a.real(), b.imag()), prod(a.imag(), b.real()))};
}

/// NaN before every number, for the least as for the greatest; then the lower index.
template <class T>
loc<T> combine_pairs(op o, loc<T> a, loc<T> b) {
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

/// Two integers, which wrap; of bool, sums and bits are those of logic.
template <class T>
T combine_integers(op o, T a, T b) {
  switch (o) {
    case op::sum: return static_cast<T>(static_cast<uint128>(a) + static_cast<uint128>(b));
    case op::prod: return static_cast<T>(static_cast<uint128>(a) * static_cast<uint128>(b));
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

template <class T, class V>
V combine(op o, V a, V b) {
  if constexpr (is_complex<T>)
    return combine_complex(o, a, b);
  else if constexpr (is_loc<T>)
    return combine_pairs(o, a, b);
  else if constexpr (std::is_integral_v<T>)
    return combine_integers(o, a, b);
  else if constexpr (std::is_floating_point_v<V>)
    return combine_reals(o, a, b);
  else
    return a;  // no op takes it
}

/// Combines what `get` gives for 0 to ranks - 1, in this order. What one rank alone gives is the
/// result as it is. Narrow floats are combined in fp32, divided in fp64 and rounded once.
template <class T, class Get>
T fold(op o, int ranks, const Get& get) {
  const T first = get(0);
  if (ranks == 1) return first;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if (o == op::avg) {
      int128 sum = 0;
      for (int r = 0; r < ranks; ++r) sum += static_cast<T>(get(r));
      return static_cast<T>(sum / ranks);
    }
  auto total = widened(first);
  for (int r = 1; r < ranks; ++r) total = combine<T>(o, total, widened(static_cast<T>(get(r))));
  if constexpr (is_narrow<T>) {
    T v = narrowed<T>(o == op::avg ? static_cast<double>(total) / ranks : total);
    if (std::isnan(widened(v))) v.bits = static_cast<decltype(T::bits)>(format_of<T>.all());
    return v;
  } else if constexpr (is_complex<T>) {
    const auto n = static_cast<typename T::value_type>(ranks);
    return o == op::avg ? T{one_nan(total.real() / n), one_nan(total.imag() / n)} : total;
  } else if constexpr (std::is_floating_point_v<T>) {
    return o == op::avg ? one_nan(static_cast<T>(total / static_cast<T>(ranks))) : total;
  } else {
    return total;
  }
}

/// The same of elements in memory, one a rank. The padding of pairs has any value.
inline value reduce(type t, op o, const std::vector<const std::byte*>& from) {
  const int ranks = static_cast<int>(from.size());
  const auto at = [&](int r) { return from[static_cast<std::size_t>(r)]; };
  if (ranks == 1) return value(at(0), at(0) + size_of(t));
  return with_type(t, [&](auto* null) -> value {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (std::is_same_v<T, std::byte>)
      return {};
    else if constexpr (std::is_same_v<T, bool>)  // whatever is not 0 is true
      return written(fold<T>(o, ranks, [&](int r) { return *at(r) != std::byte{0}; }));
    else
      return written(fold<T>(o, ranks, [&](int r) { return read<T>(at(r)); }));
  });
}

}  // namespace sucl::reference
