// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The persistent collectives: prepared once, then started by MPI_Start.
#include "interposer/calls/entry.hpp"
#include "interposer/next.hpp"
#include "interposer/state.hpp"

using namespace sucl::interposer;

SUCL_MPI_FUNCTION MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_BARRIER, comm, request, [&](comm_position) { return barrier(); },
      [&] { return SUCL_NEXT(Barrier_init)(comm, info, request); });
}

SUCL_MPI_FUNCTION MPI_Bcast_init(void* buffer, int count, MPI_Datatype type, int root,
                                 MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_BROADCAST, comm, request,
      [&](comm_position at) { return broadcast({buffer, count, type}, root, at); },
      [&] { return SUCL_NEXT(Bcast_init)(buffer, count, type, root, comm, info, request); });
}

SUCL_MPI_FUNCTION MPI_Allreduce_init(const void* send, void* recv, int count, MPI_Datatype type,
                                     MPI_Op op, MPI_Comm comm, MPI_Info info,
                                     MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_ALLREDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_ALLREDUCE, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Allreduce_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION MPI_Reduce_init(const void* send, void* recv, int count, MPI_Datatype type,
                                  MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_REDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE, {send, count, type}, recv, op, root, at);
      },
      [&] {
        return SUCL_NEXT(Reduce_init)(send, recv, count, type, op, root, comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter_block_init(const void* send, void* recv, int count,
                                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_REDUCE_SCATTER_BLOCK, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, {send, count, type}, recv, op, 0, at);
      },
      [&] {
        return SUCL_NEXT(Reduce_scatter_block_init)(send, recv, count, type, op, comm, info,
                                                    request);
      });
}

SUCL_MPI_FUNCTION MPI_Scan_init(const void* send, void* recv, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_SCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_SCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Scan_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION MPI_Exscan_init(const void* send, void* recv, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_EXSCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_EXSCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Exscan_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter_init(const void* send, void* recv, const int* counts,
                                          MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                          MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_REDUCE_SCATTER, comm, request,
      [&](comm_position at) { return reduce_scatter({send, 0, type}, recv, counts, op, at); },
      [&] {
        return SUCL_NEXT(Reduce_scatter_init)(send, recv, counts, type, op, comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Allgather_init(const void* send, int send_count, MPI_Datatype send_type,
                                     void* recv, int recv_count, MPI_Datatype recv_type,
                                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_ALLGATHER, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLGATHER, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_NEXT(Allgather_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                         comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Alltoall_init(const void* send, int send_count, MPI_Datatype send_type,
                                    void* recv, int recv_count, MPI_Datatype recv_type,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_ALLTOALL, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLTOALL, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_NEXT(Alltoall_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                        comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Gather_init(const void* send, int send_count, MPI_Datatype send_type,
                                  void* recv, int recv_count, MPI_Datatype recv_type, int root,
                                  MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_GATHER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_GATHER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_NEXT(Gather_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                      root, comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Scatter_init(const void* send, int send_count, MPI_Datatype send_type,
                                   void* recv, int recv_count, MPI_Datatype recv_type, int root,
                                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_SCATTER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_SCATTER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_NEXT(Scatter_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                       root, comm, info, request);
      });
}

SUCL_MPI_FUNCTION MPI_Allgatherv_init(const void* send, int send_count, MPI_Datatype send_type,
                                      void* recv, const int* recv_counts, const int* displs,
                                      MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
                                      MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_ALLGATHERV, comm, request,
      [&](comm_position at) {
        return allgatherv({send, send_count, send_type}, recv, recv_counts, displs, recv_type, at);
      },
      [&] {
        return SUCL_NEXT(Allgatherv_init)(send, send_count, send_type, recv, recv_counts, displs,
                                          recv_type, comm, info, request);
      });
}

// Ranks do not know each other's sizes in these.

SUCL_MPI_FUNCTION MPI_Alltoallv_init(const void* send, const int* send_counts,
                                     const int* send_displs, MPI_Datatype send_type, void* recv,
                                     const int* recv_counts, const int* recv_displs,
                                     MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
                                     MPI_Request* request) {
  return interposer::leave(SUCL_KIND_ALLTOALLV, comm, [&] {
    return SUCL_NEXT(Alltoallv_init)(send, send_counts, send_displs, send_type, recv, recv_counts,
                                     recv_displs, recv_type, comm, info, request);
  });
}

SUCL_MPI_FUNCTION MPI_Gatherv_init(const void* send, int send_count, MPI_Datatype send_type,
                                   void* recv, const int* recv_counts, const int* displs,
                                   MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  return interposer::leave(SUCL_KIND_GATHERV, comm, [&] {
    return SUCL_NEXT(Gatherv_init)(send, send_count, send_type, recv, recv_counts, displs,
                                   recv_type, root, comm, info, request);
  });
}

SUCL_MPI_FUNCTION MPI_Scatterv_init(const void* send, const int* send_counts, const int* displs,
                                    MPI_Datatype send_type, void* recv, int recv_count,
                                    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
                                    MPI_Request* request) {
  return interposer::leave(SUCL_KIND_SCATTERV, comm, [&] {
    return SUCL_NEXT(Scatterv_init)(send, send_counts, displs, send_type, recv, recv_count,
                                    recv_type, root, comm, info, request);
  });
}
