/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The contract between SuCL and a backend: plain C, versioned, append-only.
 *
 * A backend is a shared library that exports one symbol, `sucl_backend_entry`, which returns one
 * table, `sucl_backend`. SuCL loads it, asks what it supports (`query`), gives it one
 * communicator at a time (`comm_create`) and then posts operations to it (`post`). Every kind of
 * operation goes through that one entry, described by one plain record, `sucl_operation`.
 *
 * Rules of evolution: fields are only ever appended; every struct starts with `struct_size`, and a
 * reader touches no field beyond it (`SUCL_HAS_FIELD`); numbers are never reused. A change that
 * breaks this raises SUCL_ABI_MAJOR, and a backend of another major number is refused.
 *
 * Threads: SuCL calls the functions of one communicator from one thread at a time, though not
 * always from the same thread. Functions of different communicators may be called at once.
 */
#ifndef SUCL_ABI_BACKEND_H
#define SUCL_ABI_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUCL_ABI_MAJOR 1
#define SUCL_ABI_MINOR 6

/** True if the struct that `ptr` points to is long enough to hold `field`. */
#define SUCL_HAS_FIELD(ptr, type, field) \
  ((ptr)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

/** Marks the entry symbol of a backend. */
#define SUCL_ABI_EXPORT __attribute__((visibility("default")))

/** What went wrong. 0 is success; every other value is an error. */
typedef int32_t sucl_status;
enum {
  SUCL_SUCCESS = 0,
  SUCL_ERROR_INVALID_ARGUMENT = 1,
  SUCL_ERROR_INVALID_RANK = 2,   /**< root or peer outside the communicator */
  SUCL_ERROR_INVALID_COUNT = 3,  /**< count, offset or range outside the memory it refers to */
  SUCL_ERROR_INVALID_TYPE = 4,   /**< element type unknown, or the op is not defined for it */
  SUCL_ERROR_INVALID_MEMORY = 5, /**< null, overlapping, or memory of another context */
  SUCL_ERROR_MISMATCH = 6,       /**< ranks issued different operations or arguments */
  SUCL_ERROR_CONFIGURATION = 7,  /**< configuration file, environment variable or command line */
  SUCL_ERROR_UNAVAILABLE = 8,    /**< a backend or library is missing or of the wrong version */
  SUCL_ERROR_UNSUPPORTED = 9,    /**< no backend at hand can execute the operation */
  SUCL_ERROR_NATIVE = 10,        /**< the library below reported an error: see the native code */
  SUCL_ERROR_TIMEOUT = 11,       /**< the watchdog gave up on an operation */
  SUCL_ERROR_PEER_LOST = 12,     /**< a process of the communicator died */
  SUCL_ERROR_SHUT_DOWN = 13,     /**< used after the runtime was shut down or MPI finalised */
  SUCL_ERROR_OUT_OF_MEMORY = 14,
  SUCL_ERROR_INTERNAL = 15
};

/** Kinds of operation. The comment gives what `count` and the arrays mean. */
typedef int32_t sucl_kind;
enum {
  SUCL_KIND_BARRIER = 0,
  SUCL_KIND_BROADCAST = 1,      /**< count elements; the root reads send, the others write recv */
  SUCL_KIND_REDUCE = 2,         /**< count elements to recv on the root */
  SUCL_KIND_ALLREDUCE = 3,      /**< count elements */
  SUCL_KIND_REDUCE_SCATTER = 4, /**< recv_counts[r] elements to rank r */
  SUCL_KIND_REDUCE_SCATTER_BLOCK = 5, /**< count elements to every rank */
  SUCL_KIND_ALLGATHER = 6,            /**< count elements from every rank */
  SUCL_KIND_ALLGATHERV = 7,           /**< count from this rank; recv_counts, recv_displs */
  SUCL_KIND_ALLTOALL = 8,             /**< count elements between each pair */
  SUCL_KIND_ALLTOALLV = 9,            /**< send_counts, send_displs, recv_counts, recv_displs */
  SUCL_KIND_GATHER = 10,              /**< count elements from every rank to the root */
  SUCL_KIND_GATHERV = 11,  /**< count from this rank; recv_counts, recv_displs on the root */
  SUCL_KIND_SCATTER = 12,  /**< count elements from the root to every rank */
  SUCL_KIND_SCATTERV = 13, /**< send_counts, send_displs on the root; count to this rank */
  SUCL_KIND_SCAN = 14,     /**< count elements, inclusive prefix */
  SUCL_KIND_EXSCAN = 15,   /**< count elements, exclusive prefix; recv of rank 0 is untouched */
  SUCL_KIND_SEND = 16,     /**< count elements to rank `root` with `tag` */
  SUCL_KIND_RECV = 17,     /**< exactly count elements from rank `source` with `tag` */
  SUCL_KIND_SENDRECV = 18, /**< count to `root`, recv_count from `source`, same tag */
  SUCL_KIND_GROUP = 19,    /**< `parts`: sends and receives that progress together */
  SUCL_KIND_COUNT = 20     /**< number of kinds this header knows */
};

/** Element types. The pair types are laid out as MPI's: a value, then a 32-bit index. */
typedef int32_t sucl_type;
enum {
  SUCL_TYPE_BYTES = 0, /**< opaque elements of element_size bytes: moved, never reduced */
  SUCL_TYPE_INT8 = 1,
  SUCL_TYPE_UINT8 = 2,
  SUCL_TYPE_INT16 = 3,
  SUCL_TYPE_UINT16 = 4,
  SUCL_TYPE_INT32 = 5,
  SUCL_TYPE_UINT32 = 6,
  SUCL_TYPE_INT64 = 7,
  SUCL_TYPE_UINT64 = 8,
  SUCL_TYPE_FP16 = 9,  /**< IEEE 754 binary16 */
  SUCL_TYPE_BF16 = 10, /**< bfloat16 */
  SUCL_TYPE_FP32 = 11,
  SUCL_TYPE_FP64 = 12,
  SUCL_TYPE_COMPLEX_FP32 = 13,
  SUCL_TYPE_COMPLEX_FP64 = 14,
  SUCL_TYPE_INT16_LOC = 15, /**< {int16_t value; int32_t index;}, for minloc and maxloc */
  SUCL_TYPE_INT32_LOC = 16,
  SUCL_TYPE_INT64_LOC = 17,
  SUCL_TYPE_FP32_LOC = 18,
  SUCL_TYPE_FP64_LOC = 19,
  SUCL_TYPE_BOOL = 20,     /**< one byte; whatever is not 0 is true, results are 0 or 1 */
  SUCL_TYPE_FP8_E4M3 = 21, /**< OCP's e4m3: no infinities, the greatest number is 448 */
  SUCL_TYPE_FP8_E5M2 = 22, /**< OCP's e5m2 */
  SUCL_TYPE_COUNT = 23
};

/** Reduction operators. */
typedef int32_t sucl_op;
enum {
  SUCL_OP_NONE = 0,
  SUCL_OP_SUM = 1,
  SUCL_OP_PROD = 2,
  SUCL_OP_MIN = 3,
  SUCL_OP_MAX = 4,
  SUCL_OP_AVG = 5, /**< the sum divided by the number of ranks */
  SUCL_OP_LOGICAL_AND = 6,
  SUCL_OP_LOGICAL_OR = 7,
  SUCL_OP_LOGICAL_XOR = 8,
  SUCL_OP_BIT_AND = 9,
  SUCL_OP_BIT_OR = 10,
  SUCL_OP_BIT_XOR = 11,
  SUCL_OP_MINLOC = 12, /**< of equal values the lowest index wins */
  SUCL_OP_MAXLOC = 13,
  SUCL_OP_COUNT = 14
};

/** Kinds of memory a pointer may refer to. */
typedef int32_t sucl_memory;
enum {
  SUCL_MEMORY_SYSTEM = 0, /**< ordinary host memory */
  SUCL_MEMORY_HOST = 1,   /**< USM host allocation */
  SUCL_MEMORY_SHARED = 2, /**< USM shared allocation */
  SUCL_MEMORY_DEVICE = 3, /**< USM device allocation the host cannot read */
  SUCL_MEMORY_COUNT = 4
};

/** Flags of an operation. */
enum {
  /** The input is in recv (of gathers: at the rank's own block), as with MPI_IN_PLACE; send is
   * null.
   */
  SUCL_FLAG_IN_PLACE = 1u << 0,
  /** The caller waits anyway: post may complete the operation before it returns. A backend may
   * only use this where every rank of the operation is sure to have the flag. */
  SUCL_FLAG_MAY_BLOCK = 1u << 1
};

/** One operation, complete. Plain data: nothing here is owned. */
typedef struct sucl_operation {
  uint32_t struct_size;
  sucl_kind kind;
  sucl_type type;
  sucl_op op;
  uint32_t flags;
  int32_t root;          /**< root, or the peer that is sent to or addressed */
  int32_t source;        /**< the peer that is received from */
  int32_t tag;           /**< of a message; of a collective the core's own, not to be looked at */
  uint64_t element_size; /**< bytes of one element, for every type */
  uint64_t sequence;     /**< number of the operation on its communicator, from 1 */
  const void* send;
  void* recv;
  uint64_t count;
  uint64_t recv_count;
  const uint64_t* send_counts; /**< arrays of one entry a rank, in elements; null if unused */
  const uint64_t* send_displs;
  const uint64_t* recv_counts;
  const uint64_t* recv_displs;
  sucl_memory send_memory;
  sucl_memory recv_memory;
  void* stream; /**< native stream to order on, or null: ready now, completion by test */
  const struct sucl_operation* parts; /**< of a group */
  uint64_t part_count;
  uint64_t plan;       /**< the core's own: the number of a compiled plan */
  void* launch_target; /**< the core's own: the queue that a built-in backend launches on */
} sucl_operation;

typedef struct sucl_state sucl_state;               /**< a backend's own process-wide state */
typedef struct sucl_backend_comm sucl_backend_comm; /**< a backend's own communicator */
typedef struct sucl_request sucl_request;           /**< a backend's operation in flight */
typedef struct sucl_oob sucl_oob;                   /**< the core's out-of-band channel */
typedef struct sucl_oob_request sucl_oob_request;

/** Levels of the core's log. */
enum { SUCL_LOG_ERROR = 0, SUCL_LOG_WARN = 1, SUCL_LOG_INFO = 2, SUCL_LOG_DEBUG = 3 };

/** What the core provides to a backend. Valid until the backend's `close` has returned. */
typedef struct sucl_core {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  /** Writes a line to the log. */
  void (*log)(int32_t level, const char* component, const char* text);
  /** Keeps the details of an error for the caller of the function that now returns `status`;
   * `native_code` is the library's own code (0: none), `hint` may be null. Returns `status`. */
  sucl_status (*fail)(sucl_status status, int64_t native_code, const char* message,
                      const char* hint);
  /** Gathers `bytes` bytes from each rank of the communicator into `all`; blocks. Only inside
   * comm_create and memory_create, where every rank of the communicator is. */
  sucl_status (*oob_allgather)(sucl_oob* oob, const void* mine, void* all, uint64_t bytes);
  /** The same, started: test until `*done`, which frees the request. The memory must stay until
   * then. Every rank must start them in the same order. */
  sucl_status (*oob_allgather_start)(sucl_oob* oob, const void* mine, void* all, uint64_t bytes,
                                     sucl_oob_request** request);
  sucl_status (*oob_test)(sucl_oob* oob, sucl_oob_request* request, int32_t* done);
  /** For loops inside comm_create, memory_create and the control plane that wait for other ranks,
   * to be called again and again: SUCL_SUCCESS while it is worth waiting, otherwise, once a rank
   * has died or the timeout is over, the status to return, whose details are kept. Since 1.3. */
  sucl_status (*keep_waiting)(void);
} sucl_core;

/** One key and value of the backend's table in the configuration. */
typedef struct sucl_setting {
  const char* key;
  const char* value;
} sucl_setting;

/** A question to a backend: can it execute this natively? */
typedef struct sucl_query {
  uint32_t struct_size;
  sucl_kind kind;
  sucl_type type;
  sucl_op op;
  sucl_memory memory;
  uint32_t reserved;
  uint64_t element_size;
  const char* platform; /**< canonical name of the platform whose memory it is: that of this rank's
                           device, "host" without one; null: any. Since 1.2. */
} sucl_query;

/** Flags of an answer. */
enum {
  SUCL_CAP_STREAM_ORDERED = 1u << 0 /**< accepts a native stream in `stream` and orders on it */
};

/** A backend's answer. */
typedef struct sucl_capability {
  uint32_t struct_size;
  int32_t supported; /**< 0 or 1 */
  uint32_t flags;
  uint32_t reserved;
  uint64_t max_count; /**< most elements in any count of one operation; 0: no limit */
} sucl_capability;

/** A communicator, as the core describes it to a backend. */
typedef struct sucl_comm_info {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  int32_t local_rank; /**< rank among those on this node */
  int32_t local_size;
  int32_t node;              /**< index of this rank's node */
  int32_t nodes;             /**< number of nodes */
  uint32_t ranks_of_process; /**< ranks of this communicator in this process;
                                0: unknown to a core before 1.5 */
  uint64_t id;               /**< the same on every rank, unique in the job */
  const int32_t* node_of;    /**< one entry a rank */
  sucl_oob* oob;             /**< out-of-band channel of this communicator */
  const void* native_comm;   /**< the control plane's communicator (MPI: an MPI_Comm*), or null */
  const char* platform; /**< canonical platform name of this rank's device; "host" without one */
  void* native_device;  /**< native device handle, or null; of CUDA and HIP a pointer to the
                           device's number, an int */
  void* native_context; /**< native context handle, or null */
} sucl_comm_info;

/** Memory that the ranks of a communicator share: each has a part of its own, and reaches those of
 * its peers by load and store. Since 1.1. */
typedef struct sucl_region {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes;     /**< of this rank's part; those of others may have other sizes */
  void* base;         /**< of this rank's part */
  void* const* peers; /**< one entry a rank: where its part is here; null: out of reach */
  void* handle;       /**< the backend's own */
} sucl_region;

/** What a rank sends its peers of memory of its own, so that they can reach it. Since 1.1. */
typedef struct sucl_memory_key {
  unsigned char bytes[128];
} sucl_memory_key;

/**
 * A backend. All functions return SUCL_SUCCESS, or an error after calling `core->fail`.
 * `name` is the name that configuration files use.
 */
typedef struct sucl_backend {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  const char* name;
  const char* description; /**< one line: what it uses, and its version */
  /** Called once before anything else. Loads what the backend needs; the error that it returns
   * where that is missing is what users see, so it should say what to do. */
  sucl_status (*open)(const sucl_core* core, const sucl_setting* settings, uint64_t setting_count,
                      sucl_state** state);
  /** Called once, after every communicator is destroyed. */
  void (*close)(sucl_state* state);
  /** Answers from tables: cheap, no communication, the same on every rank. */
  sucl_status (*query)(sucl_state* state, const sucl_query* query, sucl_capability* answer);
  /** Collective over the communicator. */
  sucl_status (*comm_create)(sucl_state* state, const sucl_comm_info* info,
                             sucl_backend_comm** comm);
  /** Not collective; nothing is in flight, unless `abort` was called before. */
  void (*comm_destroy)(sucl_backend_comm* comm);
  /** Starts an operation. It comes in issue order on every rank, and its memory and arrays stay
   * valid until it is done. `*request` null on return: done already. */
  sucl_status (*post)(sucl_backend_comm* comm, const sucl_operation* operation,
                      sucl_request** request);
  /** Progresses; sets `*done` to 1 and frees the request once the operation is complete. On an
   * error the request is freed too. */
  sucl_status (*test)(sucl_backend_comm* comm, sucl_request* request, int32_t* done);
  /** Gives up everything in flight, because a peer is lost or late. The communicator will only be
   * destroyed. Must not block. */
  void (*abort)(sucl_backend_comm* comm);
  /* Since 1.1: sharing peer memory. Each may be null. They may be called while other functions of
   * the communicator are. */
  /** Makes memory of `bytes` bytes, which may differ between ranks, zeroed, on cache lines of its
   * own. Collective; a rank that cannot fails on all. The region and its table of peers stay until
   * memory_destroy. */
  sucl_status (*memory_create)(sucl_backend_comm* comm, uint64_t bytes, sucl_region* region);
  /** Not collective. What peers have of this rank's part stays theirs until they destroy it. */
  void (*memory_destroy)(sucl_backend_comm* comm, sucl_region* region);
  /** Describes any memory of this rank for memory_open of a peer. SUCL_ERROR_UNSUPPORTED where
   * memory of that kind cannot be mapped. */
  sucl_status (*memory_export)(sucl_backend_comm* comm, const void* address, uint64_t bytes,
                               sucl_memory memory, sucl_memory_key* key);
  /** Maps what `rank` has exported, and unmaps it. The address is that of the exported one. */
  sucl_status (*memory_open)(sucl_backend_comm* comm, int32_t rank, const sucl_memory_key* key,
                             void** address);
  void (*memory_close)(sucl_backend_comm* comm, int32_t rank, void* address);
  /** Copies from any memory of the process of `rank` that is not mapped, at its address there.
   * Blocks while it copies. SUCL_ERROR_UNSUPPORTED where the system does not allow it, also for no
   * bytes at all: that asks whether it does. */
  sucl_status (*memory_read)(sucl_backend_comm* comm, int32_t rank, void* to, uint64_t from,
                             uint64_t bytes);
} sucl_backend;

/** The one symbol of a backend. `core_major` and `core_minor` are the loading core's version;
 * a backend that cannot work with it may return null. The table lives as long as the library. */
typedef const sucl_backend* (*sucl_backend_entry_function)(uint32_t core_major,
                                                           uint32_t core_minor);
#define SUCL_BACKEND_ENTRY "sucl_backend_entry"

#ifdef __cplusplus
}
#endif
#endif
