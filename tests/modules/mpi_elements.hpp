// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Elements of every type for tests: made, combined and compared one by one, by plain loops that
/// know nothing of MPI.
#pragma once

#include <sucl/types.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace sucl::test {

/// How to handle elements of one type.
struct element_kind {
  std::string name;
  sucl_type type;
  std::size_t size;
  std::vector<sucl_op> ops;  ///< that the type can be reduced with
  /// Element `id` of rank `r`, chosen so that `op` over many ranks is exact and has ties.
  void (*make)(void* to, int r, std::uint64_t id, sucl_op op);
  void (*combine)(void* into, const void* with, sucl_op op);
  bool (*equal)(const void* a, const void* b);
};

inline std::uint64_t mix(int r, std::uint64_t id) {
  return (id + 1) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(r) * 0xD1B54A32D192ED03u;
}

template <class T>
T number(int r, std::uint64_t id, sucl_op op) {
  const auto n = static_cast<std::uint64_t>(r);
  switch (op) {
    case SUCL_OP_SUM: return static_cast<T>((n * 5 + id) % 13);
    case SUCL_OP_PROD: return static_cast<T>(1 + (n + id) % 3);
    case SUCL_OP_MIN:
    case SUCL_OP_MAX: {
      const auto v = static_cast<int>((n * 37 + id * 11) % 101);
      return std::is_signed_v<T> ? static_cast<T>(v - 50) : static_cast<T>(v);
    }
    case SUCL_OP_LOGICAL_AND:
    case SUCL_OP_LOGICAL_OR:
    case SUCL_OP_LOGICAL_XOR: return static_cast<T>((n * 3 + id) % 4 == 0 ? 0 : 2 + n);
    default:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(mix(r, id));
      return static_cast<T>((n * 1000 + id) % 2048);
  }
}

template <class T>
T combined(T a, T b, sucl_op op) {
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case SUCL_OP_LOGICAL_AND: return static_cast<T>(a != 0 && b != 0);
      case SUCL_OP_LOGICAL_OR: return static_cast<T>(a != 0 || b != 0);
      case SUCL_OP_LOGICAL_XOR: return static_cast<T>((a != 0) != (b != 0));
      case SUCL_OP_BIT_AND: return static_cast<T>(a & b);
      case SUCL_OP_BIT_OR: return static_cast<T>(a | b);
      case SUCL_OP_BIT_XOR: return static_cast<T>(a ^ b);
      default: break;
    }
  }
  if constexpr (std::is_arithmetic_v<T>) {
    if (op == SUCL_OP_MIN) return b < a ? b : a;
    if (op == SUCL_OP_MAX) return a < b ? b : a;
  }
  return op == SUCL_OP_SUM ? static_cast<T>(a + b) : static_cast<T>(a * b);
}

template <class T>
struct handle_number {
  static void make(void* to, int r, std::uint64_t id, sucl_op op) {
    const T v = number<T>(r, id, op);
    std::memcpy(to, &v, sizeof v);
  }
  static void combine(void* into, const void* with, sucl_op op) {
    T a, b;
    std::memcpy(&a, into, sizeof a);
    std::memcpy(&b, with, sizeof b);
    a = combined(a, b, op);
    std::memcpy(into, &a, sizeof a);
  }
  static bool equal(const void* a, const void* b) { return std::memcmp(a, b, sizeof(T)) == 0; }
};

template <class R>
struct handle_complex {
  using T = std::complex<R>;
  static void make(void* to, int r, std::uint64_t id, sucl_op op) {
    const T v(number<R>(r, id, op), number<R>(r, id + 1, op));
    std::memcpy(to, &v, sizeof v);
  }
  static void combine(void* into, const void* with, sucl_op op) {
    T a, b;
    std::memcpy(&a, into, sizeof a);
    std::memcpy(&b, with, sizeof b);
    if (op == SUCL_OP_SUM)
      a = T(a.real() + b.real(), a.imag() + b.imag());
    else
      a = T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    std::memcpy(into, &a, sizeof a);
  }
  static bool equal(const void* a, const void* b) {
    T x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return x == y;
  }
};

template <class V>
struct handle_loc {
  using T = loc<V>;
  static void make(void* to, int r, std::uint64_t id, sucl_op op) {
    T v;
    std::memset(&v, 0, sizeof v);
    v.value = op == SUCL_OP_NONE ? number<V>(r, id, op)
                                 : static_cast<V>((static_cast<std::uint64_t>(r) * 7 + id) % 3);
    v.index = (r * 5 + 3) % 7;
    std::memcpy(to, &v, sizeof v);
  }
  static void combine(void* into, const void* with, sucl_op op) {
    T a, b;
    std::memcpy(&a, into, sizeof a);
    std::memcpy(&b, with, sizeof b);
    const bool better = op == SUCL_OP_MINLOC ? b.value < a.value : a.value < b.value;
    if (better || (a.value == b.value && b.index < a.index)) a = b;
    std::memcpy(into, &a, sizeof a);
  }
  static bool equal(const void* a, const void* b) {
    T x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return x.value == y.value && x.index == y.index;
  }
};

/// Bools, of which true has many faces.
struct handle_bool {
  static void make(void* to, int r, std::uint64_t id, sucl_op op) {
    handle_number<std::uint8_t>::make(to, r, id, op == SUCL_OP_NONE ? op : SUCL_OP_LOGICAL_AND);
  }
  static void combine(void* into, const void* with, sucl_op op) {
    if (op == SUCL_OP_MIN) op = SUCL_OP_LOGICAL_AND;
    if (op == SUCL_OP_MAX) op = SUCL_OP_LOGICAL_OR;
    handle_number<std::uint8_t>::combine(into, with, op);
  }
  static bool equal(const void* a, const void* b) { return std::memcmp(a, b, 1) == 0; }
};

template <std::size_t Bytes>
struct handle_bytes {
  static void make(void* to, int r, std::uint64_t id, sucl_op) {
    auto* p = static_cast<unsigned char*>(to);
    for (std::size_t i = 0; i < Bytes; ++i)
      p[i] = static_cast<unsigned char>(mix(r, id * Bytes + i) >> 32);
  }
  static void combine(void*, const void*, sucl_op) {}
  static bool equal(const void* a, const void* b) { return std::memcmp(a, b, Bytes) == 0; }
};

template <class Handle>
element_kind element(std::string name, sucl_type type, std::size_t size,
                     std::vector<sucl_op> ops = {}) {
  return {std::move(name), type,         size, std::move(ops), Handle::make,
          Handle::combine, Handle::equal};
}

inline std::vector<element_kind> all_elements() {
  const std::vector<sucl_op> integer{
      SUCL_OP_SUM,        SUCL_OP_PROD,        SUCL_OP_MIN,     SUCL_OP_MAX,    SUCL_OP_LOGICAL_AND,
      SUCL_OP_LOGICAL_OR, SUCL_OP_LOGICAL_XOR, SUCL_OP_BIT_AND, SUCL_OP_BIT_OR, SUCL_OP_BIT_XOR};
  const std::vector<sucl_op> real{SUCL_OP_SUM, SUCL_OP_PROD, SUCL_OP_MIN, SUCL_OP_MAX};
  const std::vector<sucl_op> complex{SUCL_OP_SUM, SUCL_OP_PROD};
  const std::vector<sucl_op> pair{SUCL_OP_MINLOC, SUCL_OP_MAXLOC};
  const std::vector<sucl_op> logical{SUCL_OP_LOGICAL_AND, SUCL_OP_LOGICAL_OR, SUCL_OP_LOGICAL_XOR,
                                     SUCL_OP_MIN, SUCL_OP_MAX};
  return {
      element<handle_bytes<1>>("bytes1", SUCL_TYPE_BYTES, 1),
      element<handle_bytes<3>>("bytes3", SUCL_TYPE_BYTES, 3),
      element<handle_bytes<24>>("bytes24", SUCL_TYPE_BYTES, 24),
      element<handle_number<std::int8_t>>("int8", SUCL_TYPE_INT8, 1, integer),
      element<handle_number<std::uint8_t>>("uint8", SUCL_TYPE_UINT8, 1, integer),
      element<handle_number<std::int16_t>>("int16", SUCL_TYPE_INT16, 2, integer),
      element<handle_number<std::uint16_t>>("uint16", SUCL_TYPE_UINT16, 2, integer),
      element<handle_number<std::int32_t>>("int32", SUCL_TYPE_INT32, 4, integer),
      element<handle_number<std::uint32_t>>("uint32", SUCL_TYPE_UINT32, 4, integer),
      element<handle_number<std::int64_t>>("int64", SUCL_TYPE_INT64, 8, integer),
      element<handle_number<std::uint64_t>>("uint64", SUCL_TYPE_UINT64, 8, integer),
      element<handle_bytes<2>>("fp16", SUCL_TYPE_FP16, 2),
      element<handle_bytes<2>>("bf16", SUCL_TYPE_BF16, 2),
      element<handle_number<float>>("fp32", SUCL_TYPE_FP32, 4, real),
      element<handle_number<double>>("fp64", SUCL_TYPE_FP64, 8, real),
      element<handle_complex<float>>("complex_fp32", SUCL_TYPE_COMPLEX_FP32, 8, complex),
      element<handle_complex<double>>("complex_fp64", SUCL_TYPE_COMPLEX_FP64, 16, complex),
      element<handle_loc<std::int16_t>>("int16_loc", SUCL_TYPE_INT16_LOC, 8, pair),
      element<handle_loc<std::int32_t>>("int32_loc", SUCL_TYPE_INT32_LOC, 8, pair),
      element<handle_loc<std::int64_t>>("int64_loc", SUCL_TYPE_INT64_LOC, 16, pair),
      element<handle_loc<float>>("fp32_loc", SUCL_TYPE_FP32_LOC, 8, pair),
      element<handle_loc<double>>("fp64_loc", SUCL_TYPE_FP64_LOC, 16, pair),
      element<handle_bool>("bool", SUCL_TYPE_BOOL, 1, logical),
      element<handle_bytes<1>>("fp8_e4m3", SUCL_TYPE_FP8_E4M3, 1),
      element<handle_bytes<1>>("fp8_e5m2", SUCL_TYPE_FP8_E5M2, 1),
  };
}

}  // namespace sucl::test
