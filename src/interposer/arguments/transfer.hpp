// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An MPI collective as SuCL executes it, whichever form it was called in.
#pragma once

#include "interposer/arguments/packed.hpp"

#include <sucl/abi/backend.h>

#include <mpi.h>

#include <vector>

namespace sucl::interposer {

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

/// A collective as one operation record, and its choice between the program's memory and SuCL.
struct transfer {
  sucl_operation record{};
  bool known = false;  ///< SuCL may execute it; the same on every rank
  packed from, to;     ///< what is moved; nothing for reductions, which take memory as it is
  int first_loaded = 0, last_loaded = 0;      ///< blocks of `to` that are input
  bool stays = false;                         ///< the output is not for this rank's memory
  std::vector<std::uint64_t> counts, displs;  ///< the record points into them

  transfer() = default;
  transfer(transfer&&) = default;
  transfer& operator=(transfer&&) = default;

  /// The record with its memory, the input in it. The arrays stay this object's.
  sucl_operation filled();
  /// Takes the output out of it.
  void finish() {
    if (!stays) to.store();
  }
  /// For one that goes on after the program's call: its types outlive the program's handles.
  void keep_types();
  void release_types();
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
transfer allgatherv(side send, void* recv, const int* counts, const int* displs, MPI_Datatype type,
                    comm_position at);
transfer allgatherv(side send, void* recv, const MPI_Count* counts, const MPI_Aint* displs,
                    MPI_Datatype type, comm_position at);

}  // namespace sucl::interposer
