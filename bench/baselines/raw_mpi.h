/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The baseline of `sucl bench` and of the applications: the blocking MPI call a program would make
 * today, and nothing else.
 *
 * A module libsucl_raw_mpi_<flavour>.so exports `sucl_raw_mpi_entry`. A call is described once,
 * `resolve` looks up MPI's handles for it, and then `run[kind]` makes exactly one MPI call with it
 * each time.
 */
#ifndef SUCL_BENCH_RAW_MPI_H
#define SUCL_BENCH_RAW_MPI_H

#include <sucl/abi/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One blocking call. What count and the arrays mean is as in sucl_operation, in MPI's own terms:
 * counts have 32 bits, and in place is what MPI calls so. */
typedef struct sucl_raw_call {
  sucl_kind kind; /**< barrier to sendrecv */
  sucl_type type;
  sucl_op op;
  int32_t root;   /**< root, or the rank that is sent to */
  int32_t source; /**< the rank that is received from */
  int32_t tag;
  int32_t count;
  int32_t recv_count;    /**< of a sendrecv */
  uint64_t element_size; /**< of SUCL_TYPE_BYTES; other types know theirs */
  const void* send;      /**< null: in place */
  void* recv;
  const int32_t* send_counts;
  const int32_t* send_displs;
  const int32_t* recv_counts;
  const int32_t* recv_displs;
  /* Filled by resolve. */
  const void* input;
  uint64_t comm;
  uint64_t native_type;
  uint64_t native_op;
} sucl_raw_call;

/** Makes the call; returns MPI's code, 0 for success. */
typedef int (*sucl_raw_function)(const sucl_raw_call* call);

typedef struct sucl_raw_mpi {
  uint32_t struct_size;
  /** Fills in MPI's handles. `native_comm` points to an MPI_Comm of the module's library, as
   * sucl_bootstrap's group_native gives it. Returns 0, or 1 where MPI has no such call: an op or a
   * type that it lacks. Call it again when a pointer changes. */
  int (*resolve)(sucl_raw_call* call, const void* native_comm);
  sucl_raw_function run[SUCL_KIND_GROUP]; /**< indexed by kind */
  int (*barrier)(const void* native_comm);
  /** The largest of each of `count` numbers, on every rank: times of the slowest rank. */
  int (*max_reduce)(const void* native_comm, const double* mine, double* largest, int32_t count);
  /** Receives and sends at once, in MPI's non-blocking calls, and waits for all. The calls are
   * resolved ones of kind recv and send. */
  int (*exchange)(const sucl_raw_call* recvs, int32_t recv_count, const sucl_raw_call* sends,
                  int32_t send_count);
  /** An MPI_Comm of the ranks with the same colour, ordered by rank, of this module's own: like
   * MPI_Comm_split of MPI_COMM_WORLD, over which it is collective. Lasts as long as MPI. */
  const void* (*split)(int32_t colour);
} sucl_raw_mpi;

typedef const sucl_raw_mpi* (*sucl_raw_mpi_entry_function)(void);
#define SUCL_RAW_MPI_ENTRY "sucl_raw_mpi_entry"

#ifdef __cplusplus
}
#endif
#endif
