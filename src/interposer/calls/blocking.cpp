// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The blocking collectives that an MPI program calls, and MPI's begin and end.
#include "interposer/calls/entry.hpp"
#include "interposer/next.hpp"
#include "interposer/state.hpp"

using namespace sucl::interposer;

// What libsucl_pmpi.so knows this library's own symbols by.
extern "C" SUCL_ABI_EXPORT const char sucl_pmpi_module[];
const char sucl_pmpi_module[] = SUCL_MPI_FLAVOUR;

namespace {

// MPI returns from empty calls sooner than SuCL could recognise them.
template <class Describe, class Pass>
int move(sucl_kind kind, const side& s, MPI_Op op, int root, MPI_Comm comm,
         const Describe& describe, const Pass& pass) {
  if (s.count == 0) return pass();
  return interposer::blocking({comm, kind, s.count, s.type, op, root}, true, describe, pass);
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Init(int* argc, char*** argv) {
  const int code = SUCL_NEXT(Init)(argc, argv);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}

SUCL_MPI_FUNCTION MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = SUCL_NEXT(Init_thread)(argc, argv, required, provided);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}

SUCL_MPI_FUNCTION MPI_Finalize() {
  interposer::stop();
  return SUCL_NEXT(Finalize)();
}

SUCL_MPI_FUNCTION MPI_Barrier(MPI_Comm comm) {
  return interposer::blocking(
      {comm, SUCL_KIND_BARRIER, 0, MPI_BYTE, MPI_OP_NULL, 0}, true,
      [](comm_position) { return barrier(); }, [&] { return SUCL_NEXT(Barrier)(comm); });
}

SUCL_MPI_FUNCTION MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const side data{buffer, count, type};
  return move(
      SUCL_KIND_BROADCAST, data, MPI_OP_NULL, root, comm,
      [&](comm_position at) { return broadcast(data, root, at); },
      [&] { return SUCL_NEXT(Bcast)(buffer, count, type, root, comm); });
}

SUCL_MPI_FUNCTION MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm) {
  const side data{send, count, type};
  return move(
      SUCL_KIND_ALLREDUCE, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_ALLREDUCE, data, recv, op, 0, at); },
      [&] { return SUCL_NEXT(Allreduce)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             int root, MPI_Comm comm) {
  const side data{send, count, type};
  return move(
      SUCL_KIND_REDUCE, data, op, root, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_REDUCE, data, recv, op, root, at); },
      [&] { return SUCL_NEXT(Reduce)(send, recv, count, type, op, root, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter_block(const void* send, void* recv, int count,
                                           MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const side data{send, count, type};
  return move(
      SUCL_KIND_REDUCE_SCATTER_BLOCK, data, op, 0, comm,
      [&](comm_position at) {
        return reduction(SUCL_KIND_REDUCE_SCATTER_BLOCK, data, recv, op, 0, at);
      },
      [&] { return SUCL_NEXT(Reduce_scatter_block)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter(const void* send, void* recv, const int* counts,
                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto pass = [&] { return SUCL_NEXT(Reduce_scatter)(send, recv, counts, type, op, comm); };
  interposer* const self = interposer::active();
  if (!self || comm == MPI_COMM_NULL || !counts) return pass();
  // Calls are alike by their total.
  std::int64_t total = 0;
  for (int r = 0; r < self->position_in(comm).size; ++r) total += counts[r];
  if (total == 0) return pass();
  return interposer::blocking(
      {comm, SUCL_KIND_REDUCE_SCATTER, total, type, op, 0}, true,
      [&](comm_position at) { return reduce_scatter({send, 0, type}, recv, counts, op, at); },
      pass);
}

SUCL_MPI_FUNCTION MPI_Scan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm) {
  const side data{send, count, type};
  return move(
      SUCL_KIND_SCAN, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_SCAN, data, recv, op, 0, at); },
      [&] { return SUCL_NEXT(Scan)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Exscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  const side data{send, count, type};
  return move(
      SUCL_KIND_EXSCAN, data, op, 0, comm,
      [&](comm_position at) { return reduction(SUCL_KIND_EXSCAN, data, recv, op, 0, at); },
      [&] { return SUCL_NEXT(Exscan)(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type,
                                void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return move(
      SUCL_KIND_ALLGATHER, to, MPI_OP_NULL, 0, comm,
      [&](comm_position at) { return exchange(SUCL_KIND_ALLGATHER, from, to, at); },
      [&] {
        return SUCL_NEXT(Allgather)(send, send_count, send_type, recv, recv_count, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                               int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return move(
      SUCL_KIND_ALLTOALL, to, MPI_OP_NULL, 0, comm,
      [&](comm_position at) { return exchange(SUCL_KIND_ALLTOALL, from, to, at); },
      [&] {
        return SUCL_NEXT(Alltoall)(send, send_count, send_type, recv, recv_count, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                             int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  // Which of the two counts depends on the rank.
  return interposer::blocking(
      {comm, SUCL_KIND_GATHER, 0, MPI_BYTE, MPI_OP_NULL, root}, false,
      [&](comm_position at) { return rooted(SUCL_KIND_GATHER, from, to, root, at); },
      [&] {
        return SUCL_NEXT(Gather)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                 comm);
      });
}

SUCL_MPI_FUNCTION MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                              int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  const side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return interposer::blocking(
      {comm, SUCL_KIND_SCATTER, 0, MPI_BYTE, MPI_OP_NULL, root}, false,
      [&](comm_position at) { return rooted(SUCL_KIND_SCATTER, from, to, root, at); },
      [&] {
        return SUCL_NEXT(Scatter)(send, send_count, send_type, recv, recv_count, recv_type, root,
                                  comm);
      });
}

SUCL_MPI_FUNCTION MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type,
                                 void* recv, const int* recv_counts, const int* displs,
                                 MPI_Datatype recv_type, MPI_Comm comm) {
  const side from{send, send_count, send_type};
  return interposer::blocking(
      {comm, SUCL_KIND_ALLGATHERV, 0, recv_type, MPI_OP_NULL, 0}, false,
      [&](comm_position at) { return allgatherv(from, recv, recv_counts, displs, recv_type, at); },
      [&] {
        return SUCL_NEXT(Allgatherv)(send, send_count, send_type, recv, recv_counts, displs,
                                     recv_type, comm);
      });
}

// Ranks do not know each other's sizes in these, so that there is nothing to select by.

SUCL_MPI_FUNCTION MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displs,
                                MPI_Datatype send_type, void* recv, const int* recv_counts,
                                const int* recv_displs, MPI_Datatype recv_type, MPI_Comm comm) {
  return interposer::leave(SUCL_KIND_ALLTOALLV, comm, [&] {
    return SUCL_NEXT(Alltoallv)(send, send_counts, send_displs, send_type, recv, recv_counts,
                                recv_displs, recv_type, comm);
  });
}

SUCL_MPI_FUNCTION MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                              const int* recv_counts, const int* displs, MPI_Datatype recv_type,
                              int root, MPI_Comm comm) {
  return interposer::leave(SUCL_KIND_GATHERV, comm, [&] {
    return SUCL_NEXT(Gatherv)(send, send_count, send_type, recv, recv_counts, displs, recv_type,
                              root, comm);
  });
}

SUCL_MPI_FUNCTION MPI_Scatterv(const void* send, const int* send_counts, const int* displs,
                               MPI_Datatype send_type, void* recv, int recv_count,
                               MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return interposer::leave(SUCL_KIND_SCATTERV, comm, [&] {
    return SUCL_NEXT(Scatterv)(send, send_counts, displs, send_type, recv, recv_count, recv_type,
                               root, comm);
  });
}
