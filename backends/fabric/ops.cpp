// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"

#include "base/elements/half.hpp"
#include "base/narrow.hpp"

#include <cstdint>

namespace sucl::fabric {
namespace elements {

namespace base = sucl::base;
#define SUCL_FOLD_ELEMENTS
#include "base/elements/fold_elements.hpp"
#define SUCL_COMBINE_ELEMENTS
#include "base/elements/combine_elements.hpp"

}  // namespace elements

namespace {

struct find_function {
  template <class Element, class Op, class End>
  fold_function visit() const {
    return elements::combine<Element, Op, End>;
  }
  fold_function none() const { return nullptr; }
};

}  // namespace

fold_function fold_of(sucl_op op, sucl_type type) {
  if (op == SUCL_OP_AVG) return nullptr;
  if (sucl::base::is_narrow_float(type) && op != SUCL_OP_MIN && op != SUCL_OP_MAX) return nullptr;
  __extension__ using int128 = __int128;  // of averages alone
  return elements::visit_fold<int128, int128>(type, op, find_function{});
}

}  // namespace sucl::fabric
