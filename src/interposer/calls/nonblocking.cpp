// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The non-blocking collectives that an MPI program calls.
#include "interposer/calls/entry.hpp"
#include "interposer/next.hpp"
#include "interposer/state.hpp"

using namespace sucl::interposer;

SUCL_MPI_FUNCTION MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_BARRIER, comm, request, [&](comm_position) { return barrier(); },
      [&] { return SUCL_NEXT(Ibarrier)(comm, request); });
}

SUCL_MPI_FUNCTION MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                             MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_BROADCAST, comm, request,
      [&](comm_position at) { return broadcast({buffer, count, type}, root, at); },
      [&] { return SUCL_NEXT(Ibcast)(buffer, count, type, root, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type,
                                 MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_ALLREDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_ALLREDUCE, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Iallreduce)(send, recv, count, type, op, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Ireduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                              int root, MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_REDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE, {send, count, type}, recv, op, root, at);
      },
      [&] { return SUCL_NEXT(Ireduce)(send, recv, count, type, op, root, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Ireduce_scatter_block(const void* send, void* recv, int count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_REDUCE_SCATTER_BLOCK, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Ireduce_scatter_block)(send, recv, count, type, op, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Iscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                            MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_SCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_SCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Iscan)(send, recv, count, type, op, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Iexscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_EXSCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_EXSCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Iexscan)(send, recv, count, type, op, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Ireduce_scatter(const void* send, void* recv, const int* counts,
                                      MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                      MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_REDUCE_SCATTER, comm, request,
      [&](comm_position at) { return reduce_scatter({send, 0, type}, recv, counts, op, at); },
      [&] { return SUCL_NEXT(Ireduce_scatter)(send, recv, counts, type, op, comm, request); });
}

SUCL_MPI_FUNCTION MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type,
                                 void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm,
                                 MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_ALLGATHER, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLGATHER, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_NEXT(Iallgather)(send, send_count, send_type, recv, recv_count, recv_type, comm,
                                     request);
      });
}

SUCL_MPI_FUNCTION MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type,
                                void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm,
                                MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_ALLTOALL, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLTOALL, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_NEXT(Ialltoall)(send, send_count, send_type, recv, recv_count, recv_type, comm,
                                    request);
      });
}

SUCL_MPI_FUNCTION MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                              int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm,
                              MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_GATHER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_GATHER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_NEXT(Igather)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                  comm, request);
      });
}

SUCL_MPI_FUNCTION MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                               int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm,
                               MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_SCATTER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_SCATTER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_NEXT(Iscatter)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                   comm, request);
      });
}

SUCL_MPI_FUNCTION MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type,
                                  void* recv, const int* recv_counts, const int* displs,
                                  MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_ALLGATHERV, comm, request,
      [&](comm_position at) {
        return allgatherv({send, send_count, send_type}, recv, recv_counts, displs, recv_type, at);
      },
      [&] {
        return SUCL_NEXT(Iallgatherv)(send, send_count, send_type, recv, recv_counts, displs,
                                      recv_type, comm, request);
      });
}

// Ranks do not know each other's sizes in these.

SUCL_MPI_FUNCTION MPI_Ialltoallv(const void* send, const int* send_counts, const int* send_displs,
                                 MPI_Datatype send_type, void* recv, const int* recv_counts,
                                 const int* recv_displs, MPI_Datatype recv_type, MPI_Comm comm,
                                 MPI_Request* request) {
  return interposer::leave(SUCL_KIND_ALLTOALLV, comm, [&] {
    return SUCL_NEXT(Ialltoallv)(send, send_counts, send_displs, send_type, recv, recv_counts,
                                 recv_displs, recv_type, comm, request);
  });
}

SUCL_MPI_FUNCTION MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                               const int* recv_counts, const int* displs, MPI_Datatype recv_type,
                               int root, MPI_Comm comm, MPI_Request* request) {
  return interposer::leave(SUCL_KIND_GATHERV, comm, [&] {
    return SUCL_NEXT(Igatherv)(send, send_count, send_type, recv, recv_counts, displs, recv_type,
                               root, comm, request);
  });
}

SUCL_MPI_FUNCTION MPI_Iscatterv(const void* send, const int* send_counts, const int* displs,
                                MPI_Datatype send_type, void* recv, int recv_count,
                                MPI_Datatype recv_type, int root, MPI_Comm comm,
                                MPI_Request* request) {
  return interposer::leave(SUCL_KIND_SCATTERV, comm, [&] {
    return SUCL_NEXT(Iscatterv)(send, send_counts, displs, send_type, recv, recv_count, recv_type,
                                root, comm, request);
  });
}
