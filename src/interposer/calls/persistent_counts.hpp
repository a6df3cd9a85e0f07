// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The persistent collectives that take counts. Included by widths.hpp, for each width of counts.

SUCL_MPI_FUNCTION SUCL_FORM(Bcast_init)(void* buffer, SUCL_COUNT count, MPI_Datatype type, int root,
                                        MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.broadcast(buffer, count, type, root, comm);
  return interposer::persistent(
      held, SUCL_KIND_BROADCAST, comm, request,
      [&](comm_position at) { return broadcast({buffer, count, type}, root, at); },
      [&] { return SUCL_ON(Bcast_init)(buffer, count, type, root, comm, info, request); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allreduce_init)(const void* send, void* recv, SUCL_COUNT count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.reduction(SUCL_KIND_ALLREDUCE, send, recv, count, type, 0, comm);
  return interposer::persistent(
      held, SUCL_KIND_ALLREDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_ALLREDUCE, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_ON(Allreduce_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce_init)(const void* send, void* recv, SUCL_COUNT count,
                                         MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                                         MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.reduction(SUCL_KIND_REDUCE, send, recv, count, type, root, comm);
  return interposer::persistent(
      held, SUCL_KIND_REDUCE, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE, {send, count, type}, recv, op, root, at);
      },
      [&] { return SUCL_ON(Reduce_init)(send, recv, count, type, op, root, comm, info, request); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce_scatter_block_init)(const void* send, void* recv,
                                                       SUCL_COUNT count, MPI_Datatype type,
                                                       MPI_Op op, MPI_Comm comm, MPI_Info info,
                                                       MPI_Request* request) {
  device::arguments held;
  held.reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, send, recv, count, type, 0, comm);
  return interposer::persistent(
      held, SUCL_KIND_REDUCE_SCATTER_BLOCK, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, {send, count, type}, recv, op, 0, at);
      },
      [&] {
        return SUCL_ON(Reduce_scatter_block_init)(send, recv, count, type, op, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Scan_init)(const void* send, void* recv, SUCL_COUNT count,
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                       MPI_Request* request) {
  device::arguments held;
  held.reduction(SUCL_KIND_SCAN, send, recv, count, type, 0, comm);
  return interposer::persistent(
      held, SUCL_KIND_SCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_SCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_ON(Scan_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Exscan_init)(const void* send, void* recv, SUCL_COUNT count,
                                         MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                         MPI_Request* request) {
  device::arguments held;
  held.reduction(SUCL_KIND_EXSCAN, send, recv, count, type, 0, comm);
  return interposer::persistent(
      held, SUCL_KIND_EXSCAN, comm, request,
      [&](comm_position at) {
        return reduction(SUCL_KIND_EXSCAN, {send, count, type}, recv, op, 0, at);
      },
      [&] { return SUCL_ON(Exscan_init)(send, recv, count, type, op, comm, info, request); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce_scatter_init)(const void* send, void* recv,
                                                 const SUCL_COUNT* counts, MPI_Datatype type,
                                                 MPI_Op op, MPI_Comm comm, MPI_Info info,
                                                 MPI_Request* request) {
  device::arguments held;
  held.reduce_scatter(send, recv, counts, type, comm);
  return interposer::persistent(
      held, SUCL_KIND_REDUCE_SCATTER, comm, request,
      [&](comm_position at) { return reduce_scatter({send, 0, type}, recv, counts, op, at); },
      [&] {
        return SUCL_ON(Reduce_scatter_init)(send, recv, counts, type, op, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allgather_init)(const void* send, SUCL_COUNT send_count,
                                            MPI_Datatype send_type, void* recv,
                                            SUCL_COUNT recv_count, MPI_Datatype recv_type,
                                            MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.exchange(SUCL_KIND_ALLGATHER, send, send_count, send_type, recv, recv_count, recv_type,
                comm);
  return interposer::persistent(
      held, SUCL_KIND_ALLGATHER, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLGATHER, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_ON(Allgather_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                       comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Alltoall_init)(const void* send, SUCL_COUNT send_count,
                                           MPI_Datatype send_type, void* recv,
                                           SUCL_COUNT recv_count, MPI_Datatype recv_type,
                                           MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.exchange(SUCL_KIND_ALLTOALL, send, send_count, send_type, recv, recv_count, recv_type, comm);
  return interposer::persistent(
      held, SUCL_KIND_ALLTOALL, comm, request,
      [&](comm_position at) {
        return exchange(SUCL_KIND_ALLTOALL, {send, send_count, send_type},
                        {recv, recv_count, recv_type}, at);
      },
      [&] {
        return SUCL_ON(Alltoall_init)(send, send_count, send_type, recv, recv_count, recv_type,
                                      comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Gather_init)(const void* send, SUCL_COUNT send_count,
                                         MPI_Datatype send_type, void* recv, SUCL_COUNT recv_count,
                                         MPI_Datatype recv_type, int root, MPI_Comm comm,
                                         MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  return interposer::persistent(
      held, SUCL_KIND_GATHER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_GATHER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_ON(Gather_init)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                    comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Scatter_init)(const void* send, SUCL_COUNT send_count,
                                          MPI_Datatype send_type, void* recv, SUCL_COUNT recv_count,
                                          MPI_Datatype recv_type, int root, MPI_Comm comm,
                                          MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  return interposer::persistent(
      held, SUCL_KIND_SCATTER, comm, request,
      [&](comm_position at) {
        return rooted(SUCL_KIND_SCATTER, {send, send_count, send_type},
                      {recv, recv_count, recv_type}, root, at);
      },
      [&] {
        return SUCL_ON(Scatter_init)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                     comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allgatherv_init)(const void* send, SUCL_COUNT send_count,
                                             MPI_Datatype send_type, void* recv,
                                             const SUCL_COUNT* recv_counts,
                                             const SUCL_DISPL* displs, MPI_Datatype recv_type,
                                             MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.gatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type,
               device::arguments::everywhere, comm);
  return interposer::persistent(
      held, SUCL_KIND_ALLGATHERV, comm, request,
      [&](comm_position at) {
        return allgatherv(side{send, send_count, send_type},
                          block_side{recv, recv_counts, displs, recv_type}, at);
      },
      [&] {
        return SUCL_ON(Allgatherv_init)(send, send_count, send_type, recv, recv_counts, displs,
                                        recv_type, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Alltoallv_init)(const void* send, const SUCL_COUNT* send_counts,
                                            const SUCL_DISPL* send_displs, MPI_Datatype send_type,
                                            void* recv, const SUCL_COUNT* recv_counts,
                                            const SUCL_DISPL* recv_displs, MPI_Datatype recv_type,
                                            MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
                 recv_type, comm);
  const block_side from{send, send_counts, send_displs, send_type};
  const block_side to{recv, recv_counts, recv_displs, recv_type};
  return interposer::persistent(
      held, SUCL_KIND_ALLTOALLV, comm, request,
      [&](comm_position at) { return alltoallv(from, to, at); },
      [&] {
        return SUCL_ON(Alltoallv_init)(send, send_counts, send_displs, send_type, recv, recv_counts,
                                       recv_displs, recv_type, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Alltoallw_init)(const void* send, const SUCL_COUNT* send_counts,
                                            const SUCL_DISPL* send_displs,
                                            const MPI_Datatype* send_types, void* recv,
                                            const SUCL_COUNT* recv_counts,
                                            const SUCL_DISPL* recv_displs,
                                            const MPI_Datatype* recv_types, MPI_Comm comm,
                                            MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.alltoallv(send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs,
                 recv_types, comm);
  const block_side from{send, send_counts, send_displs, send_types};
  const block_side to{recv, recv_counts, recv_displs, recv_types};
  return interposer::persistent(
      held, SUCL_KIND_ALLTOALLV, comm, request,
      [&](comm_position at) { return alltoallv(from, to, at); },
      [&] {
        return SUCL_ON(Alltoallw_init)(send, send_counts, send_displs, send_types, recv,
                                       recv_counts, recv_displs, recv_types, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Gatherv_init)(const void* send, SUCL_COUNT send_count,
                                          MPI_Datatype send_type, void* recv,
                                          const SUCL_COUNT* recv_counts, const SUCL_DISPL* displs,
                                          MPI_Datatype recv_type, int root, MPI_Comm comm,
                                          MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.gatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, root, comm);
  const side from{send, send_count, send_type};
  const block_side to{recv, recv_counts, displs, recv_type};
  return interposer::persistent(
      held, SUCL_KIND_GATHERV, comm, request,
      [&](comm_position at) { return gatherv(from, to, root, at); },
      [&] {
        return SUCL_ON(Gatherv_init)(send, send_count, send_type, recv, recv_counts, displs,
                                     recv_type, root, comm, info, request);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Scatterv_init)(const void* send, const SUCL_COUNT* send_counts,
                                           const SUCL_DISPL* displs, MPI_Datatype send_type,
                                           void* recv, SUCL_COUNT recv_count,
                                           MPI_Datatype recv_type, int root, MPI_Comm comm,
                                           MPI_Info info, MPI_Request* request) {
  device::arguments held;
  held.scatterv(send, send_counts, displs, send_type, recv, recv_count, recv_type, root, comm);
  const block_side from{send, send_counts, displs, send_type};
  const side to{recv, recv_count, recv_type};
  return interposer::persistent(
      held, SUCL_KIND_SCATTERV, comm, request,
      [&](comm_position at) { return scatterv(from, to, root, at); },
      [&] {
        return SUCL_ON(Scatterv_init)(send, send_counts, displs, send_type, recv, recv_count,
                                      recv_type, root, comm, info, request);
      });
}
