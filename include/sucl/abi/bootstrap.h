/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The control plane: how processes find each other. An MPI module exports it beside its backend,
 * one module for each MPI library, so that SuCL itself links none. The module `tcp` exports it
 * alone, for jobs without MPI.
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

/** A store of the program's own, in which processes find each other: the same for all of them, and
 * used for one job only. Called by the thread that is inside `init`. A status other than
 * SUCL_SUCCESS ends the start. Since 1.4. */
typedef struct sucl_store {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /** Keeps a value, of any bytes. A key is put once. */
  sucl_status (*put)(void* context, const char* key, const void* value, uint64_t bytes);
  /** Reads a value that is there; `*bytes` is the room for it, then its length. */
  sucl_status (*get)(void* context, const char* key, void* value, uint64_t* bytes);
  /** Sets `*there` to 1 once the key is there, to 0 if it is not after `milliseconds`. */
  sucl_status (*wait)(void* context, const char* key, uint64_t milliseconds, int32_t* there);
} sucl_store;

/** How the processes of a job without an MPI library meet. Since 1.4. */
typedef struct sucl_rendezvous {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  int32_t serves;      /**< 1: this process serves the store at `address` */
  const char* address; /**< name or address of the machine that serves it */
  uint32_t port;       /**< of the store, where `address` says where it is */
  uint32_t reserved;
  const char* id;          /**< of `make_id`, in place of address, port and secret; or null */
  const sucl_store* store; /**< in place of all of them, or null; copied */
  const void* secret;      /**< what only processes of the job know */
  uint64_t secret_bytes;
  const char* network; /**< name or subnet of the interface to use; null: any */
  uint64_t timeout_ms; /**< for all ranks to come; 0: that of the module */
} sucl_rendezvous;

/** What members of a group agree on while others of it die. Since 1.6. */
typedef struct sucl_agreement {
  uint32_t struct_size;
  uint32_t flags;  /**< of this member; on return the bitwise and of all that took part */
  uint8_t* failed; /**< one for each member; on return 1 for those that have failed, 0 for others */
  void* context;
  /** Whether the caller knows that a member's process has ended; called by the caller's thread. */
  int32_t (*has_failed)(void* context, int32_t rank);
} sucl_agreement;

typedef struct sucl_bootstrap {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  const char* name; /**< "openmpi", "mpich", "impi": the flavour this module was built for */
  /** Initialises the library unless that is done. Fails if it is finalised already. */
  sucl_status (*init)(const sucl_core* core, int* argc, char*** argv, sucl_bootstrap_info* info);
  /** Ends the library if `init` started it. */
  void (*finalize)(void);
  /** 1 while calls are possible: initialised and not finalised. */
  int32_t (*alive)(void);
  /** Calls `hook(arg)` at the start of the library's finalisation, whichever caller asks for it. */
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
  /** The watchdog's control messages, at most 4096 bytes, not collective. `notify` never waits for
   * the receiver; `poll` sets `*source` to -1 if nothing came. Callable from any thread if
   * thread_multiple. */
  sucl_status (*notify)(sucl_group* group, int32_t rank, const void* data, uint64_t bytes);
  sucl_status (*poll)(sucl_group* group, int32_t* source, void* data, uint64_t capacity,
                      uint64_t* bytes);
  /** Ends the job. */
  void (*abort)(int32_t exit_code);
  /* Since 1.4: null where a launcher of the library assigns the ranks. */
  /** Says where `init` finds the other processes. While a job runs, those of the next one: where
   * this fails the job goes on. */
  sucl_status (*rendezvous)(const sucl_core* core, const sucl_rendezvous* where);
  /** Makes the id of a job, a line of at most 255 bytes, and serves its store until all its ranks
   * have found each other. `network`: as above, or "loopback" for this machine alone. Port 0: any.
   */
  sucl_status (*make_id)(const sucl_core* core, const char* network, uint32_t port, char* text,
                         uint64_t capacity);
  /* Since 1.6: null where the library ends a job that loses a process. */
  /** Waits for all members of a group that live, and agrees with them: all that return have the
   * same result, whichever members die meanwhile. Each call is an agreement of its own; one that
   * gave up waiting goes on with the next call. A member that the others have given up, as where
   * its connections broke, finds itself among the failed. */
  sucl_status (*agree)(sucl_group* group, sucl_agreement* how);
  /** The group of the members that had not failed by the last agreement, in the same order. Sends
   * nothing. */
  sucl_status (*group_shrink)(sucl_group* group, sucl_group** result);
  /* Since 1.6: null where there are no native communicators. */
  /** The ranks that the processes of a native communicator, as for `group_adopt`, have in a group,
   * in their order; -1 stands for those that are not in it. `*count` is the room for them, then how
   * many they are. Local: nothing is sent. */
  sucl_status (*native_ranks)(sucl_group* group, const void* native, uint64_t bytes, int32_t* ranks,
                              uint64_t* count);
} sucl_bootstrap;

typedef const sucl_bootstrap* (*sucl_bootstrap_entry_function)(uint32_t core_major,
                                                               uint32_t core_minor);
#define SUCL_BOOTSTRAP_ENTRY "sucl_bootstrap_entry"

#ifdef __cplusplus
}
#endif
#endif
