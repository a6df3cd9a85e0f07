// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "raw_mpi.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

// The C++ bindings of old headers would add a library to link.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

using call = sucl_raw_call;

// Handles are integers in some libraries and pointers in others.
template <class Handle>
std::uint64_t stored(Handle handle) {
  std::uint64_t bits = 0;
  static_assert(sizeof handle <= sizeof bits);
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}

template <class Handle>
Handle loaded(std::uint64_t bits) {
  Handle handle;
  std::memcpy(&handle, &bits, sizeof handle);
  return handle;
}

MPI_Comm comm(const call* c) { return loaded<MPI_Comm>(c->comm); }
MPI_Datatype type(const call* c) { return loaded<MPI_Datatype>(c->native_type); }
MPI_Op op(const call* c) { return loaded<MPI_Op>(c->native_op); }

MPI_Comm comm_of(const void* native) {
  MPI_Comm comm;
  std::memcpy(&comm, native, sizeof comm);
  return comm;
}

int barrier(const call* c) { return MPI_Barrier(comm(c)); }

int broadcast(const call* c) { return MPI_Bcast(c->recv, c->count, type(c), c->root, comm(c)); }

int reduce(const call* c) {
  return MPI_Reduce(c->input, c->recv, c->count, type(c), op(c), c->root, comm(c));
}

int allreduce(const call* c) {
  return MPI_Allreduce(c->input, c->recv, c->count, type(c), op(c), comm(c));
}

int reduce_scatter(const call* c) {
  return MPI_Reduce_scatter(c->input, c->recv, c->recv_counts, type(c), op(c), comm(c));
}

int reduce_scatter_block(const call* c) {
  return MPI_Reduce_scatter_block(c->input, c->recv, c->count, type(c), op(c), comm(c));
}

int allgather(const call* c) {
  return MPI_Allgather(c->input, c->count, type(c), c->recv, c->count, type(c), comm(c));
}

int allgatherv(const call* c) {
  return MPI_Allgatherv(c->input, c->count, type(c), c->recv, c->recv_counts, c->recv_displs,
                        type(c), comm(c));
}

int alltoall(const call* c) {
  return MPI_Alltoall(c->input, c->count, type(c), c->recv, c->count, type(c), comm(c));
}

int alltoallv(const call* c) {
  return MPI_Alltoallv(c->input, c->send_counts, c->send_displs, type(c), c->recv, c->recv_counts,
                       c->recv_displs, type(c), comm(c));
}

int gather(const call* c) {
  return MPI_Gather(c->input, c->count, type(c), c->recv, c->count, type(c), c->root, comm(c));
}

int gatherv(const call* c) {
  return MPI_Gatherv(c->input, c->count, type(c), c->recv, c->recv_counts, c->recv_displs, type(c),
                     c->root, comm(c));
}

int scatter(const call* c) {
  return MPI_Scatter(c->send, c->count, type(c), c->recv, c->count, type(c), c->root, comm(c));
}

int scatterv(const call* c) {
  return MPI_Scatterv(c->send, c->send_counts, c->send_displs, type(c), c->recv, c->count, type(c),
                      c->root, comm(c));
}

int scan(const call* c) { return MPI_Scan(c->input, c->recv, c->count, type(c), op(c), comm(c)); }

int exscan(const call* c) {
  return MPI_Exscan(c->input, c->recv, c->count, type(c), op(c), comm(c));
}

int send(const call* c) { return MPI_Send(c->send, c->count, type(c), c->root, c->tag, comm(c)); }

int recv(const call* c) {
  return MPI_Recv(c->recv, c->count, type(c), c->source, c->tag, comm(c), MPI_STATUS_IGNORE);
}

int sendrecv(const call* c) {
  return MPI_Sendrecv(c->send, c->count, type(c), c->root, c->tag, c->recv, c->recv_count, type(c),
                      c->source, c->tag, comm(c), MPI_STATUS_IGNORE);
}

bool reduces(sucl_kind kind) {
  switch (kind) {
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return true;
    default: return false;
  }
}

MPI_Datatype native_type(const call& c) {
  switch (c.type) {
    case SUCL_TYPE_BYTES: return c.element_size == 1 ? MPI_BYTE : MPI_DATATYPE_NULL;
    case SUCL_TYPE_INT8: return MPI_INT8_T;
    case SUCL_TYPE_UINT8: return MPI_UINT8_T;
    case SUCL_TYPE_INT16: return MPI_INT16_T;
    case SUCL_TYPE_UINT16: return MPI_UINT16_T;
    case SUCL_TYPE_INT32: return MPI_INT32_T;
    case SUCL_TYPE_UINT32: return MPI_UINT32_T;
    case SUCL_TYPE_INT64: return MPI_INT64_T;
    case SUCL_TYPE_UINT64: return MPI_UINT64_T;
    case SUCL_TYPE_FP32: return MPI_FLOAT;
    case SUCL_TYPE_FP64: return MPI_DOUBLE;
    case SUCL_TYPE_COMPLEX_FP32: return MPI_C_FLOAT_COMPLEX;
    case SUCL_TYPE_COMPLEX_FP64: return MPI_C_DOUBLE_COMPLEX;
    case SUCL_TYPE_INT16_LOC: return MPI_SHORT_INT;
    case SUCL_TYPE_INT32_LOC: return MPI_2INT;
    case SUCL_TYPE_INT64_LOC: return MPI_LONG_INT;
    case SUCL_TYPE_FP32_LOC: return MPI_FLOAT_INT;
    case SUCL_TYPE_FP64_LOC: return MPI_DOUBLE_INT;
    case SUCL_TYPE_BOOL: return MPI_C_BOOL;
    default: return MPI_DATATYPE_NULL;
  }
}

enum family { none, integer, real, complex, pair, truth };

family family_of(sucl_type type) {
  if (type >= SUCL_TYPE_INT8 && type <= SUCL_TYPE_UINT64) return integer;
  if (type == SUCL_TYPE_FP32 || type == SUCL_TYPE_FP64) return real;
  if (type == SUCL_TYPE_COMPLEX_FP32 || type == SUCL_TYPE_COMPLEX_FP64) return complex;
  if (type >= SUCL_TYPE_INT16_LOC && type <= SUCL_TYPE_FP64_LOC) return pair;
  if (type == SUCL_TYPE_BOOL) return truth;
  return none;
}

MPI_Op native_op(sucl_op op, family of) {
  const bool number = of == integer || of == real;
  const bool logical = of == integer || of == truth;
  switch (op) {
    case SUCL_OP_SUM: return number || of == complex ? MPI_SUM : MPI_OP_NULL;
    case SUCL_OP_PROD: return number || of == complex ? MPI_PROD : MPI_OP_NULL;
    case SUCL_OP_MIN: return number ? MPI_MIN : MPI_OP_NULL;
    case SUCL_OP_MAX: return number ? MPI_MAX : MPI_OP_NULL;
    case SUCL_OP_LOGICAL_AND: return logical ? MPI_LAND : MPI_OP_NULL;
    case SUCL_OP_LOGICAL_OR: return logical ? MPI_LOR : MPI_OP_NULL;
    case SUCL_OP_LOGICAL_XOR: return logical ? MPI_LXOR : MPI_OP_NULL;
    case SUCL_OP_BIT_AND: return of == integer ? MPI_BAND : MPI_OP_NULL;
    case SUCL_OP_BIT_OR: return of == integer ? MPI_BOR : MPI_OP_NULL;
    case SUCL_OP_BIT_XOR: return of == integer ? MPI_BXOR : MPI_OP_NULL;
    case SUCL_OP_MINLOC: return of == pair ? MPI_MINLOC : MPI_OP_NULL;
    case SUCL_OP_MAXLOC: return of == pair ? MPI_MAXLOC : MPI_OP_NULL;
    default: return MPI_OP_NULL;
  }
}

// A reduce in place is MPI_IN_PLACE at the root only.
const void* input(const call& c, MPI_Comm comm) {
  if (c.send != nullptr) return c.send;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const bool rooted =
      c.kind == SUCL_KIND_REDUCE || c.kind == SUCL_KIND_GATHER || c.kind == SUCL_KIND_GATHERV;
  return rooted && rank != c.root ? c.recv : MPI_IN_PLACE;
}

int resolve(call* c, const void* native_comm) {
  if (c->kind < 0 || c->kind >= SUCL_KIND_GROUP) return 1;
  const MPI_Comm comm = comm_of(native_comm);
  c->comm = stored(comm);
  if (c->kind == SUCL_KIND_BARRIER) return 0;
  const MPI_Datatype type = native_type(*c);
  if (type == MPI_DATATYPE_NULL) return 1;
  c->native_type = stored(type);
  c->input = input(*c, comm);
  if (!reduces(c->kind)) return 0;
  const MPI_Op op = native_op(c->op, family_of(c->type));
  c->native_op = stored(op);
  return op == MPI_OP_NULL ? 1 : 0;
}

int barrier_of(const void* native_comm) { return MPI_Barrier(comm_of(native_comm)); }

int max_reduce(const void* native_comm, const double* mine, double* largest, int32_t count) {
  return MPI_Allreduce(mine, largest, count, MPI_DOUBLE, MPI_MAX, comm_of(native_comm));
}

int exchange(const call* recvs, int32_t recv_count, const call* sends, int32_t send_count) {
  static thread_local std::vector<MPI_Request> requests;
  requests.clear();
  for (const call* c = recvs; c != recvs + recv_count; ++c) {
    requests.push_back(MPI_REQUEST_NULL);
    const int code =
        MPI_Irecv(c->recv, c->count, type(c), c->source, c->tag, comm(c), &requests.back());
    if (code != MPI_SUCCESS) return code;
  }
  for (const call* c = sends; c != sends + send_count; ++c) {
    requests.push_back(MPI_REQUEST_NULL);
    const int code =
        MPI_Isend(c->send, c->count, type(c), c->root, c->tag, comm(c), &requests.back());
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

const void* split(int32_t colour) {
  static std::deque<MPI_Comm> made;  // whose elements stay where they are
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm;
  if (MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &comm) != MPI_SUCCESS) return nullptr;
  return &made.emplace_back(comm);
}

}  // namespace

extern "C" SUCL_ABI_EXPORT const sucl_raw_mpi* sucl_raw_mpi_entry() {
  static const sucl_raw_mpi table = {
      sizeof(sucl_raw_mpi),
      resolve,
      {barrier, broadcast, reduce, allreduce, reduce_scatter, reduce_scatter_block, allgather,
       allgatherv, alltoall, alltoallv, gather, gatherv, scatter, scatterv, scan, exscan, send,
       recv, sendrecv},
      barrier_of,
      max_reduce,
      exchange,
      split};
  return &table;
}
