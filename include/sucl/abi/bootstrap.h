/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The control plane: how processes find each other. An MPI module exports it beside its backend,
 * one module for each MPI library, so that SuCL itself links none.
 */
#ifndef SUCL_ABI_BOOTSTRAP_H
#define SUCL_ABI_BOOTSTRAP_H

#include <sucl/abi/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sucl_group sucl_group; /**< an ordered set of processes with its own context */

/** What `init` found. */
typedef struct sucl_bootstrap_info {
  uint32_t struct_size;
  int32_t initialised_here; /**< 1 if init started the library: `finalize` will then end it */
  int32_t thread_multiple;  /**< 1 if any thread may call at any time */
  int32_t reserved;
  char library[256]; /**< name and version of the library, one line */
} sucl_bootstrap_info;

typedef struct sucl_bootstrap {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  const char* name; /**< "openmpi", "mpich", "impi": the flavour this module was built for */
  /** Initialises the library if nobody has. Fails if it is finalised already. */
  sucl_status (*init)(const sucl_core* core, int* argc, char*** argv, sucl_bootstrap_info* info);
  /** Ends the library if `init` started it. */
  void (*finalize)(void);
  /** 1 while calls are possible: initialised and not finalised. */
  int32_t (*alive)(void);
  /** Calls `hook(arg)` at the start of the library's finalisation, whoever asks for it. */
  sucl_status (*at_finalize)(void (*hook)(void*), void* arg);
  /** The group of all processes; collective. */
  sucl_status (*group_world)(sucl_group** group);
  /** A group with the processes of a native communicator (MPI: `*(MPI_Comm*)native`, `bytes` its
   * size, checked against the module's own); collective over it. The native one stays the caller's.
   */
  sucl_status (*group_adopt)(const void* native, uint64_t bytes, sucl_group** group);
  /** A group for each colour, ordered by key; collective. A negative colour gets null. */
  sucl_status (*group_split)(sucl_group* group, int32_t colour, int32_t key, sucl_group** result);
  void (*group_free)(sucl_group* group);
  int32_t (*group_rank)(const sucl_group* group);
  int32_t (*group_size)(const sucl_group* group);
  /** Pointer to the native communicator, for a backend of the same library to use: what goes over
   * it is its own. Collective: a module may make it when it is asked for it first. */
  const void* (*group_native)(const sucl_group* group);
  /** As in sucl_core: blocking, and started and tested. Collective, in the same order. */
  sucl_status (*allgather)(sucl_group* group, const void* mine, void* all, uint64_t bytes);
  sucl_status (*allgather_start)(sucl_group* group, const void* mine, void* all, uint64_t bytes,
                                 sucl_oob_request** request);
  sucl_status (*test)(sucl_group* group, sucl_oob_request* request, int32_t* done);
  /** Watchdog's mail, at most 4096 bytes, not collective. `notify` never waits for the receiver;
   * `poll` sets `*source` to -1 if nothing came. Callable from any thread if thread_multiple. */
  sucl_status (*notify)(sucl_group* group, int32_t rank, const void* data, uint64_t bytes);
  sucl_status (*poll)(sucl_group* group, int32_t* source, void* data, uint64_t capacity,
                      uint64_t* bytes);
  /** Ends the job. */
  void (*abort)(int32_t exit_code);
} sucl_bootstrap;

typedef const sucl_bootstrap* (*sucl_bootstrap_entry_function)(uint32_t core_major,
                                                               uint32_t core_minor);
#define SUCL_BOOTSTRAP_ENTRY "sucl_bootstrap_entry"

#ifdef __cplusplus
}
#endif
#endif
