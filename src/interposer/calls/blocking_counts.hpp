// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The blocking collectives that take counts. Included by widths.hpp, for each width of counts.

SUCL_MPI_FUNCTION SUCL_FORM(Bcast)(void* buffer, SUCL_COUNT count, MPI_Datatype type, int root,
                                   MPI_Comm comm) {
  device::arguments held;
  held.broadcast(buffer, count, type, root, comm);
  const side data{buffer, count, type};
  return move(
      held, SUCL_KIND_BROADCAST, data, MPI_OP_NULL, root, comm,
      [&](comm_position at) { return broadcast(data, root, at); },
      [&] { return SUCL_ON(Bcast)(buffer, count, type, root, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allreduce)(const void* send, void* recv, SUCL_COUNT count,
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  device::arguments held;
  held.reduction(SUCL_KIND_ALLREDUCE, send, recv, count, type, 0, comm);
  const side data{send, count, type};
  return move(
      held, SUCL_KIND_ALLREDUCE, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_ALLREDUCE, data, recv, op, 0, at); },
      [&] { return SUCL_ON(Allreduce)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce)(const void* send, void* recv, SUCL_COUNT count,
                                    MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  device::arguments held;
  held.reduction(SUCL_KIND_REDUCE, send, recv, count, type, root, comm);
  const side data{send, count, type};
  return move(
      held, SUCL_KIND_REDUCE, data, op, root, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_REDUCE, data, recv, op, root, at); },
      [&] { return SUCL_ON(Reduce)(send, recv, count, type, op, root, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce_scatter_block)(const void* send, void* recv, SUCL_COUNT count,
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  device::arguments held;
  held.reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, send, recv, count, type, 0, comm);
  const side data{send, count, type};
  return move(
      held, SUCL_KIND_REDUCE_SCATTER_BLOCK, data, op, 0, comm,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, data, recv, op, 0, at);
      },
      [&] { return SUCL_ON(Reduce_scatter_block)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Reduce_scatter)(const void* send, void* recv, const SUCL_COUNT* counts,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  device::arguments held;
  held.reduce_scatter(send, recv, counts, type, comm);
  const auto pass = [&] { return SUCL_ON(Reduce_scatter)(send, recv, counts, type, op, comm); };
  interposer* const self = interposer::active();
  if (!self || comm == MPI_COMM_NULL || !counts) return pass();
  int code = MPI_SUCCESS;
  const auto at = self->position_in(comm, code);
  if (!at) return code;
  // Calls are alike by their total.
  std::int64_t total = 0;
  for (int r = 0; r < at->size; ++r) total += counts[r];
  if (total == 0) return pass();
  return interposer::blocking(
      held, {comm, SUCL_KIND_REDUCE_SCATTER, total, type, op, 0}, true,
      [&](comm_position at) { return reduce_scatter({send, 0, type}, recv, counts, op, at); },
      pass);
}

SUCL_MPI_FUNCTION SUCL_FORM(Scan)(const void* send, void* recv, SUCL_COUNT count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm) {
  device::arguments held;
  held.reduction(SUCL_KIND_SCAN, send, recv, count, type, 0, comm);
  const side data{send, count, type};
  return move(
      held, SUCL_KIND_SCAN, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_SCAN, data, recv, op, 0, at); },
      [&] { return SUCL_ON(Scan)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Exscan)(const void* send, void* recv, SUCL_COUNT count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  device::arguments held;
  held.reduction(SUCL_KIND_EXSCAN, send, recv, count, type, 0, comm);
  const side data{send, count, type};
  return move(
      held, SUCL_KIND_EXSCAN, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_EXSCAN, data, recv, op, 0, at); },
      [&] { return SUCL_ON(Exscan)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allgather)(const void* send, SUCL_COUNT send_count,
                                       MPI_Datatype send_type, void* recv, SUCL_COUNT recv_count,
                                       MPI_Datatype recv_type, MPI_Comm comm) {
  device::arguments held;
  held.exchange(SUCL_KIND_ALLGATHER, send, send_count, send_type, recv, recv_count, recv_type,
                comm);
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return move(
      held, SUCL_KIND_ALLGATHER, to, MPI_OP_NULL, 0, comm,
      [&](comm_position at) { return exchange(SUCL_KIND_ALLGATHER, from, to, at); },
      [&] {
        return SUCL_ON(Allgather)(send, send_count, send_type, recv, recv_count, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Alltoall)(const void* send, SUCL_COUNT send_count,
                                      MPI_Datatype send_type, void* recv, SUCL_COUNT recv_count,
                                      MPI_Datatype recv_type, MPI_Comm comm) {
  device::arguments held;
  held.exchange(SUCL_KIND_ALLTOALL, send, send_count, send_type, recv, recv_count, recv_type, comm);
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return move(
      held, SUCL_KIND_ALLTOALL, to, MPI_OP_NULL, 0, comm,
      [&](comm_position at) { return exchange(SUCL_KIND_ALLTOALL, from, to, at); },
      [&] {
        return SUCL_ON(Alltoall)(send, send_count, send_type, recv, recv_count, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Gather)(const void* send, SUCL_COUNT send_count, MPI_Datatype send_type,
                                    void* recv, SUCL_COUNT recv_count, MPI_Datatype recv_type,
                                    int root, MPI_Comm comm) {
  device::arguments held;
  held.gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  // Which of the two counts depends on the rank.
  return interposer::blocking(
      held, {comm, SUCL_KIND_GATHER, 0, MPI_BYTE, MPI_OP_NULL, root}, false,
      [&](comm_position at) { return rooted(SUCL_KIND_GATHER, from, to, root, at); },
      [&] {
        return SUCL_ON(Gather)(send, send_count, send_type, recv, recv_count, recv_type, root,
                               comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Scatter)(const void* send, SUCL_COUNT send_count,
                                     MPI_Datatype send_type, void* recv, SUCL_COUNT recv_count,
                                     MPI_Datatype recv_type, int root, MPI_Comm comm) {
  device::arguments held;
  held.scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return interposer::blocking(
      held, {comm, SUCL_KIND_SCATTER, 0, MPI_BYTE, MPI_OP_NULL, root}, false,
      [&](comm_position at) { return rooted(SUCL_KIND_SCATTER, from, to, root, at); },
      [&] {
        return SUCL_ON(Scatter)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Allgatherv)(const void* send, SUCL_COUNT send_count,
                                        MPI_Datatype send_type, void* recv,
                                        const SUCL_COUNT* recv_counts, const SUCL_DISPL* displs,
                                        MPI_Datatype recv_type, MPI_Comm comm) {
  device::arguments held;
  held.gatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type,
               device::arguments::everywhere, comm);
  const side from{send, send_count, send_type};
  const block_side to{recv, recv_counts, displs, recv_type};
  return interposer::blocking(
      held, {comm, SUCL_KIND_ALLGATHERV, 0, recv_type, MPI_OP_NULL, 0}, false,
      [&](comm_position at) { return allgatherv(from, to, at); },
      [&] {
        return SUCL_ON(Allgatherv)(send, send_count, send_type, recv, recv_counts, displs,
                                   recv_type, comm);
      });
}

// Ranks do not know each other's sizes in these, so that all calls of a kind are of one class.

SUCL_MPI_FUNCTION SUCL_FORM(Alltoallv)(const void* send, const SUCL_COUNT* send_counts,
                                       const SUCL_DISPL* send_displs, MPI_Datatype send_type,
                                       void* recv, const SUCL_COUNT* recv_counts,
                                       const SUCL_DISPL* recv_displs, MPI_Datatype recv_type,
                                       MPI_Comm comm) {
  device::arguments held;
  held.alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
                 recv_type, comm);
  const block_side from{send, send_counts, send_displs, send_type};
  const block_side to{recv, recv_counts, recv_displs, recv_type};
  return interposer::blocking(
      held, {comm, SUCL_KIND_ALLTOALLV, 0, MPI_BYTE, MPI_OP_NULL, 0}, true,
      [&](comm_position at) { return alltoallv(from, to, at); },
      [&] {
        return SUCL_ON(Alltoallv)(send, send_counts, send_displs, send_type, recv, recv_counts,
                                  recv_displs, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Alltoallw)(const void* send, const SUCL_COUNT* send_counts,
                                       const SUCL_DISPL* send_displs,
                                       const MPI_Datatype* send_types, void* recv,
                                       const SUCL_COUNT* recv_counts, const SUCL_DISPL* recv_displs,
                                       const MPI_Datatype* recv_types, MPI_Comm comm) {
  device::arguments held;
  held.alltoallv(send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs,
                 recv_types, comm);
  const block_side from{send, send_counts, send_displs, send_types};
  const block_side to{recv, recv_counts, recv_displs, recv_types};
  return interposer::blocking(
      held, {comm, SUCL_KIND_ALLTOALLV, 0, MPI_BYTE, MPI_OP_NULL, 0}, true,
      [&](comm_position at) { return alltoallv(from, to, at); },
      [&] {
        return SUCL_ON(Alltoallw)(send, send_counts, send_displs, send_types, recv, recv_counts,
                                  recv_displs, recv_types, comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Gatherv)(const void* send, SUCL_COUNT send_count,
                                     MPI_Datatype send_type, void* recv,
                                     const SUCL_COUNT* recv_counts, const SUCL_DISPL* displs,
                                     MPI_Datatype recv_type, int root, MPI_Comm comm) {
  device::arguments held;
  held.gatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, root, comm);
  const side from{send, send_count, send_type};
  const block_side to{recv, recv_counts, displs, recv_type};
  return interposer::blocking(
      held, {comm, SUCL_KIND_GATHERV, 0, MPI_BYTE, MPI_OP_NULL, root}, true,
      [&](comm_position at) { return gatherv(from, to, root, at); },
      [&] {
        return SUCL_ON(Gatherv)(send, send_count, send_type, recv, recv_counts, displs, recv_type,
                                root, comm);
      });
}

SUCL_MPI_FUNCTION SUCL_FORM(Scatterv)(const void* send, const SUCL_COUNT* send_counts,
                                      const SUCL_DISPL* displs, MPI_Datatype send_type, void* recv,
                                      SUCL_COUNT recv_count, MPI_Datatype recv_type, int root,
                                      MPI_Comm comm) {
  device::arguments held;
  held.scatterv(send, send_counts, displs, send_type, recv, recv_count, recv_type, root, comm);
  const block_side from{send, send_counts, displs, send_type};
  const side to{recv, recv_count, recv_type};
  return interposer::blocking(
      held, {comm, SUCL_KIND_SCATTERV, 0, MPI_BYTE, MPI_OP_NULL, root}, true,
      [&](comm_position at) { return scatterv(from, to, root, at); },
      [&] {
        return SUCL_ON(Scatterv)(send, send_counts, displs, send_type, recv, recv_count, recv_type,
                                 root, comm);
      });
}
