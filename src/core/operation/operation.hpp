// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What an operation record means on one rank: its extents, its name, and whether it is right.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>
#include <sucl/types.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::core {

/// Elements that an operation touches on this rank, from the start of each memory.
struct extents {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};

/// The extents of a record whose arrays are complete. In place, send is 0.
SUCL_CORE_API extents extents_of(const sucl_operation& record, int rank, int size);

/// Bytes by which a backend is selected, equal on every rank: the message, or one block of it for
/// gathers, scatters, alltoall and reduce_scatter_block; the total for allgatherv and
/// reduce_scatter. `known` is false where ranks cannot know it of each other (gatherv, scatterv,
/// alltoallv).
struct message_size {
  std::uint64_t bytes = 0;
  bool known = true;
};
SUCL_CORE_API message_size message_size_of(const sucl_operation& record, int size);

/// A record of an operation of so many bytes on ordinary memory, for questions about it.
SUCL_CORE_API sucl_operation example_of(kind k, std::uint64_t bytes, type t, op o);

/// "allreduce #17" or "send to rank 3 (tag 0)".
SUCL_CORE_API std::string describe(const sucl_operation& record);

/// Whether a message of elements `a` may be received as elements `b`, both of a type and a size.
/// Opaque elements, of types that SuCL does not know, are as any others of their size.
constexpr bool same_elements(sucl_type a, std::uint64_t a_size, sucl_type b, std::uint64_t b_size) {
  return a_size == b_size && (a == b || a == SUCL_TYPE_BYTES || b == SUCL_TYPE_BYTES);
}

/// "3000 fp32", "1 byte", "5 elements of 24 bytes".
std::string elements_text(std::uint64_t count, sucl_type t, std::uint64_t element_size);

/// The arrays that a record may have, one entry a rank each.
inline constexpr std::array operation_arrays{
    &sucl_operation::send_counts, &sucl_operation::send_displs, &sucl_operation::recv_counts,
    &sucl_operation::recv_displs};

/// Copies a record's arrays to `kept`, where the record has them from then on.
SUCL_CORE_API void keep_arrays(sucl_operation& record, int size, std::vector<std::uint64_t>& kept);

/// Throws if kind or element type are unknown, or the op is not defined for that.
void check_names(const sucl_operation& record);

/// Throws if the record is wrong in a way that this rank can see by itself: kind, type, op, root,
/// peer, tag, arrays, sizes beyond the address space. Turns an
/// allreduce and the like whose send and receive memory is the same into one in place, and an
/// allgather or gather whose send memory is its own block of the receive memory.
SUCL_CORE_API void normalise(sucl_operation& record, int rank, int size);

/// Whether the operation reads or writes any of these bytes.
bool may_touch(const sucl_operation& record, int rank, int size, const void* memory,
               std::uint64_t bytes);

/// Throws if blocks of different ranks overlap where this rank receives them: what it got would
/// depend on the order in which they come. Also if what this rank sends to itself has another count
/// than what it receives from itself: no other rank knows of that, and libraries find it late, or
/// never.
SUCL_CORE_API void check_blocks(const sucl_operation& record, int rank, int size);

/// Throws if memory that the operation touches is null, or overlaps where it must not.
SUCL_CORE_API void check_memory(const sucl_operation& record, int rank, int size);

/// The kind of a compiled plan, which only the core knows: the plan's number is in `plan`.
inline constexpr sucl_kind compiled_plan_kind = 1 << 20;

/// What people call operations of a kind, also of that one.
inline const char* kind_name(sucl_kind kind) noexcept {
  return kind == compiled_plan_kind ? "compiled plan" : name(static_cast<sucl::kind>(kind));
}

/// What a barrier comes before: a call of all ranks that makes or changes something. None: it is
/// the program's own.
enum class arrival : std::uint64_t {
  none,
  split,
  dup,
  compile,
  use_tuning,
  allocate,
  register_memory,
  deallocate,
  deregister_memory
};

/// `plan` of such a barrier: the call and those of its arguments that must be the same on every
/// rank, so that ranks which differ get an error.
struct arriving_call {
  arrival call = arrival::none;
  sucl_type type = SUCL_TYPE_BYTES;  ///< of the elements, where it has some
  std::uint64_t element_size = 0;    ///< 0: it has none
  std::uint64_t block = 0;           ///< that it frees: its number among those made; 0: none

  /// `block` where it may be one of several.
  static constexpr std::uint64_t any_block = ~std::uint64_t{0} >> 16;

  bool frees() const { return call == arrival::deallocate || call == arrival::deregister_memory; }
  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(call) | static_cast<std::uint64_t>(type) << 8 |
           (frees() ? block : element_size) << 16;
  }
  static arriving_call of(std::uint64_t packed) {
    arriving_call a{static_cast<arrival>(packed & 0xff),
                    static_cast<sucl_type>(packed >> 8 & 0xff)};
    (a.frees() ? a.block : a.element_size) = packed >> 16;
    return a;
  }
};

/// "barrier", or the call before which it is: "split()".
std::string barrier_name(std::uint64_t plan);
/// The same with its arguments: "allocate() of elements of 8 bytes".
std::string describe_barrier(std::uint64_t plan);

/// True for send, recv, sendrecv and groups of them.
constexpr bool is_point_to_point(sucl_kind kind) {
  return kind >= SUCL_KIND_SEND && kind <= SUCL_KIND_GROUP;
}

/// The ranks that a message, or a group of them, goes to or comes from, each once; none of a
/// collective.
std::vector<int> peers_of(const sucl_operation& o);

/// What a collective is among those of its communicator.
enum class origin {
  call,   ///< issued by a call
  replay  ///< a recorded one that is executed
};

/// What the tag of a collective says: the form of its call, its origin and a number: of a replayed
/// one its number among the recorded ones, of a call how many have been recorded before it. Every
/// rank must have the same.
constexpr std::int32_t encode_tag(bool blocking, origin from = origin::call,
                                  std::uint32_t number = 0) {
  constexpr std::uint32_t numbers = 1u << 28;
  return static_cast<std::int32_t>((blocking ? 1u : 0u) | static_cast<std::uint32_t>(from) << 1 |
                                   number % numbers << 3);
}
constexpr bool is_blocking(sucl_kind kind, std::int32_t tag) {
  return !is_point_to_point(kind) && (tag & 1) != 0;
}
constexpr bool is_blocking(const sucl_operation& o) { return is_blocking(o.kind, o.tag); }
constexpr origin origin_of(std::int32_t tag) { return static_cast<origin>(tag >> 1 & 3); }
constexpr bool is_replay(const sucl_operation& o) {
  return !is_point_to_point(o.kind) && origin_of(o.tag) == origin::replay;
}
/// "", or what describes where a collective comes from, in words that follow its name.
SUCL_CORE_API std::string describe_origin(std::int32_t tag);

}  // namespace sucl::core
