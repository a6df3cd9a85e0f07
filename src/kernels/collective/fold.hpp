// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reductions of quads, as the host's loops do them: combined in a wider type where the stored one
/// is narrow, rounded once. A folder gives the result of some quads at once, so that a work item
/// has several loads in flight.
#pragma once

#include "base/elements/half.hpp"
#include "kernels/collective/args.hpp"
#include "kernels/collective/memory.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>

namespace sucl::kernels {

/// Sums of 64-bit integers, and their average: devices have no such type.
struct integer128 {
  std::uint64_t low = 0;
  std::int64_t high = 0;

  integer128() = default;
  explicit integer128(std::int64_t v) : low(static_cast<std::uint64_t>(v)), high(v < 0 ? -1 : 0) {}
  explicit integer128(std::uint64_t v) : low(v) {}
  explicit integer128(int v) : integer128(static_cast<std::int64_t>(v)) {}
  explicit operator std::int64_t() const { return static_cast<std::int64_t>(low); }
  explicit operator std::uint64_t() const { return low; }

  friend integer128 operator+(integer128 a, integer128 b) {
    integer128 sum;
    sum.low = a.low + b.low;
    sum.high = a.high + b.high + (sum.low < a.low ? 1 : 0);
    return sum;
  }
  friend integer128 operator-(integer128 a) {
    integer128 negated;
    negated.low = ~a.low + 1;
    negated.high = ~a.high + (negated.low == 0 ? 1 : 0);
    return negated;
  }
  /// By a number from 1 to 2^31-1, towards zero, where the quotient has 64 bits.
  friend integer128 operator/(integer128 a, integer128 b) {
    const bool negative = a.high < 0;
    const integer128 size = negative ? -a : a;
    const std::uint64_t rest = static_cast<std::uint64_t>(size.high) % b.low;
    const std::uint64_t upper = rest << 32 | size.low >> 32;
    const std::uint64_t lower = upper % b.low << 32 | (size.low & 0xffffffffu);
    integer128 quotient((upper / b.low << 32) | lower / b.low);
    return negative ? -quotient : quotient;
  }
};

namespace elements {
using sucl::bf16, sucl::fp16;
namespace base = sucl::base;
#define SUCL_FOLD_ELEMENTS
#include "base/elements/fold_elements.hpp"
}  // namespace elements

/// Combines elements of one type by one op.
template <class Element, class Op, class End = elements::keep_it>
struct fold_of {
  using stored = typename Element::stored;
  using wide = typename Element::wide;
  static constexpr int width = static_cast<int>(sizeof(quad) / sizeof(stored));
  /// Quads to be given at once.
  static constexpr int batch = 4;
  static constexpr bool combines = true;

  /// `source(s, i)` is quad i of source s, of which there is at least one.
  template <int Count, class Source>
  SUCL_INLINE void operator()(quad (&result)[Count], int sources, int divisor,
                              const Source& source) const {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
    if (sources == 1 && End::copies(divisor)) {
      for (int i = 0; i < Count; ++i) result[i] = source(0, i);
      return;
    }
    wide sum[Count][width];
    for (int i = 0; i < Count; ++i) {
      stored v[width];
      const quad q = source(0, i);
      __builtin_memcpy(v, &q, sizeof q);
      for (int k = 0; k < width; ++k) sum[i][k] = Element::widen(v[k]);
    }
    for (int s = 1; s < sources; ++s) {
      quad q[Count];
      for (int i = 0; i < Count; ++i) q[i] = source(s, i);
      for (int i = 0; i < Count; ++i) {
        stored v[width];
        __builtin_memcpy(v, &q[i], sizeof q[i]);
        for (int k = 0; k < width; ++k) sum[i][k] = Op::of(sum[i][k], Element::widen(v[k]));
      }
    }
    for (int i = 0; i < Count; ++i) {
      stored v[width];
      for (int k = 0; k < width; ++k) v[k] = End::template of<Element>(sum[i][k], divisor);
      __builtin_memcpy(&result[i], v, sizeof v);
    }
  }
};

namespace detail {

struct fold_visitor {
  const quad* from;
  int sources, divisor;
  template <class Element, class Op, class End>
  quad visit() const {
    quad result[1];
    fold_of<Element, Op, End>{}(result, sources, divisor,
                                [&](int s, int) SUCL_FLAT { return from[s]; });
    return result[0];
  }
  quad none() const { return {}; }
};

/// All types and ops, compiled once a program.
[[gnu::noinline]] inline quad fold_quads(const quad* from, int sources, int divisor,
                                         std::int32_t type, std::int32_t op) {
  return elements::visit_fold<integer128, integer128>(type, op,
                                                      fold_visitor{from, sources, divisor});
}

}  // namespace detail

/// Combines elements of a type and by an op that are known when the kernel runs.
struct fold_any {
  std::int32_t type, op;
  static constexpr int batch = 1;
  static constexpr bool combines = true;

  template <int Count, class Source>
  SUCL_INLINE void operator()(quad (&result)[Count], int sources, int divisor,
                              const Source& source) const {
    quad from[max_ranks];
    for (int i = 0; i < Count; ++i) {
      for (int s = 0; s < sources; ++s) from[s] = source(s, i);
      result[i] = detail::fold_quads(from, sources, divisor, type, op);
    }
  }
};

/// For what is only moved.
struct fold_nothing {
  static constexpr int batch = 4;
  static constexpr bool combines = false;
  template <int Count, class Source>
  SUCL_INLINE void operator()(quad (&result)[Count], int, int, const Source& source) const {
    for (int i = 0; i < Count; ++i) result[i] = source(0, i);
  }
};

}  // namespace sucl::kernels
