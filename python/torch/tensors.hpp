// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Tensors as memory of SuCL's operations.
#pragma once

#include "failure.hpp"

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sucl::torch {

using tensors = std::vector<at::Tensor>;

/// Memory that is written instead of tensors that are not dense, and is copied to them in the end.
using copies = std::vector<std::pair<at::Tensor, at::Tensor>>;

inline sucl_type type_of(at::ScalarType t) {
  switch (t) {
    case at::kFloat: return SUCL_TYPE_FP32;
    case at::kDouble: return SUCL_TYPE_FP64;
    case at::kHalf: return SUCL_TYPE_FP16;
    case at::kBFloat16: return SUCL_TYPE_BF16;
    case at::kChar: return SUCL_TYPE_INT8;
    case at::kByte: return SUCL_TYPE_UINT8;
    case at::kShort: return SUCL_TYPE_INT16;
    case at::kInt: return SUCL_TYPE_INT32;
    case at::kLong: return SUCL_TYPE_INT64;
    case at::kBool: return SUCL_TYPE_BOOL;
    case at::kComplexFloat: return SUCL_TYPE_COMPLEX_FP32;
    case at::kComplexDouble: return SUCL_TYPE_COMPLEX_FP64;
    default: break;
  }
  // Of newer types the name is what all releases of torch have.
  const std::string name = c10::toString(t);
  if (name == "UInt16") return SUCL_TYPE_UINT16;
  if (name == "UInt32") return SUCL_TYPE_UINT32;
  if (name == "UInt64") return SUCL_TYPE_UINT64;
  if (name == "Float8_e4m3fn") return SUCL_TYPE_FP8_E4M3;
  if (name == "Float8_e5m2") return SUCL_TYPE_FP8_E5M2;
  return SUCL_TYPE_BYTES;
}

/// On bool a sum that is not 0 is true.
inline sucl_op op_of(const c10d::ReduceOp& op, at::ScalarType t) {
  const bool is_bool = t == at::kBool;
  switch (op.op_) {
    case c10d::ReduceOp::PREMUL_SUM:
    case c10d::ReduceOp::SUM: return is_bool ? SUCL_OP_LOGICAL_OR : SUCL_OP_SUM;
    case c10d::ReduceOp::AVG: return SUCL_OP_AVG;
    case c10d::ReduceOp::PRODUCT: return is_bool ? SUCL_OP_LOGICAL_AND : SUCL_OP_PROD;
    case c10d::ReduceOp::MIN: return is_bool ? SUCL_OP_LOGICAL_AND : SUCL_OP_MIN;
    case c10d::ReduceOp::MAX: return is_bool ? SUCL_OP_LOGICAL_OR : SUCL_OP_MAX;
    case c10d::ReduceOp::BAND: return is_bool ? SUCL_OP_LOGICAL_AND : SUCL_OP_BIT_AND;
    case c10d::ReduceOp::BOR: return is_bool ? SUCL_OP_LOGICAL_OR : SUCL_OP_BIT_OR;
    case c10d::ReduceOp::BXOR: return is_bool ? SUCL_OP_LOGICAL_XOR : SUCL_OP_BIT_XOR;
    default: break;
  }
  throw failure(SUCL_ERROR_UNSUPPORTED, "the backend sucl does not know this reduction",
                "Use SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR or PREMUL_SUM");
}

/// What a reduction reads of a tensor: with PREMUL_SUM, its product with a factor.
inline at::Tensor scaled(const at::Tensor& t, const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return t;
  const auto* by = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  if (!by || !t.is_floating_point())
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  "PREMUL_SUM is for floating-point tensors, and has a factor",
                  "Make it with torch.distributed._make_nccl_premul_sum(factor)");
  if (by->tensor_factor.defined()) return t * by->tensor_factor.to(t.options());
  return t * by->double_factor;
}
inline tensors scaled(tensors list, const c10d::ReduceOp& op) {
  for (at::Tensor& t : list) t = scaled(t, op);
  return list;
}

/// Throws unless SuCL takes memory of the device of the tensor, and the elements lie there plainly.
inline void check_device(const at::Tensor& t) {
  if (!t.device().is_cpu() && !t.device().is_cuda())
    throw failure(SUCL_ERROR_INVALID_MEMORY,
                  "a tensor is on " + t.device().str() +
                      ", and the backend sucl is for memory of the host and of CUDA devices",
                  "Copy it there first, or use a group of another backend for it");
  if (t.layout() != at::kStrided)
    throw failure(SUCL_ERROR_INVALID_MEMORY,
                  "a tensor has the layout " + std::string(c10::str(t.layout())),
                  "Pass dense tensors: tensor.to_dense()");
}

/// What an operation reads: the tensor, or a contiguous copy.
inline at::Tensor dense(const at::Tensor& t) {
  check_device(t);
  if (t.is_contiguous() && !t.is_conj() && !t.is_neg()) return t;
  return t.detach().resolve_conj().resolve_neg().contiguous();
}

/// What an operation writes: the tensor, or a copy that is copied back.
inline at::Tensor writable(const at::Tensor& t, copies& finish) {
  at::Tensor data = dense(t);
  if (!data.is_same(t)) finish.emplace_back(t.detach(), data);
  return data;
}

/// Copies what was written instead of tensors to them. Tensors of inference are written in
/// that mode alone, which this thread may be in or not.
inline void copy_back(const copies& finish) {
  for (const auto& [to, from] : finish) {
    const c10::InferenceMode mode(to.is_inference());
    to.copy_(from);
  }
}

inline bool follow_each_other(const tensors& list) {
  const char* next = nullptr;
  for (const at::Tensor& t : list) {
    check_device(t);
    if (!t.is_contiguous() || t.is_conj() || t.is_neg()) return false;
    const auto* at = static_cast<const char*>(t.const_data_ptr());
    if (next && t.numel() > 0 && at != next) return false;
    if (t.numel() > 0) next = at + t.nbytes();
  }
  return true;
}

/// The elements of tensors one after the other: where they lie so already there, or copied.
inline at::Tensor joined(const tensors& list) {
  if (list.size() == 1) return dense(list[0]);
  if (follow_each_other(list))
    for (const at::Tensor& t : list)
      if (t.numel() > 0) return t;
  tensors rows;
  for (const at::Tensor& t : list) rows.push_back(dense(t).detach().reshape({-1}));
  return at::cat(rows);
}

/// Memory for the elements of tensors one after the other, copied to them in the end.
inline at::Tensor room_for(const tensors& list, copies& finish) {
  if (list.size() == 1) return writable(list[0], finish);
  if (follow_each_other(list))
    for (const at::Tensor& t : list)
      if (t.numel() > 0) return t;
  std::int64_t all = 0;
  for (const at::Tensor& t : list) all += t.numel();
  at::Tensor data = at::empty({all}, list.at(0).options().requires_grad(false));
  std::int64_t start = 0;
  for (const at::Tensor& t : list) {
    finish.emplace_back(t.detach(), data.narrow(0, start, t.numel()).view(t.sizes()));
    start += t.numel();
  }
  return data;
}

inline bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* x = static_cast<const char*>(a.const_data_ptr());
  const auto* y = static_cast<const char*>(b.const_data_ptr());
  return x < y + b.nbytes() && y < x + a.nbytes();
}

/// What an operation reads, apart from what it writes: torch lets a share be a part of the whole.
inline at::Tensor apart(const at::Tensor& from, const tensors& written) {
  for (const at::Tensor& t : written)
    if (overlap(from, t)) return from.clone();
  return from;
}
inline tensors apart(tensors list, const tensors& written) {
  for (at::Tensor& t : list) t = apart(t, written);
  return list;
}

inline std::vector<std::uint64_t> sizes_of(const tensors& list) {
  std::vector<std::uint64_t> sizes;
  for (const at::Tensor& t : list) sizes.push_back(static_cast<std::uint64_t>(t.numel()));
  return sizes;
}

inline bool all_same(const std::vector<std::uint64_t>& sizes) {
  for (const auto n : sizes)
    if (n != sizes[0]) return false;
  return true;
}

inline std::vector<std::uint64_t> starts_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> starts;
  std::uint64_t at = 0;
  for (const auto n : sizes) {
    starts.push_back(at);
    at += n;
  }
  return starts;
}

/// Throws unless tensors have the type of the first.
inline void check_types(const at::Tensor& first, const tensors& list) {
  for (const at::Tensor& t : list)
    if (t.scalar_type() != first.scalar_type())
      throw failure(SUCL_ERROR_INVALID_TYPE,
                    std::string("invalid tensor type: tensors of one call have elements of ") +
                        c10::toString(first.scalar_type()) + " and " +
                        c10::toString(t.scalar_type()) + " (tensors have different types)",
                    "Pass tensors of one type");
}

}  // namespace sucl::torch
