// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The loops behind fold.hpp. Each instruction set compiles this file in a source of its own, which
// defines SUCL_FOLD_SET. Everything is in an unnamed namespace and no inline function of a library
// is called: a copy of one that was compiled for a newer processor must never be linked elsewhere.
#include "base/elements/floating_point_mode.hpp"
#include "base/elements/half.hpp"
#include "core/host_ops/fold.hpp"

namespace sucl::core {
namespace {

__extension__ using int128 = __int128;

#define SUCL_FOLD_ELEMENTS
#include "base/elements/fold_elements.hpp"
#define SUCL_COMBINE_ELEMENTS
#include "base/elements/combine_elements.hpp"

template <class Element, class Op, class End>
struct loops {
  using stored = typename Element::stored;
  using wide = typename Element::wide;
  using cell = unaligned<stored>;

  static void two(cell* to, const cell* a, const cell* b, std::uint64_t count, int divisor) {
    SUCL_ROUNDS_ARE_INDEPENDENT
    for (std::uint64_t i = 0; i < count; ++i)
      to[i].value = End::template of<Element>(
          Op::of(Element::widen(a[i].value), Element::widen(b[i].value)), divisor);
  }

  static void three(cell* to, const cell* a, const cell* b, const cell* c, std::uint64_t count,
                    int divisor) {
    SUCL_ROUNDS_ARE_INDEPENDENT
    for (std::uint64_t i = 0; i < count; ++i)
      to[i].value = End::template of<Element>(
          Op::of(Op::of(Element::widen(a[i].value), Element::widen(b[i].value)),
                 Element::widen(c[i].value)),
          divisor);
  }

  // Any number of sources, in blocks that stay in the first cache.
  static void many(cell* to, const void* const* from, std::size_t sources, std::uint64_t count,
                   int divisor) {
    constexpr std::uint64_t block = 4096 / sizeof(wide);
    wide sum[block];
    for (std::uint64_t begin = 0; begin < count; begin += block) {
      const std::uint64_t n = count - begin < block ? count - begin : block;
      const cell* first = static_cast<const cell*>(from[0]) + begin;
      for (std::uint64_t i = 0; i < n; ++i) sum[i] = Element::widen(first[i].value);
      for (std::size_t s = 1; s < sources; ++s) {
        const cell* next = static_cast<const cell*>(from[s]) + begin;
        for (std::uint64_t i = 0; i < n; ++i)
          sum[i] = Op::of(sum[i], Element::widen(next[i].value));
      }
      for (std::uint64_t i = 0; i < n; ++i)
        to[begin + i].value = End::template of<Element>(sum[i], divisor);
    }
  }

  static void run(void* to, const void* const* from, std::size_t sources, std::uint64_t count,
                  int divisor) {
    const base::default_floating_point_mode mode;
    auto* out = static_cast<cell*>(to);
    const auto in = [&](std::size_t s) { return static_cast<const cell*>(from[s]); };
    if (sources == 1 && End::copies(divisor)) {
      __builtin_memmove(to, from[0], count * sizeof(stored));
      return;
    }
    if (sources == 2) return two(out, in(0), in(1), count, divisor);
    if (sources == 3) return three(out, in(0), in(1), in(2), count, divisor);
    many(out, from, sources, count, divisor);
  }
};

struct find_loop {
  template <class Element, class Op, class End>
  fold_function visit() const {
    return loops<Element, Op, End>::run;
  }
  fold_function none() const { return nullptr; }
};

}  // namespace

fold_function SUCL_FOLD_SET(sucl_type type, sucl_op op) noexcept;
fold_function SUCL_FOLD_SET(sucl_type type, sucl_op op) noexcept {
  return visit_fold<int128, int128>(type, op, find_loop{});
}

}  // namespace sucl::core
