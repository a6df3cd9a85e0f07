// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The functions of MPI that interposers replace: `X(name)` for each, without its MPI_.
#pragma once

#define SUCL_PMPI_COLLECTIVE(X, name, starting_name) \
  X(name)                                            \
  X(name##_c)                                        \
  X(starting_name)                                   \
  X(starting_name##_c)                               \
  X(name##_init)                                     \
  X(name##_init_c)

/// Those that it has by their profiling names too, as what it executes is completed, and MPI ended,
/// by either name.
#define SUCL_PMPI_PROFILED(X) \
  X(Init)                     \
  X(Init_thread)              \
  X(Finalize)                 \
  X(Op_create)                \
  X(Op_create_c)              \
  X(Op_free)                  \
  X(Start)                    \
  X(Startall)                 \
  X(Cancel)                   \
  X(Request_free)             \
  X(Request_get_status)       \
  X(Request_get_status_all)   \
  X(Request_get_status_any)   \
  X(Request_get_status_some)  \
  X(Wait)                     \
  X(Waitall)                  \
  X(Waitany)                  \
  X(Waitsome)                 \
  X(Test)                     \
  X(Testall)                  \
  X(Testany)                  \
  X(Testsome)

#define SUCL_PMPI_FUNCTIONS(X)                                         \
  SUCL_PMPI_PROFILED(X)                                                \
  X(Barrier)                                                           \
  X(Ibarrier)                                                          \
  X(Barrier_init)                                                      \
  SUCL_PMPI_COLLECTIVE(X, Bcast, Ibcast)                               \
  SUCL_PMPI_COLLECTIVE(X, Reduce, Ireduce)                             \
  SUCL_PMPI_COLLECTIVE(X, Allreduce, Iallreduce)                       \
  SUCL_PMPI_COLLECTIVE(X, Reduce_scatter, Ireduce_scatter)             \
  SUCL_PMPI_COLLECTIVE(X, Reduce_scatter_block, Ireduce_scatter_block) \
  SUCL_PMPI_COLLECTIVE(X, Scan, Iscan)                                 \
  SUCL_PMPI_COLLECTIVE(X, Exscan, Iexscan)                             \
  SUCL_PMPI_COLLECTIVE(X, Allgather, Iallgather)                       \
  SUCL_PMPI_COLLECTIVE(X, Allgatherv, Iallgatherv)                     \
  SUCL_PMPI_COLLECTIVE(X, Alltoall, Ialltoall)                         \
  SUCL_PMPI_COLLECTIVE(X, Alltoallv, Ialltoallv)                       \
  SUCL_PMPI_COLLECTIVE(X, Alltoallw, Ialltoallw)                       \
  SUCL_PMPI_COLLECTIVE(X, Gather, Igather)                             \
  SUCL_PMPI_COLLECTIVE(X, Gatherv, Igatherv)                           \
  SUCL_PMPI_COLLECTIVE(X, Scatter, Iscatter)                           \
  SUCL_PMPI_COLLECTIVE(X, Scatterv, Iscatterv)                         \
  SUCL_PMPI_COLLECTIVE(X, Neighbor_allgather, Ineighbor_allgather)     \
  SUCL_PMPI_COLLECTIVE(X, Neighbor_allgatherv, Ineighbor_allgatherv)   \
  SUCL_PMPI_COLLECTIVE(X, Neighbor_alltoall, Ineighbor_alltoall)       \
  SUCL_PMPI_COLLECTIVE(X, Neighbor_alltoallv, Ineighbor_alltoallv)     \
  SUCL_PMPI_COLLECTIVE(X, Neighbor_alltoallw, Ineighbor_alltoallw)     \
  X(Comm_free)                                                         \
  X(Comm_disconnect)                                                   \
  X(Comm_set_errhandler)
