// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <sstream>
#include <type_traits>

namespace sucl::bench {
namespace {

// A different number for every rank and index; which one does not matter.
std::uint64_t mix(int rank, std::uint64_t index) {
  std::uint64_t x =
      index * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank + 1) * 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

// A float of 16 or 8 bits, `mantissa` of them stored ones of its fraction: the double that its bits
// mean. Of 8 with 3 all bits together mean NaN, and none infinity.
double decode(unsigned bits, int mantissa, int width = 16) {
  const int exponents = (1 << (width - 1 - mantissa)) - 1;
  const int bias = exponents / 2;
  const int exponent = static_cast<int>(bits >> mantissa) & exponents;
  const double fraction = bits & ((1u << mantissa) - 1);
  const double sign = bits >> (width - 1) ? -1 : 1;
  const bool finite = width == 8 && mantissa == 3 && fraction != 7;
  if (exponent == exponents && !finite) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

// The bits of the nearest number, of two as near the even one. `value` is small and finite.
std::uint16_t encode(double value, int mantissa, int width = 16) {
  const int bias = ((1 << (width - 1 - mantissa)) - 1) / 2;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 1 << (width - 1) : 0);
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  // Rounds to even, as the floating-point environment is by default.
  const auto steps =
      static_cast<long>(std::nearbyint(std::ldexp(std::fabs(value), mantissa - exponent)));
  // A carry of the fraction moves into the exponent by itself.
  const long biased = exponent + bias - 1;
  return static_cast<std::uint16_t>(sign | ((biased << mantissa) + steps));
}

// How elements of a type are computed with: the wide type, there and back.
template <class T>
struct element {
  using wide =
      std::conditional_t<std::is_floating_point_v<T>, double,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  static wide widen(T value) { return static_cast<wide>(value); }
  static T narrow(wide value) { return static_cast<T>(value); }
};

template <>
struct element<fp16> {
  using wide = double;
  static wide widen(fp16 value) { return decode(value.bits, 10); }
  static fp16 narrow(wide value) { return {encode(value, 10)}; }
};

template <>
struct element<bf16> {
  using wide = double;
  static wide widen(bf16 value) { return decode(value.bits, 7); }
  static bf16 narrow(wide value) { return {encode(value, 7)}; }
};

template <>
struct element<fp8_e4m3> {
  using wide = double;
  static wide widen(fp8_e4m3 value) { return decode(value.bits, 3, 8); }
  static fp8_e4m3 narrow(wide value) { return {static_cast<std::uint8_t>(encode(value, 3, 8))}; }
};

template <>
struct element<fp8_e5m2> {
  using wide = double;
  static wide widen(fp8_e5m2 value) { return decode(value.bits, 2, 8); }
  static fp8_e5m2 narrow(wide value) { return {static_cast<std::uint8_t>(encode(value, 2, 8))}; }
};

template <class R>
struct element<std::complex<R>> {
  using wide = std::complex<double>;
  static wide widen(std::complex<R> value) { return {value.real(), value.imag()}; }
  static std::complex<R> narrow(wide value) {
    return {static_cast<R>(value.real()), static_cast<R>(value.imag())};
  }
};

template <class V>
struct element<loc<V>> {
  struct wide {
    typename element<V>::wide value;
    std::int32_t index;
    bool operator==(const wide&) const = default;
  };
  static wide widen(loc<V> pair) { return {element<V>::widen(pair.value), pair.index}; }
  static loc<V> narrow(wide pair) {
    loc<V> result;
    std::memset(static_cast<void*>(&result), 0, sizeof result);
    result.value = element<V>::narrow(pair.value);
    result.index = pair.index;
    return result;
  }
};

template <class T>
constexpr bool is_loc = false;
template <class V>
constexpr bool is_loc<loc<V>> = true;
template <class T>
constexpr bool is_complex = false;
template <class R>
constexpr bool is_complex<std::complex<R>> = true;

// The largest whole number up to which all are exact in T.
template <class T>
std::int64_t exact_limit() {
  if (std::is_same_v<T, fp16>) return 2048;
  if (std::is_same_v<T, bf16>) return 256;
  if (std::is_same_v<T, fp8_e4m3>) return 16;
  if (std::is_same_v<T, fp8_e5m2>) return 8;
  if (sizeof(T) == 1) return 127;
  return 30000;
}

// Terms whose sum over all ranks stays exact.
template <class T>
std::int64_t term(std::uint64_t bits, const problem& p, int rank) {
  const std::int64_t most = std::min<std::int64_t>(50, exact_limit<T>() / p.ranks);
  if (most == 0) return rank < exact_limit<T>() ? static_cast<std::int64_t>(bits & 1) : 0;
  const auto value = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(most + 1));
  return std::is_unsigned_v<T> || (bits >> 32 & 1) == 0 ? value : -value;
}

// At most two ranks have a factor of 2 in a product.
std::int64_t factor(const problem& p, int rank, std::uint64_t index) {
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  const auto me = static_cast<std::uint64_t>(rank);
  return index % ranks == me || index / 3 % ranks == me ? 2 : 1;
}

// Whether a value could come out as it went in: then MPI leaves open whether true is 1.
bool may_be_alone(const problem& p) {
  return p.ranks == 1 || p.of == kind::scan || p.of == kind::exscan;
}

template <class T>
T logical_input(const problem& p, std::uint64_t bits) {
  const bool yes = p.reduction == op::logical_and ? bits % 8 != 0 : bits % 3 == 0;
  return static_cast<T>(!yes ? 0 : may_be_alone(p) ? 1 : 1 + (bits >> 8) % 3);
}

// One input of a reduction.
template <class T>
T reduced_input(const problem& p, int rank, std::uint64_t index) {
  using e = element<T>;
  const std::uint64_t bits = mix(rank, index);
  if constexpr (is_loc<T>) {
    // Few different values, so that ties happen.
    return e::narrow({static_cast<decltype(e::wide::value)>(bits % 4),
                      static_cast<std::int32_t>((bits >> 8) % 1000)});
  } else {
    if constexpr (std::is_integral_v<T>) {
      const op o = p.reduction;
      if (o == op::bit_and || o == op::bit_or || o == op::bit_xor) return static_cast<T>(bits);
      if (o == op::logical_and || o == op::logical_or || o == op::logical_xor)
        return logical_input<T>(p, bits);
    }
    if (p.reduction == op::prod)
      return e::narrow(static_cast<typename e::wide>(factor(p, rank, index)));
    if constexpr (is_complex<T>)
      return e::narrow({static_cast<double>(term<T>(bits, p, rank)),
                        static_cast<double>(term<T>(bits >> 16, p, rank))});
    else
      return e::narrow(static_cast<typename e::wide>(term<T>(bits, p, rank)));
  }
}

template <class W>
W combine(op o, const W& a, const W& b) {
  if constexpr (requires { a.index; }) {
    const bool b_wins = o == op::minloc ? b.value < a.value : b.value > a.value;
    if (b_wins) return b;
    return b.value == a.value && b.index < a.index ? b : a;
  } else {
    if (o == op::sum || o == op::avg) return a + b;
    if (o == op::prod) return a * b;
    if constexpr (requires { a < b; }) {
      if (o == op::min) return b < a ? b : a;
      if (o == op::max) return a < b ? b : a;
    }
    if constexpr (std::is_integral_v<W>) {
      switch (o) {
        case op::logical_and: return a && b;
        case op::logical_or: return a || b;
        case op::logical_xor: return !a != !b;
        case op::bit_and: return a & b;
        case op::bit_or: return a | b;
        case op::bit_xor: return a ^ b;
        default: break;
      }
    }
    return a;
  }
}

template <class W>
W finish(op o, const W& sum, int ranks) {
  if constexpr (requires { sum.index; }) {
    return sum;
  } else if (o != op::avg) {
    return sum;
  } else if constexpr (is_complex<W>) {
    return {sum.real() / ranks, sum.imag() / ranks};
  } else {
    return sum / static_cast<W>(ranks);
  }
}

template <class T>
T reduced_result(const problem& p, const contribution& from) {
  using e = element<T>;
  auto result = e::widen(reduced_input<T>(p, from.first, from.index));
  for (int rank = from.first + 1; rank <= from.last; ++rank)
    result = combine(p.reduction, result, e::widen(reduced_input<T>(p, rank, from.index)));
  return e::narrow(finish(p.reduction, result, from.last - from.first + 1));
}

// Data that is only moved has arbitrary bytes.
void moved_input(int rank, std::uint64_t index, std::byte* to, std::size_t size) {
  for (std::size_t done = 0; done < size; done += 8) {
    const std::uint64_t word = mix(rank, index * 4 + done / 8);
    std::memcpy(to + done, &word, std::min<std::size_t>(8, size - done));
  }
}

// Calls `use` with a value of the C++ type that a type has.
template <class Use>
void with_type(type t, Use&& use) {
  switch (t) {
    case type::int8: return use(std::int8_t{});
    case type::uint8: return use(std::uint8_t{});
    case type::int16: return use(std::int16_t{});
    case type::uint16: return use(std::uint16_t{});
    case type::int32: return use(std::int32_t{});
    case type::uint32: return use(std::uint32_t{});
    case type::int64: return use(std::int64_t{});
    case type::uint64: return use(std::uint64_t{});
    case type::fp16: return use(fp16{});
    case type::bf16: return use(bf16{});
    case type::fp32: return use(float{});
    case type::fp64: return use(double{});
    case type::complex_fp32: return use(std::complex<float>{});
    case type::complex_fp64: return use(std::complex<double>{});
    case type::int16_loc: return use(loc<std::int16_t>{});
    case type::int32_loc: return use(loc<std::int32_t>{});
    case type::int64_loc: return use(loc<std::int64_t>{});
    case type::fp32_loc: return use(loc<float>{});
    case type::fp64_loc: return use(loc<double>{});
    case type::boolean: return use(bool{});
    case type::fp8_e4m3: return use(fp8_e4m3{});
    case type::fp8_e5m2: return use(fp8_e5m2{});
    case type::bytes: break;
  }
}

template <class T>
T load(const std::byte* from, std::uint64_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class W>
void print(std::ostream& out, const W& value) {
  if constexpr (requires { value.index; })
    out << "{" << value.value << ", " << value.index << "}";
  else
    out << value;
}

template <class T>
std::string difference(const std::vector<std::byte>& expected, const std::vector<std::byte>& got) {
  for (std::uint64_t i = 0; (i + 1) * sizeof(T) <= expected.size(); ++i) {
    const std::size_t at = i * sizeof(T);
    if (std::memcmp(expected.data() + at, got.data() + at, sizeof(T)) == 0) continue;
    const auto want = element<T>::widen(load<T>(expected.data(), i));
    const auto have = element<T>::widen(load<T>(got.data(), i));
    if (is_loc<T> && want == have) continue;
    std::ostringstream text;
    text << "element " << i << " is ";
    print(text, have);
    text << ", should be ";
    print(text, want);
    return text.str();
  }
  return {};
}

}  // namespace

std::vector<std::byte> make_input(const problem& p, int rank, std::uint64_t elements) {
  const std::size_t size = p.element_size();
  std::vector<std::byte> memory(elements * size);
  if (!reduces(p.of)) {
    for (std::uint64_t i = 0; i < elements; ++i) moved_input(rank, i, &memory[i * size], size);
    return memory;
  }
  with_type(p.element, [&](auto sample) {
    using T = decltype(sample);
    for (std::uint64_t i = 0; i < elements; ++i) {
      const T value = reduced_input<T>(p, rank, i);
      std::memcpy(&memory[i * size], &value, size);
    }
  });
  return memory;
}

std::vector<std::byte> make_expected(const problem& p, std::byte untouched) {
  const collective& row = row_of(p.of);
  const std::uint64_t elements = recv_elements(p);
  const std::size_t size = p.element_size();
  std::vector<std::byte> memory(elements * size, untouched);
  if (!reduces(p.of)) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      const contribution from = row.source(p, i);
      moved_input(from.first, from.index, &memory[i * size], size);
    }
    return memory;
  }
  with_type(p.element, [&](auto sample) {
    using T = decltype(sample);
    for (std::uint64_t i = 0; i < elements; ++i) {
      const contribution from = row.source(p, i);
      if (from.first > from.last) continue;
      const T value = reduced_result<T>(p, from);
      std::memcpy(&memory[i * size], &value, size);
    }
  });
  return memory;
}

std::string find_difference(const problem& p, const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& got) {
  if (expected.empty() || std::memcmp(expected.data(), got.data(), expected.size()) == 0) return {};
  std::string found;
  with_type(p.element, [&](auto sample) { found = difference<decltype(sample)>(expected, got); });
  return found;
}

}  // namespace sucl::bench
