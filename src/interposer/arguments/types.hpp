// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What MPI's handles mean to SuCL.
#pragma once

#include <sucl/abi/backend.h>

#include <mpi.h>

#include <cstdint>
#include <type_traits>

namespace sucl::interposer {

/// A handle as a number: it is a pointer in some libraries and an int in others.
template <class Handle>
std::uint64_t bits_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uint64_t>(handle);
  else
    return static_cast<std::uint64_t>(handle);
}

/// What MPI's ops make of a type, by the standard's groups. An address may be an integer of Fortran
/// or of several languages, which has no logical ops.
enum class op_group { none, integer, address, floating, complex, pair, logical };

/// What is known of a datatype.
struct type_facts {
  sucl_type reducible = SUCL_TYPE_BYTES;  ///< the element type that ops may be used on, or bytes
  std::uint64_t size = 0;                 ///< bytes of data in one element
  std::int64_t extent = 0;                ///< bytes from one element to the next
  bool dense = false;                     ///< its data is its memory, in order, without gaps
  bool predefined = false;                ///< its handle always means this
  op_group group = op_group::none;
  bool usable = true;  ///< the library takes it in a transfer: it is committed, and not null
};

/// The facts of a datatype; predefined ones are found in a table.
type_facts facts_of(MPI_Datatype type);

/// The op, or none for what SuCL does not know, such as an op of the program, and for what MPI does
/// not define on types of the group.
sucl_op op_of(MPI_Op op, op_group group);

}  // namespace sucl::interposer
