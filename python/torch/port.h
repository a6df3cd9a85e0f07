/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * What the extension of torch calls of the module sucl._core: plain C, so that it is compiled
 * against torch alone, by whatever compiler and C++ library torch's headers ask for. Only fields
 * are appended; the table says how long it is.
 */
#ifndef SUCL_PYTHON_PORT_H
#define SUCL_PYTHON_PORT_H

#include <sucl/abi/backend.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A communicator for memory of the host, or of one GPU, and an operation in flight on it. */
typedef struct sucl_port_communicator sucl_port_communicator;
typedef struct sucl_port_operation sucl_port_operation;

/** What has failed, in parts. Texts are the thread's own, until its next call. */
typedef struct sucl_port_failure {
  uint32_t struct_size;
  int32_t code; /**< a sucl_status */
  int32_t rank;
  int32_t reserved;
  int64_t native_code;
  const char* text; /**< all of it */
  const char* fact;
  const char* cure;
  const char* operation;
  const char* backend;
} sucl_port_failure;

typedef struct sucl_port {
  uint32_t struct_size;
  uint32_t reserved;
  /** Issues an operation on memory of the host, which stays until it is done; of the record, what
   * a caller of SuCL gives. Null: it is done already. Any thread. */
  sucl_status (*issue)(sucl_port_communicator* c, const sucl_operation* o,
                       sucl_port_operation** issued);
  /** Whether it is done, or has failed. */
  int32_t (*done)(const sucl_port_operation* o);
  /** Helps until it is done, at most for so many milliseconds; negative: without end. `*done`: 0
   * where the time is over. The status is that of the operation. */
  sucl_status (*wait)(sucl_port_communicator* c, sucl_port_operation* o, int64_t milliseconds,
                      int32_t* done);
  /** Whether a message of that rank and tag is here that no receive has taken: `*arrived` is 1 or
   * 0, or -1 where that cannot be known. Never waits. */
  sucl_status (*arrived)(sucl_port_communicator* c, int32_t from, int32_t tag, int32_t* arrived);
  /** Forgets an operation; it goes on if it is not done. */
  void (*forget)(sucl_port_operation* o);
  /** Gives up what is in flight, on all ranks. `why` ends in their errors. */
  void (*abort)(sucl_port_communicator* c, const char* why);
  /** The thread's last failure. */
  const sucl_port_failure* (*failure)(void);
  /** Ends the communicator. */
  void (*close)(sucl_port_communicator* c);
  /** Of a communicator for memory of a GPU: the stream of its queue, in the vendor's API; otherwise
   * null. An operation comes after what the stream has been given at the time of issue(), and what
   * it is given later comes after the operation: issue() gives nothing to wait for. */
  void* (*stream)(sucl_port_communicator* c);
  /** Of such a one: the messages issued until end_group() are one operation, which that issues. */
  void (*begin_group)(sucl_port_communicator* c);
  sucl_status (*end_group)(sucl_port_communicator* c);
  /** The first failure of operations that was not told yet. */
  sucl_status (*check)(sucl_port_communicator* c);
  /** Whom the oldest operation in flight waits for, as "rank 1 has not arrived", asked of the other
   * ranks for at most so many milliseconds; empty if that is not known. The text is the thread's
   * own, until its next call. */
  const char* (*late)(sucl_port_communicator* c, int64_t milliseconds);
} sucl_port;

/** What is in a capsule named SUCL_PORT_CAPSULE: who takes it closes the communicator, and
 * gives the capsule another name. */
typedef struct sucl_port_handle {
  const sucl_port* calls;
  sucl_port_communicator* communicator;
} sucl_port_handle;
#define SUCL_PORT_CAPSULE "sucl.port.1"

#ifdef __cplusplus
}
#endif
#endif
