// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"

#include "base/elements/half.hpp"

#include <cstring>

namespace sucl::fabric {
namespace elements {

namespace base = sucl::base;
#define SUCL_FOLD_ELEMENTS
#include "base/elements/fold_elements.hpp"

}  // namespace elements

namespace {

// Memory of any alignment.
template <class T>
struct [[gnu::packed, gnu::may_alias]] unaligned {
  T value;
};

template <class Element, class Op, class End>
void combine(const void* from, void* into, std::uint64_t count) {
  using cell = unaligned<typename Element::stored>;
  const auto* a = static_cast<const cell*>(from);
  auto* b = static_cast<cell*>(into);
#pragma GCC ivdep
  for (std::uint64_t i = 0; i < count; ++i)
    b[i].value = End::template of<Element>(
        Op::of(Element::widen(a[i].value), Element::widen(b[i].value)), 1);
}

struct find_function {
  template <class Element, class Op, class End>
  fold_function visit() const {
    return combine<Element, Op, End>;
  }
  fold_function none() const { return nullptr; }
};

bool is_narrow(sucl_type t) {
  return t == SUCL_TYPE_FP16 || t == SUCL_TYPE_BF16 || t == SUCL_TYPE_FP8_E4M3 ||
         t == SUCL_TYPE_FP8_E5M2;
}

}  // namespace

fold_function fold_of(sucl_op op, sucl_type type) {
  if (op == SUCL_OP_AVG) return nullptr;
  if (is_narrow(type) && op != SUCL_OP_MIN && op != SUCL_OP_MAX) return nullptr;
  __extension__ using int128 = __int128;  // of averages alone
  return elements::visit_fold<int128, int128>(type, op, find_function{});
}

}  // namespace sucl::fabric
