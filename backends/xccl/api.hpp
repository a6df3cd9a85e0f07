// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What is called of NCCL or RCCL, and of the device's own library below it: our own declarations,
/// so that no vendor header is needed. The names that they are looked up by are in library.cpp.
#pragma once

#include <cstddef>

namespace sucl::xccl {

struct native_comm;
using comm_handle = native_comm*;
struct native_window;
using window_handle = native_window*;
using stream_handle = void*;
using event_handle = void*;
using context_handle = void*;

struct unique_id {
  char bytes[128];
};

/// Results, element types and operators, with the numbers that both libraries have.
enum result : int {
  ok = 0,
  system_error = 2,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};
enum element : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};
enum operator_number : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

/// The first version that has everything below: bfloat16 and averages came with it.
inline constexpr int min_version = 21000;

/// Functions of libnccl or librccl.
struct library_api {
  int (*get_version)(int* version);
  int (*get_unique_id)(unique_id* id);
  int (*comm_init_rank)(comm_handle* comm, int size, unique_id id, int rank);
  int (*comm_destroy)(comm_handle comm);
  int (*comm_abort)(comm_handle comm);
  int (*comm_get_async_error)(comm_handle comm, int* error);
  const char* (*get_error_string)(int error);
  const char* (*get_last_error)(comm_handle comm);  ///< null in versions that lack it
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* send, void* recv, std::size_t count, int type, int op,
                    comm_handle comm, stream_handle stream);
  int (*broadcast)(const void* send, void* recv, std::size_t count, int type, int root,
                   comm_handle comm, stream_handle stream);
  int (*reduce)(const void* send, void* recv, std::size_t count, int type, int op, int root,
                comm_handle comm, stream_handle stream);
  int (*all_gather)(const void* send, void* recv, std::size_t count, int type, comm_handle comm,
                    stream_handle stream);
  int (*reduce_scatter)(const void* send, void* recv, std::size_t count, int type, int op,
                        comm_handle comm, stream_handle stream);
  int (*send)(const void* data, std::size_t count, int type, int peer, comm_handle comm,
              stream_handle stream);
  int (*recv)(void* data, std::size_t count, int type, int peer, comm_handle comm,
              stream_handle stream);
  // Memory that ranks map at the same offset of a window; null in versions that lack it.
  int (*mem_alloc)(void** memory, std::size_t bytes);
  int (*mem_free)(void* memory);
  int (*window_register)(comm_handle comm, void* memory, std::size_t bytes, window_handle* window,
                         int flags);
  int (*window_deregister)(comm_handle comm, window_handle window);
};

inline constexpr int symmetric_window = 1;

/// Functions of the CUDA driver or of HIP's runtime, which agree in their arguments.
struct device_api {
  int (*init)(unsigned flags);
  int (*retain_context)(context_handle* context, int device);
  int (*release_context)(int device);
  /// 16 bytes that no other device of any machine has; null in versions that lack it.
  int (*get_uuid)(unsigned char* uuid, int device);
  int (*push_context)(context_handle context);
  int (*pop_context)(context_handle* context);
  int (*allocate)(void** memory, std::size_t bytes);
  int (*free)(void* memory);
  int (*copy)(void* to, const void* from, std::size_t bytes, stream_handle stream);
  int (*create_stream)(stream_handle* stream, unsigned flags);
  int (*destroy_stream)(stream_handle stream);
  int (*synchronize)(stream_handle stream);
  int (*create_event)(event_handle* event, unsigned flags);
  int (*destroy_event)(event_handle event);
  int (*record_event)(event_handle event, stream_handle stream);
  int (*query_event)(event_handle event);
};

inline constexpr unsigned non_blocking_stream = 1;
inline constexpr unsigned event_without_timing = 2;
inline constexpr int device_ok = 0;
inline constexpr int device_not_ready = 600;  ///< an event that has not happened yet

}  // namespace sucl::xccl
