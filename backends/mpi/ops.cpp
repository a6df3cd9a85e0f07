// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"

#include "base/elements/half.hpp"
#include "types.hpp"

namespace sucl::mpi_module {
namespace elements {

namespace base = sucl::base;
#define SUCL_FOLD_ELEMENTS
#include "base/elements/fold_elements.hpp"
#define SUCL_COMBINE_ELEMENTS
#include "base/elements/combine_elements.hpp"

}  // namespace elements

namespace {

template <class Element, class Op, class End>
void combine(void* in, void* inout, count_type* count, MPI_Datatype*) {
  elements::combine<Element, Op, End>(in, inout, static_cast<std::uint64_t>(*count));
}

struct find_function {
  template <class Element, class Op, class End>
  op_function visit() const {
    return combine<Element, Op, End>;
  }
  op_function none() const { return nullptr; }
};

template <class T>
void unify_nans(void* results, std::uint64_t count) {
  auto* values = static_cast<elements::unaligned<T>*>(results);
  for (std::uint64_t i = 0; i < count; ++i)
    if (elements::is_nan(values[i].value)) values[i].value = elements::one_nan(values[i].value);
}

template <class T>
void unify_nans_of_complex(void* results, std::uint64_t count) {
  unify_nans<T>(results, 2 * count);
}

bool is_float(sucl_type t) { return t == SUCL_TYPE_FP32 || t == SUCL_TYPE_FP64; }
bool is_complex(sucl_type t) { return t == SUCL_TYPE_COMPLEX_FP32 || t == SUCL_TYPE_COMPLEX_FP64; }

// Min, max, minloc and maxloc of floats give either operand when one is NaN, or both are zeros;
// compilers of libraries may fuse steps of products of complex numbers, or look for infinities; and
// some combine the bits of MPI_C_BOOL, or take it for 0 or 1.
bool differs(sucl_op op, sucl_type t) {
  if (t == SUCL_TYPE_BOOL) return true;
  // Open MPI's vector code adds 8 and 16-bit integers with saturation, its other code without.
  if (this_library() == library::openmpi && op == SUCL_OP_SUM && t >= SUCL_TYPE_INT8 &&
      t <= SUCL_TYPE_UINT16)
    return true;
  if (t == SUCL_TYPE_FP32_LOC || t == SUCL_TYPE_FP64_LOC) return true;
  if (op == SUCL_OP_MIN || op == SUCL_OP_MAX) return is_float(t);
  return op == SUCL_OP_PROD && is_complex(t);
}

auto nans_of(sucl_type t) -> void (*)(void*, std::uint64_t) {
  switch (t) {
    case SUCL_TYPE_FP32: return unify_nans<float>;
    case SUCL_TYPE_FP64: return unify_nans<double>;
    case SUCL_TYPE_COMPLEX_FP32: return unify_nans_of_complex<float>;
    case SUCL_TYPE_COMPLEX_FP64: return unify_nans_of_complex<double>;
    default: return nullptr;
  }
}

}  // namespace

reduction reduction_of(sucl_op op, sucl_type type) {
  reduction r;
  if (!reducible(op, type)) return r;
  __extension__ using int128 = __int128;  // of averages, which are not reducible here
  r.type = reduced_type(type);
  if (differs(op, type)) {
    r.own = elements::visit_fold<int128, int128>(type, op, find_function{});
  } else {
    r.native = native_op(op);
    r.unify_nans = nans_of(type);
  }
  return r;
}

int own_ops::find(op_function function, MPI_Op* found) {
  for (const entry& e : m_entries) {
    if (e.function != function) continue;
    *found = e.native;
    return MPI_SUCCESS;
  }
  const int code = SUCL_MPI_CALL(Op_create)(function, 1, found);
  if (code == MPI_SUCCESS) m_entries.push_back({function, *found});
  return code;
}

void own_ops::free_all() {
  for (entry& e : m_entries) MPI_Op_free(&e.native);
  m_entries.clear();
}

}  // namespace sucl::mpi_module
