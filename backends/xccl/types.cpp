// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include "api.hpp"

namespace sucl::xccl {

native_element native_type(sucl_type type) {
  switch (type) {
    case SUCL_TYPE_INT8: return {int8, 1};
    case SUCL_TYPE_UINT8: return {uint8, 1};
    case SUCL_TYPE_INT32: return {int32, 1};
    case SUCL_TYPE_UINT32: return {uint32, 1};
    case SUCL_TYPE_INT64: return {int64, 1};
    case SUCL_TYPE_UINT64: return {uint64, 1};
    case SUCL_TYPE_FP16: return {float16, 1};
    case SUCL_TYPE_BF16: return {bfloat16, 1};
    case SUCL_TYPE_FP32: return {float32, 1};
    case SUCL_TYPE_FP64: return {float64, 1};
    case SUCL_TYPE_COMPLEX_FP32: return {float32, 2};  // sums and averages only
    case SUCL_TYPE_COMPLEX_FP64: return {float64, 2};
    default: return {-1, 1};
  }
}

int native_op(sucl_op op) {
  switch (op) {
    case SUCL_OP_SUM: return sum;
    case SUCL_OP_PROD: return prod;
    case SUCL_OP_MIN: return min;
    case SUCL_OP_MAX: return max;
    case SUCL_OP_AVG: return avg;
    default: return -1;
  }
}

bool reduces(sucl_kind kind) {
  switch (kind) {
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return true;
    default: return false;
  }
}

namespace {

bool is_integer(sucl_type type) { return type >= SUCL_TYPE_INT8 && type <= SUCL_TYPE_UINT64; }

// 16-bit sums and products are rounded at each step here, and averages before they are summed. The
// NaN of a sum of fp64 has bits of one of the contributions, the same on all ranks.
bool differs_in_bits(sucl_type type, sucl_op op) {
  const bool narrow = type == SUCL_TYPE_FP16 || type == SUCL_TYPE_BF16;
  const bool wide = type == SUCL_TYPE_FP64 || type == SUCL_TYPE_COMPLEX_FP64;
  return op == SUCL_OP_AVG || ((narrow || wide) && (op == SUCL_OP_SUM || op == SUCL_OP_PROD));
}

// A number wins over a NaN here (NCCL 2.28).
bool loses_nan(sucl_type type, sucl_op op) {
  return (op == SUCL_OP_MIN || op == SUCL_OP_MAX) && !is_integer(type);
}

}  // namespace

bool supports(const preferences& wanted, sucl_kind kind, sucl_type type, sucl_op op) {
  if (kind == SUCL_KIND_SCAN || kind == SUCL_KIND_EXSCAN) return false;
  if (kind >= SUCL_KIND_SEND && kind <= SUCL_KIND_GROUP) return wanted.messages;
  if (kind > SUCL_KIND_GROUP) return false;
  if (!reduces(kind)) return true;
  const native_element element = native_type(type);
  if (element.type < 0 || native_op(op) < 0) return false;
  if (element.components > 1 && op != SUCL_OP_SUM && op != SUCL_OP_AVG) return false;
  if (op == SUCL_OP_AVG && is_integer(type)) return false;  // the sum would overflow
  if (loses_nan(type, op)) return false;
  return !wanted.exact || !differs_in_bits(type, op);
}

}  // namespace sucl::xccl
