// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace sucl::torture {
namespace {

using reference::is_complex;
using reference::is_loc;
using reference::is_narrow;
using reference::widened;

constexpr int max_enumerated = 5;  // ranks: 105 associations

template <class V>
bool same_number(V a, V b) {
  if constexpr (std::is_integral_v<V>) return a == b;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// In which arithmetic a type is reduced.
template <class T>
using arithmetic = decltype(widened(T{}));

// Rounded to the type, in the wider one.
template <class T>
arithmetic<T> rounded(double v) {
  if constexpr (is_narrow<T>)
    return widened(reference::narrowed<T>(v));
  else
    return static_cast<T>(v);
}

// Every value that some order and association of the inputs gives.
template <class T>
class associations {
 public:
  using V = arithmetic<T>;
  associations(op o, const V* v, int n) : m_op(o), m_sets(std::size_t{1} << n) {
    for (std::size_t set = 1; set < m_sets.size(); ++set)
      if (std::has_single_bit(set))
        m_sets[set] = {v[std::countr_zero(set)]};
      else
        combine(set);
  }
  const std::vector<V>& all() const { return m_sets.back(); }

 private:
  void combine(std::size_t set) {
    const std::size_t lowest = set & (~set + 1);
    for (std::size_t part = (set - 1) & set; part != 0; part = (part - 1) & set) {
      if ((part & lowest) == 0) continue;
      for (const V a : m_sets[part])
        for (const V b : m_sets[set ^ part]) {
          const V r = reference::combine_reals(m_op, a, b);
          add(m_sets[set], r);
          if constexpr (is_narrow<T>) add(m_sets[set], rounded<T>(r));
        }
    }
  }
  static void add(std::vector<V>& list, V v) {
    for (const V other : list)
      if (same_number(other, v)) return;
    list.push_back(v);
  }
  op m_op;
  std::vector<std::vector<V>> m_sets;
};

// What is done with a total at the end.
template <class T>
bool closes_to(op o, arithmetic<T> total, int n, arithmetic<T> got) {
  using V = arithmetic<T>;
  if (o != op::avg) {
    if constexpr (is_narrow<T>) return same_number(rounded<T>(total), got);
    return same_number(total, got);
  }
  const V quotient = total / static_cast<V>(n);
  if constexpr (is_narrow<T>)
    return same_number(rounded<T>(quotient), got) ||
           same_number(rounded<T>(static_cast<double>(total) / n), got);
  return same_number(quotient, got);
}

// Without an order to compare with: how far the result may be from the exact one.
template <class V>
bool within_bound(op o, const V* v, int n, V got, V unit) {
  long double exact = o == op::prod ? 1 : 0, magnitude = exact;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(v[i])) return true;
    exact = o == op::prod ? exact * v[i] : exact + v[i];
    magnitude = o == op::prod ? magnitude * std::fabs(v[i]) : magnitude + std::fabs(v[i]);
  }
  if (magnitude > std::numeric_limits<V>::max() / 4 || !std::isfinite(got)) return true;
  if (o == op::avg) exact /= n, magnitude /= n;
  return std::fabs(exact - got) <= 2 * n * unit * magnitude + std::numeric_limits<V>::min();
}

template <class T>
bool right_real(op o, const T* inputs, int n, T is) {
  using V = arithmetic<T>;
  std::array<V, 64> v;
  v[0] = widened(inputs[0]);
  V total = v[0];
  for (std::size_t i = 1; i < static_cast<std::size_t>(n); ++i) {
    v[i] = widened(inputs[i]);
    total = reference::combine_reals(o, total, v[i]);
  }
  const V got = widened(is);
  if (closes_to<T>(o, total, n, got)) return true;
  if (o == op::min || o == op::max) return false;
  if (n > max_enumerated)
    return within_bound<V>(o, v.data(), n, got,
                           reference::is_fp8<T> ? V(0x1p-2)
                           : is_narrow<T>       ? V(0x1p-7)
                                                : std::numeric_limits<V>::epsilon());
  const associations<T> possible(o, v.data(), n);
  return std::any_of(possible.all().begin(), possible.all().end(),
                     [&](V t) { return closes_to<T>(o, t, n, got); });
}

// ---- Complex numbers and pairs.

template <class T>
bool right_product(const T* v, int n, T got) {
  std::complex<long double> exact = 1;
  long double magnitude = 1;
  using V = typename T::value_type;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(v[i].real()) || !std::isfinite(v[i].imag())) return true;
    const std::complex<long double> w(v[i].real(), v[i].imag());
    exact = {exact.real() * w.real() - exact.imag() * w.imag(),
             exact.real() * w.imag() + exact.imag() * w.real()};
    magnitude *= std::abs(w);
    // A partial product that leaves the range of the type depends on the order.
    if (magnitude > std::sqrt(std::numeric_limits<V>::max()) ||
        magnitude < std::sqrt(std::numeric_limits<V>::min()))
      return true;
  }
  const std::complex<long double> w(got.real(), got.imag());
  return std::abs(w - exact) <= 4 * n * std::numeric_limits<V>::epsilon() * magnitude;
}

template <class T>
bool right_complex(op o, const T* v, int n, T got) {
  if (o == op::prod) return right_product(v, n, got);
  using V = typename T::value_type;
  std::array<V, 64> real, imaginary;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    real[i] = v[i].real();
    imaginary[i] = v[i].imag();
  }
  return right_real(o, real.data(), n, got.real()) &&
         right_real(o, imaginary.data(), n, got.imag());
}

template <class T>
bool right(op o, const T* v, int n, T got) {
  const auto folded = [&] { return reference::fold<T>(o, n, [&](int i) { return v[i]; }); };
  if constexpr (std::is_integral_v<T>)
    return folded() == got;
  else if constexpr (is_complex<T>)
    return right_complex(o, v, n, got);
  else if constexpr (is_loc<T>)
    return same_number(folded().value, got.value) && folded().index == got.index;
  else if constexpr (std::is_same_v<T, std::byte>)
    return false;  // a type that this does not know: it has to be told what is right
  else
    return right_real(o, v, n, got);
}

}  // namespace

std::string check_folds(const operation& o, int ranks, int first, int last, std::uint64_t index,
                        std::size_t count, const std::byte* got) {
  const int n = last - first + 1;
  return reference::with_type(o.element.t, [&](auto* null) -> std::string {
    using T = std::remove_pointer_t<decltype(null)>;
    // A piece of all inputs at once: the calls that draw them are for several elements.
    constexpr std::size_t piece = 256;
    const std::unique_ptr<T[]> inputs(new T[piece * static_cast<std::size_t>(n)]);
    std::array<T, 64> v;
    for (std::size_t begin = 0; begin < count; begin += piece) {
      const std::size_t m = std::min(piece, count - begin);
      for (int r = 0; r < n; ++r)
        write_inputs(o, ranks, first + r, index + begin, m,
                     reinterpret_cast<std::byte*>(&inputs[static_cast<std::size_t>(r) * piece]));
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) v[r] = inputs[r * piece + i];
        T is;
        const std::byte* at = got + (begin + i) * sizeof(T);
        std::memcpy(static_cast<void*>(&is), at, sizeof(T));
        if (right(o.op, v.data(), n, is)) continue;
        std::string line = "element " + std::to_string(begin + i) + ": got " +
                           describe(o.element, o.op, at) + " from";
        for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r)
          line += (r == 0 ? " " : ", ") +
                  describe(o.element, o.op, reinterpret_cast<const std::byte*>(&v[r]));
        return line;
      }
    }
    return {};
  });
}

std::uint64_t hash_elements(reference::element e, std::size_t count, const std::byte* at,
                            std::uint64_t before) {
  std::uint64_t h = before;
  const bool padded = e.t == type::int16_loc || e.t == type::int64_loc || e.t == type::fp64_loc;
  if (!padded) {
    const std::size_t bytes = count * e.size;
    std::size_t i = 0;
    for (std::uint64_t w = 0; i + sizeof w <= bytes; i += sizeof w) {
      std::memcpy(&w, at + i, sizeof w);
      h = reference::mix(h, w);
    }
    for (; i < bytes; ++i) h = reference::mix(h, static_cast<std::uint64_t>(at[i]));
    return h;
  }
  return reference::with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (is_loc<T>)
      for (std::size_t i = 0; i < count; ++i) {
        T v;
        std::memcpy(static_cast<void*>(&v), at + i * sizeof(T), sizeof(T));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &v.value, sizeof v.value);
        h = reference::mix(reference::mix(h, bits), static_cast<std::uint32_t>(v.index));
      }
    return h;
  });
}

std::string describe(reference::element e, op o, const std::byte* at) {
  if (o == op::none) return reference::text(e, o, at);
  return reference::text(e, o, at) + " (" + reference::text(e, op::none, at) + ")";
}

}  // namespace sucl::torture
