/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The part of MPI that SuCL uses, as the standard ABI of MPI 5.0 has it: what is built with this
 * works with every library that has that ABI. Values and layouts are those of the standard's
 * appendix "Standard ABI"; the declarations are SuCL's own.
 */
#ifndef SUCL_MPI_ABI_H
#define SUCL_MPI_ABI_H

#include <stdint.h>

#define SUCL_MPI_ABI 1 /**< this is not the header of a library */

#define MPI_VERSION 5
#define MPI_SUBVERSION 0

#ifdef __cplusplus
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Group* MPI_Group;
typedef struct MPI_ABI_Request* MPI_Request;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_Info* MPI_Info;
typedef struct MPI_ABI_Message* MPI_Message;
typedef struct MPI_ABI_File* MPI_File;

typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

/* A handle whose value the standard fixes. */
#define SUCL_MPI_HANDLE(type, value) ((type)(intptr_t)(value))

#define MPI_OP_NULL SUCL_MPI_HANDLE(MPI_Op, 0x20)
#define MPI_SUM SUCL_MPI_HANDLE(MPI_Op, 0x21)
#define MPI_MIN SUCL_MPI_HANDLE(MPI_Op, 0x22)
#define MPI_MAX SUCL_MPI_HANDLE(MPI_Op, 0x23)
#define MPI_PROD SUCL_MPI_HANDLE(MPI_Op, 0x24)
#define MPI_BAND SUCL_MPI_HANDLE(MPI_Op, 0x28)
#define MPI_BOR SUCL_MPI_HANDLE(MPI_Op, 0x29)
#define MPI_BXOR SUCL_MPI_HANDLE(MPI_Op, 0x2a)
#define MPI_LAND SUCL_MPI_HANDLE(MPI_Op, 0x30)
#define MPI_LOR SUCL_MPI_HANDLE(MPI_Op, 0x31)
#define MPI_LXOR SUCL_MPI_HANDLE(MPI_Op, 0x32)
#define MPI_MINLOC SUCL_MPI_HANDLE(MPI_Op, 0x38)
#define MPI_MAXLOC SUCL_MPI_HANDLE(MPI_Op, 0x39)

#define MPI_COMM_NULL SUCL_MPI_HANDLE(MPI_Comm, 0x100)
#define MPI_COMM_WORLD SUCL_MPI_HANDLE(MPI_Comm, 0x101)
#define MPI_COMM_SELF SUCL_MPI_HANDLE(MPI_Comm, 0x102)
#define MPI_GROUP_NULL SUCL_MPI_HANDLE(MPI_Group, 0x108)
#define MPI_FILE_NULL SUCL_MPI_HANDLE(MPI_File, 0x118)
#define MPI_INFO_NULL SUCL_MPI_HANDLE(MPI_Info, 0x130)
#define MPI_ERRHANDLER_NULL SUCL_MPI_HANDLE(MPI_Errhandler, 0x140)
#define MPI_ERRORS_ARE_FATAL SUCL_MPI_HANDLE(MPI_Errhandler, 0x141)
#define MPI_REQUEST_NULL SUCL_MPI_HANDLE(MPI_Request, 0x180)

#define MPI_DATATYPE_NULL SUCL_MPI_HANDLE(MPI_Datatype, 0x200)
#define MPI_AINT SUCL_MPI_HANDLE(MPI_Datatype, 0x201)
#define MPI_COUNT SUCL_MPI_HANDLE(MPI_Datatype, 0x202)
#define MPI_OFFSET SUCL_MPI_HANDLE(MPI_Datatype, 0x203)
#define MPI_PACKED SUCL_MPI_HANDLE(MPI_Datatype, 0x207)
#define MPI_SHORT SUCL_MPI_HANDLE(MPI_Datatype, 0x208)
#define MPI_INT SUCL_MPI_HANDLE(MPI_Datatype, 0x209)
#define MPI_LONG SUCL_MPI_HANDLE(MPI_Datatype, 0x20a)
#define MPI_LONG_LONG SUCL_MPI_HANDLE(MPI_Datatype, 0x20b)
#define MPI_UNSIGNED_SHORT SUCL_MPI_HANDLE(MPI_Datatype, 0x20c)
#define MPI_UNSIGNED SUCL_MPI_HANDLE(MPI_Datatype, 0x20d)
#define MPI_UNSIGNED_LONG SUCL_MPI_HANDLE(MPI_Datatype, 0x20e)
#define MPI_UNSIGNED_LONG_LONG SUCL_MPI_HANDLE(MPI_Datatype, 0x20f)
#define MPI_FLOAT SUCL_MPI_HANDLE(MPI_Datatype, 0x210)
#define MPI_C_FLOAT_COMPLEX SUCL_MPI_HANDLE(MPI_Datatype, 0x212)
#define MPI_DOUBLE SUCL_MPI_HANDLE(MPI_Datatype, 0x214)
#define MPI_C_DOUBLE_COMPLEX SUCL_MPI_HANDLE(MPI_Datatype, 0x216)
#define MPI_LOGICAL SUCL_MPI_HANDLE(MPI_Datatype, 0x218)
#define MPI_INTEGER SUCL_MPI_HANDLE(MPI_Datatype, 0x219)
#define MPI_REAL SUCL_MPI_HANDLE(MPI_Datatype, 0x21a)
#define MPI_COMPLEX SUCL_MPI_HANDLE(MPI_Datatype, 0x21b)
#define MPI_DOUBLE_PRECISION SUCL_MPI_HANDLE(MPI_Datatype, 0x21c)
#define MPI_DOUBLE_COMPLEX SUCL_MPI_HANDLE(MPI_Datatype, 0x21d)
#define MPI_CHARACTER SUCL_MPI_HANDLE(MPI_Datatype, 0x21e)
#define MPI_LONG_DOUBLE SUCL_MPI_HANDLE(MPI_Datatype, 0x220)
#define MPI_FLOAT_INT SUCL_MPI_HANDLE(MPI_Datatype, 0x228)
#define MPI_DOUBLE_INT SUCL_MPI_HANDLE(MPI_Datatype, 0x229)
#define MPI_LONG_INT SUCL_MPI_HANDLE(MPI_Datatype, 0x22a)
#define MPI_2INT SUCL_MPI_HANDLE(MPI_Datatype, 0x22b)
#define MPI_SHORT_INT SUCL_MPI_HANDLE(MPI_Datatype, 0x22c)
#define MPI_2INTEGER SUCL_MPI_HANDLE(MPI_Datatype, 0x232)
#define MPI_C_BOOL SUCL_MPI_HANDLE(MPI_Datatype, 0x238)
#define MPI_WCHAR SUCL_MPI_HANDLE(MPI_Datatype, 0x23c)
#define MPI_INT8_T SUCL_MPI_HANDLE(MPI_Datatype, 0x240)
#define MPI_UINT8_T SUCL_MPI_HANDLE(MPI_Datatype, 0x241)
#define MPI_CHAR SUCL_MPI_HANDLE(MPI_Datatype, 0x243)
#define MPI_SIGNED_CHAR SUCL_MPI_HANDLE(MPI_Datatype, 0x244)
#define MPI_UNSIGNED_CHAR SUCL_MPI_HANDLE(MPI_Datatype, 0x245)
#define MPI_BYTE SUCL_MPI_HANDLE(MPI_Datatype, 0x247)
#define MPI_INT16_T SUCL_MPI_HANDLE(MPI_Datatype, 0x248)
#define MPI_UINT16_T SUCL_MPI_HANDLE(MPI_Datatype, 0x249)
#define MPI_INT32_T SUCL_MPI_HANDLE(MPI_Datatype, 0x250)
#define MPI_UINT32_T SUCL_MPI_HANDLE(MPI_Datatype, 0x251)
#define MPI_INT64_T SUCL_MPI_HANDLE(MPI_Datatype, 0x258)
#define MPI_UINT64_T SUCL_MPI_HANDLE(MPI_Datatype, 0x259)
#define MPI_INTEGER1 SUCL_MPI_HANDLE(MPI_Datatype, 0x2c1)
#define MPI_INTEGER2 SUCL_MPI_HANDLE(MPI_Datatype, 0x2c9)
#define MPI_INTEGER4 SUCL_MPI_HANDLE(MPI_Datatype, 0x2d1)
#define MPI_REAL4 SUCL_MPI_HANDLE(MPI_Datatype, 0x2d2)
#define MPI_INTEGER8 SUCL_MPI_HANDLE(MPI_Datatype, 0x2d9)
#define MPI_REAL8 SUCL_MPI_HANDLE(MPI_Datatype, 0x2da)
#define MPI_COMPLEX8 SUCL_MPI_HANDLE(MPI_Datatype, 0x2db)
#define MPI_COMPLEX16 SUCL_MPI_HANDLE(MPI_Datatype, 0x2e3)

/* The names are the standard's. NOLINTBEGIN(readability-identifier-naming) */
enum {
  MPI_SUCCESS = 0,
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_COMM = 5,
  MPI_ERR_RANK = 6,
  MPI_ERR_REQUEST = 7,
  MPI_ERR_ROOT = 8,
  MPI_ERR_OP = 10,
  MPI_ERR_ARG = 13,
  MPI_ERR_UNKNOWN = 14,
  MPI_ERR_TRUNCATE = 15,
  MPI_ERR_OTHER = 16,
  MPI_ERR_INTERN = 17,
  MPI_ERR_PENDING = 18,
  MPI_ERR_IN_STATUS = 19,
  MPI_ERR_INFO = 34,
  MPI_ERR_NO_MEM = 39,
  MPI_ERR_PROC_ABORTED = 58
};

#define MPI_BOTTOM ((void*)0)
#define MPI_IN_PLACE ((void*)(intptr_t)1)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function*)0)

enum {
  MPI_MAX_ERROR_STRING = 512,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_PROC_NULL = -3,
  MPI_ROOT = -4,
  MPI_UNDEFINED = -32766,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1024,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE = 4096,
  MPI_COMBINER_NAMED = 101,
  MPI_COMBINER_DUP = 102,
  MPI_COMBINER_CONTIGUOUS = 103,
  MPI_COMBINER_F90_REAL = 113,
  MPI_COMBINER_F90_COMPLEX = 114,
  MPI_COMBINER_F90_INTEGER = 115,
  MPI_CART = 211,
  MPI_GRAPH = 212,
  MPI_DIST_GRAPH = 213,
  MPI_KEYVAL_INVALID = 0,
  MPI_TAG_UB = 501
};
/* NOLINTEND(readability-identifier-naming) */

typedef void MPI_User_function(void*, void*, int*, MPI_Datatype*);
typedef void MPI_User_function_c(void*, void*, MPI_Count*, MPI_Datatype*);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void*, void*, void*, int*);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void*, void*);
typedef void MPI_Comm_errhandler_function(MPI_Comm*, int*, ...);

/* A function and the one of the profiling interface. */
#ifndef SUCL_MPI
#define SUCL_MPI(name, ...)    \
  int MPI_##name(__VA_ARGS__); \
  int PMPI_##name(__VA_ARGS__);
#endif
/* The same with and without large counts: ARGS(Count, Displacement) are the parameters. */
#define SUCL_MPI_COUNTS(name, ARGS) \
  SUCL_MPI(name, ARGS(int, int))    \
  SUCL_MPI(name##_c, ARGS(MPI_Count, MPI_Aint))
/* The three forms of a collective. */
#define SUCL_MPI_COLLECTIVE(name, starting_name, ARGS)                 \
  SUCL_MPI_COUNTS(name, ARGS)                                          \
  SUCL_MPI(starting_name, ARGS(int, int), MPI_Request*)                \
  SUCL_MPI(starting_name##_c, ARGS(MPI_Count, MPI_Aint), MPI_Request*) \
  SUCL_MPI(name##_init, ARGS(int, int), MPI_Info, MPI_Request*)        \
  SUCL_MPI(name##_init_c, ARGS(MPI_Count, MPI_Aint), MPI_Info, MPI_Request*)

SUCL_MPI(Abi_get_version, int*, int*)
SUCL_MPI(Abort, MPI_Comm, int)
SUCL_MPI(Init, int*, char***)
SUCL_MPI(Init_thread, int*, char***, int, int*)
SUCL_MPI(Initialized, int*)
SUCL_MPI(Query_thread, int*)
SUCL_MPI(Finalize, void)
SUCL_MPI(Finalized, int*)
SUCL_MPI(Get_library_version, char*, int*)
SUCL_MPI(Error_class, int, int*)
SUCL_MPI(Error_string, int, char*, int*)

SUCL_MPI(Comm_call_errhandler, MPI_Comm, int)
SUCL_MPI(Comm_create, MPI_Comm, MPI_Group, MPI_Comm*)
SUCL_MPI(Comm_create_errhandler, MPI_Comm_errhandler_function*, MPI_Errhandler*)
SUCL_MPI(Comm_create_group, MPI_Comm, MPI_Group, int, MPI_Comm*)
SUCL_MPI(Comm_create_keyval, MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*,
         void*)
SUCL_MPI(Comm_dup, MPI_Comm, MPI_Comm*)
SUCL_MPI(Comm_disconnect, MPI_Comm*)
SUCL_MPI(Comm_free, MPI_Comm*)
SUCL_MPI(Comm_free_keyval, int*)
SUCL_MPI(Comm_get_attr, MPI_Comm, int, void*, int*)
SUCL_MPI(Comm_get_errhandler, MPI_Comm, MPI_Errhandler*)
SUCL_MPI(Comm_group, MPI_Comm, MPI_Group*)
SUCL_MPI(Comm_idup, MPI_Comm, MPI_Comm*, MPI_Request*)
SUCL_MPI(Comm_rank, MPI_Comm, int*)
SUCL_MPI(Comm_set_attr, MPI_Comm, int, void*)
SUCL_MPI(Comm_set_errhandler, MPI_Comm, MPI_Errhandler)
SUCL_MPI(Comm_size, MPI_Comm, int*)
SUCL_MPI(Comm_split, MPI_Comm, int, int, MPI_Comm*)
SUCL_MPI(Comm_test_inter, MPI_Comm, int*)
SUCL_MPI(Errhandler_free, MPI_Errhandler*)
SUCL_MPI(File_get_errhandler, MPI_File, MPI_Errhandler*)
SUCL_MPI(Group_free, MPI_Group*)
SUCL_MPI(Group_incl, MPI_Group, int, const int*, MPI_Group*)
SUCL_MPI(Group_size, MPI_Group, int*)
SUCL_MPI(Group_translate_ranks, MPI_Group, int, const int*, MPI_Group, int*)
SUCL_MPI(Topo_test, MPI_Comm, int*)
SUCL_MPI(Cartdim_get, MPI_Comm, int*)
SUCL_MPI(Cart_shift, MPI_Comm, int, int, int*, int*)
SUCL_MPI(Graph_neighbors_count, MPI_Comm, int, int*)
SUCL_MPI(Graph_neighbors, MPI_Comm, int, int, int*)
SUCL_MPI(Dist_graph_neighbors_count, MPI_Comm, int*, int*, int*)
SUCL_MPI(Dist_graph_neighbors, MPI_Comm, int, int*, int*, int, int*, int*)

SUCL_MPI(Op_create, MPI_User_function*, int, MPI_Op*)
SUCL_MPI(Op_create_c, MPI_User_function_c*, int, MPI_Op*)
SUCL_MPI(Op_free, MPI_Op*)
SUCL_MPI(Op_commutative, MPI_Op, int*)
SUCL_MPI(Reduce_local, const void*, void*, int, MPI_Datatype, MPI_Op)

#define SUCL_MPI_ARGS(C, D) C, MPI_Datatype, MPI_Datatype*
SUCL_MPI_COUNTS(Type_contiguous, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
SUCL_MPI(Type_commit, MPI_Datatype*)
SUCL_MPI(Type_create_struct, int, const int*, const MPI_Aint*, const MPI_Datatype*, MPI_Datatype*)
SUCL_MPI(Type_create_resized, MPI_Datatype, MPI_Aint, MPI_Aint, MPI_Datatype*)
SUCL_MPI(Type_dup, MPI_Datatype, MPI_Datatype*)
SUCL_MPI(Type_free, MPI_Datatype*)
SUCL_MPI(Type_get_contents, MPI_Datatype, int, int, int, int*, MPI_Aint*, MPI_Datatype*)
SUCL_MPI(Type_get_contents_c, MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*,
         MPI_Aint*, MPI_Count*, MPI_Datatype*)
SUCL_MPI(Type_get_envelope, MPI_Datatype, int*, int*, int*, int*)
SUCL_MPI(Type_get_envelope_c, MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*)
SUCL_MPI(Type_get_extent, MPI_Datatype, MPI_Aint*, MPI_Aint*)
SUCL_MPI(Type_get_true_extent, MPI_Datatype, MPI_Aint*, MPI_Aint*)
SUCL_MPI(Type_size, MPI_Datatype, int*)
SUCL_MPI(Type_size_c, MPI_Datatype, MPI_Count*)
SUCL_MPI(Type_size_x, MPI_Datatype, MPI_Count*)
SUCL_MPI(Pack, const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm)
SUCL_MPI(Pack_c, const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*, MPI_Comm)
SUCL_MPI(Unpack, const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm)
SUCL_MPI(Unpack_c, const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype, MPI_Comm)

#define SUCL_MPI_ARGS(C, D) const void*, C, MPI_Datatype, int, int, MPI_Comm
SUCL_MPI_COUNTS(Send, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, C, MPI_Datatype, int, int, MPI_Comm, MPI_Request*
SUCL_MPI_COUNTS(Isend, SUCL_MPI_ARGS)
SUCL_MPI_COUNTS(Send_init, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) void*, C, MPI_Datatype, int, int, MPI_Comm, MPI_Status*
SUCL_MPI_COUNTS(Recv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) void*, C, MPI_Datatype, int, int, MPI_Comm, MPI_Request*
SUCL_MPI_COUNTS(Irecv, SUCL_MPI_ARGS)
SUCL_MPI_COUNTS(Recv_init, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) \
  const void*, C, MPI_Datatype, int, int, void*, C, MPI_Datatype, int, int, MPI_Comm, MPI_Status*
SUCL_MPI_COUNTS(Sendrecv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) void*, C, MPI_Datatype, MPI_Message*, MPI_Request*
SUCL_MPI_COUNTS(Imrecv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const MPI_Status*, MPI_Datatype, C*
SUCL_MPI_COUNTS(Get_count, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
SUCL_MPI(Get_elements_x, const MPI_Status*, MPI_Datatype, MPI_Count*)
SUCL_MPI(Improbe, int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*)
SUCL_MPI(Iprobe, int, int, MPI_Comm, int*, MPI_Status*)

SUCL_MPI(Start, MPI_Request*)
SUCL_MPI(Startall, int, MPI_Request*)
SUCL_MPI(Cancel, MPI_Request*)
SUCL_MPI(Test_cancelled, const MPI_Status*, int*)
SUCL_MPI(Request_free, MPI_Request*)
SUCL_MPI(Request_get_status, MPI_Request, int*, MPI_Status*)
SUCL_MPI(Request_get_status_all, int, const MPI_Request*, int*, MPI_Status*)
SUCL_MPI(Request_get_status_any, int, const MPI_Request*, int*, int*, MPI_Status*)
SUCL_MPI(Request_get_status_some, int, const MPI_Request*, int*, int*, MPI_Status*)
SUCL_MPI(Wait, MPI_Request*, MPI_Status*)
SUCL_MPI(Waitall, int, MPI_Request*, MPI_Status*)
SUCL_MPI(Waitany, int, MPI_Request*, int*, MPI_Status*)
SUCL_MPI(Waitsome, int, MPI_Request*, int*, int*, MPI_Status*)
SUCL_MPI(Test, MPI_Request*, int*, MPI_Status*)
SUCL_MPI(Testall, int, MPI_Request*, int*, MPI_Status*)
SUCL_MPI(Testany, int, MPI_Request*, int*, int*, MPI_Status*)
SUCL_MPI(Testsome, int, MPI_Request*, int*, int*, MPI_Status*)

SUCL_MPI(Barrier, MPI_Comm)
SUCL_MPI(Ibarrier, MPI_Comm, MPI_Request*)
SUCL_MPI(Barrier_init, MPI_Comm, MPI_Info, MPI_Request*)
#define SUCL_MPI_ARGS(C, D) void*, C, MPI_Datatype, int, MPI_Comm
SUCL_MPI_COLLECTIVE(Bcast, Ibcast, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, void*, C, MPI_Datatype, MPI_Op, MPI_Comm
SUCL_MPI_COLLECTIVE(Allreduce, Iallreduce, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Scan, Iscan, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Exscan, Iexscan, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, void*, C, MPI_Datatype, MPI_Op, int, MPI_Comm
SUCL_MPI_COLLECTIVE(Reduce, Ireduce, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, void*, const C*, MPI_Datatype, MPI_Op, MPI_Comm
SUCL_MPI_COLLECTIVE(Reduce_scatter, Ireduce_scatter, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, C, MPI_Datatype, void*, C, MPI_Datatype, MPI_Comm
SUCL_MPI_COLLECTIVE(Allgather, Iallgather, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Alltoall, Ialltoall, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) const void*, C, MPI_Datatype, void*, C, MPI_Datatype, int, MPI_Comm
SUCL_MPI_COLLECTIVE(Gather, Igather, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Scatter, Iscatter, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) \
  const void*, C, MPI_Datatype, void*, const C*, const D*, MPI_Datatype, MPI_Comm
SUCL_MPI_COLLECTIVE(Allgatherv, Iallgatherv, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) \
  const void*, C, MPI_Datatype, void*, const C*, const D*, MPI_Datatype, int, MPI_Comm
SUCL_MPI_COLLECTIVE(Gatherv, Igatherv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) \
  const void*, const C*, const D*, MPI_Datatype, void*, C, MPI_Datatype, int, MPI_Comm
SUCL_MPI_COLLECTIVE(Scatterv, Iscatterv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D) \
  const void*, const C*, const D*, MPI_Datatype, void*, const C*, const D*, MPI_Datatype, MPI_Comm
SUCL_MPI_COLLECTIVE(Alltoallv, Ialltoallv, SUCL_MPI_ARGS)
SUCL_MPI_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
#define SUCL_MPI_ARGS(C, D)                                                        \
  const void*, const C*, const D*, const MPI_Datatype*, void*, const C*, const D*, \
      const MPI_Datatype*, MPI_Comm
SUCL_MPI_COLLECTIVE(Alltoallw, Ialltoallw, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS
/* Displacements of these are addresses in both. */
#define SUCL_MPI_ARGS(C, D)                                                                      \
  const void*, const C*, const MPI_Aint*, const MPI_Datatype*, void*, const C*, const MPI_Aint*, \
      const MPI_Datatype*, MPI_Comm
SUCL_MPI_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, SUCL_MPI_ARGS)
#undef SUCL_MPI_ARGS

#undef SUCL_MPI_COLLECTIVE
#undef SUCL_MPI_COUNTS
#undef SUCL_MPI

/* Libraries made before the standard was final have this handler and MPI_ERRORS_ABORT the other way
 * round (Intel MPI 2021.18). Files have it by default, so the library can be asked. */
static inline MPI_Errhandler sucl_mpi_errors_return(void) {
  static MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  MPI_Errhandler of_files = MPI_ERRHANDLER_NULL;
  if (found != MPI_ERRHANDLER_NULL) return found;
  if (PMPI_File_get_errhandler(MPI_FILE_NULL, &of_files) == MPI_SUCCESS &&
      of_files == SUCL_MPI_HANDLE(MPI_Errhandler, 0x142))
    return found = of_files;
  return found = SUCL_MPI_HANDLE(MPI_Errhandler, 0x143);
}
#define MPI_ERRORS_RETURN sucl_mpi_errors_return()

#ifdef __cplusplus
}
#endif
#endif
