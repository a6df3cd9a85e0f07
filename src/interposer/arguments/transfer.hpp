// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An MPI collective as SuCL executes it, whichever form it was called in.
#pragma once

#include "base/error.hpp"
#include "interposer/arguments/packed.hpp"
#include "interposer/device/staged_memory.hpp"

#include <sucl/abi/backend.h>

#include <mpi.h>

#include <memory>
#include <optional>
#include <vector>

namespace sucl::interposer {

// What MPICH and Intel MPI refuse, and Open MPI takes, but for MPI_Reduce.
constexpr bool aliases_are_errors =
#if defined(OPEN_MPI)
    false;
#else
    true;
#endif

/// A process among those of an intra-communicator.
struct comm_position {
  int rank = 0;
  int size = 1;
};

/// One side of a collective, as MPI's arguments describe it.
struct side {
  const void* memory;
  std::int64_t count;
  MPI_Datatype type;
};

/// One side of a collective of which each rank has a block of its own, in arrays of the program's:
/// displacements are in elements, and in bytes where each block has a type of its own.
template <class Count, class Displ, class Type>
struct block_side {
  const void* memory;
  const Count* counts;
  const Displ* displs;
  Type type;  ///< MPI_Datatype, or an array of them

  bool complete() const {
    if constexpr (std::is_same_v<Type, MPI_Datatype>)
      return counts && displs;
    else
      return counts && displs && type;
  }
  packed blocks(int n) const { return {memory, counts, displs, type, n}; }
};
template <class Count, class Displ, class Type>
block_side(const void*, const Count*, const Displ*, Type) -> block_side<Count, Displ, Type>;

/// A reduction by an op of the program's: SuCL moves operands, and this process has MPI apply the
/// op to them in the order of the ranks, which is right whether or not it commutes.
struct own_reduction {
  MPI_Op op;
  MPI_Datatype type;
  int elements;         ///< of an operand
  std::uint64_t bytes;  ///< of one
  int arriving;         ///< operands that come here
  int applied;          ///< of them, from rank 0 on: how many make the result
  const void* in;
  void* result;
  std::unique_ptr<char[]> operands;
  bool kept = false;  ///< the op, by keep_handles()

  void* room();
  /// Returns MPI's code.
  int finish() const;
};

/// A collective as one operation record, and its choice between the program's memory and SuCL.
struct transfer {
  sucl_kind called = SUCL_KIND_BARRIER;  ///< what the program calls; the record may be of another
  sucl_operation record{};
  bool known = false;     ///< SuCL may execute it; the same on every rank
  bool may_go_on = true;  ///< after the program's call, too
  std::optional<own_reduction> by_own_op;
  packed from, to;  ///< what is moved; nothing for reductions, which take memory as it is
  int first_loaded = 0, last_loaded = 0;  ///< blocks of `to` that are input
  bool stays = false;                     ///< the output is not for this rank's memory
  /// Where the root gives itself more than it takes, which is an error of its own: the bytes to be
  /// received instead of `to`. The other ranks' calls are right.
  std::uint64_t refused_bytes = 0;
  /// In an allgather or alltoall this rank gives itself another amount than it takes.
  bool unequal = false;
  std::shared_ptr<device::staged_memory> staged;  ///< the program's memory is a device's
  // The record points into them.
  std::vector<std::uint64_t> counts, displs;            ///< of what is received
  std::vector<std::uint64_t> send_counts, send_displs;  ///< of what is sent
  std::vector<char> refused;                            ///< what is received in vain

  transfer() = default;
  transfer(transfer&&) = default;
  transfer& operator=(transfer&&) = default;

  /// The record with its memory, the input in it. The arrays stay this object's.
  sucl_operation filled();
  /// Takes the output out of it. Returns MPI's code. Throws where the root's part was wrong.
  int finish() {
    if (refused_bytes > 0)
      base::fail(errc::mismatch, "this rank gives itself another amount than it takes");
    const int code = by_own_op ? by_own_op->finish() : MPI_SUCCESS;
    if (!by_own_op && !stays) to.store();
    if (staged && code == MPI_SUCCESS) staged->store();
    return code;
  }
  /// Whether the rank receives nothing: what the others call is nothing to it.
  bool only_gives(int rank) const;
  /// Whether the order of operands may show in the result.
  bool order_matters() const;
  /// For one that goes on after the program's call: its types and op outlive the program's handles.
  void keep_handles();
  void release_handles();
};

// What the calls ask for. MPI refuses what is wrong in a call, so that makes it unknown here.
transfer barrier();
transfer reduction(sucl_kind kind, side send, void* recv, MPI_Op op, int root, comm_position at);
/// `counts`: null, or of all ranks.
transfer reduce_scatter(side send, void* recv, const int* counts, MPI_Op op, comm_position at);
transfer reduce_scatter(side send, void* recv, const MPI_Count* counts, MPI_Op op,
                        comm_position at);
transfer broadcast(side data, int root, comm_position at);
/// Every rank receives a block of every other: allgather, alltoall.
transfer exchange(sucl_kind kind, side send, side recv, comm_position at);
/// Blocks of all ranks at the root: gather, scatter.
transfer rooted(sucl_kind kind, side send, side recv, int root, comm_position at);
/// `in_place`: there is no `from`.
transfer allgatherv(packed from, packed to, bool in_place, comm_position at);
transfer alltoallv(packed from, packed to, bool in_place, comm_position at);
/// gatherv, scatterv: `blocks` are those of all ranks, at the root alone; `own` is this rank's.
transfer rooted_blocks(sucl_kind kind, packed blocks, packed own, bool in_place, int root,
                       comm_position at);

template <class Blocks>
transfer allgatherv(side send, const Blocks& recv, comm_position at) {
  if (!recv.complete()) return {};
  return allgatherv({send.memory, send.count, send.type, 1}, recv.blocks(at.size),
                    send.memory == MPI_IN_PLACE, at);
}

/// alltoallv, alltoallw.
template <class Blocks>
transfer alltoallv(const Blocks& send, const Blocks& recv, comm_position at) {
  const bool in_place = send.memory == MPI_IN_PLACE;
  if (!recv.complete() || (!in_place && !send.complete())) return {};
  // What libraries see of the same memory.
  if (aliases_are_errors && send.memory == recv.memory && send.counts == recv.counts &&
      send.type == recv.type)
    return {};
  return alltoallv(in_place ? packed() : send.blocks(at.size), recv.blocks(at.size), in_place, at);
}

template <class Blocks>
transfer gatherv(side send, const Blocks& recv, int root, comm_position at) {
  const bool at_root = root == at.rank;
  if (at_root && !recv.complete()) return {};
  return rooted_blocks(SUCL_KIND_GATHERV, at_root ? recv.blocks(at.size) : packed(),
                       {send.memory, send.count, send.type, 1},
                       at_root && send.memory == MPI_IN_PLACE, root, at);
}

template <class Blocks>
transfer scatterv(const Blocks& send, side recv, int root, comm_position at) {
  const bool at_root = root == at.rank;
  if (at_root && !send.complete()) return {};
  return rooted_blocks(SUCL_KIND_SCATTERV, at_root ? send.blocks(at.size) : packed(),
                       {recv.memory, recv.count, recv.type, 1},
                       at_root && recv.memory == MPI_IN_PLACE, root, at);
}

}  // namespace sucl::interposer
