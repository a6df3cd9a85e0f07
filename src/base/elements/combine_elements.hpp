// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Elements in memory of any alignment, for processors. Included inside the namespace of its user,
// after base/elements/fold_elements.hpp and for the same reason. Files that include it define
// SUCL_COMBINE_ELEMENTS before; elsewhere it is empty.
#ifdef SUCL_COMBINE_ELEMENTS
#undef SUCL_COMBINE_ELEMENTS

// Before a loop whose rounds may be computed together. Clang checks at run time whether they may.
#if defined(__clang__)
#define SUCL_ROUNDS_ARE_INDEPENDENT
#else
#define SUCL_ROUNDS_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <class T>
struct [[gnu::packed, gnu::may_alias]] unaligned {
  T value;
};

/// into[i] = from[i] op into[i].
template <class Element, class Op, class End>
void combine(const void* from, void* into, std::uint64_t count) {
  using cell = unaligned<typename Element::stored>;
  const auto* a = static_cast<const cell*>(from);
  auto* b = static_cast<cell*>(into);
  SUCL_ROUNDS_ARE_INDEPENDENT
  for (std::uint64_t i = 0; i < count; ++i)
    b[i].value = End::template of<Element>(
        Op::of(Element::widen(a[i].value), Element::widen(b[i].value)), 1);
}

#endif
