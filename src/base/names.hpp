// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What operations, element types and reductions are called, in the order of their enumerators. In a
// header of its own for backends that are modules: they do not link the core.
#pragma once

#include <sucl/abi/backend.h>

#include <array>
#include <string_view>

namespace sucl::base {

inline constexpr std::array<std::string_view, SUCL_KIND_COUNT> kind_names{
    "barrier",   "broadcast",  "reduce",   "allreduce", "reduce_scatter", "reduce_scatter_block",
    "allgather", "allgatherv", "alltoall", "alltoallv", "gather",         "gatherv",
    "scatter",   "scatterv",   "scan",     "exscan",    "send",           "recv",
    "sendrecv",  "group"};

inline constexpr std::array<std::string_view, SUCL_TYPE_COUNT> type_names{
    "bytes",    "int8",         "uint8",        "int16",     "uint16",    "int32",
    "uint32",   "int64",        "uint64",       "fp16",      "bf16",      "fp32",
    "fp64",     "complex_fp32", "complex_fp64", "int16_loc", "int32_loc", "int64_loc",
    "fp32_loc", "fp64_loc",     "bool",         "fp8_e4m3",  "fp8_e5m2"};

inline constexpr std::array<std::string_view, SUCL_OP_COUNT> op_names{
    "none",       "sum",         "prod",    "min",    "max",     "avg",    "logical_and",
    "logical_or", "logical_xor", "bit_and", "bit_or", "bit_xor", "minloc", "maxloc"};

}  // namespace sucl::base
