// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backend's objects.
#pragma once

#include "library.hpp"
#include "types.hpp"

#include <sucl/abi/backend.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sucl::xccl {

/// Communicators that are being ended, each by a thread of its own: the library may wait for other
/// ranks there, and these may end theirs in another order.
struct endings {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
};

}  // namespace sucl::xccl

struct sucl_state {
  const sucl_core* core = nullptr;
  const sucl::xccl::vendor* from = nullptr;
  sucl::xccl::loaded library;
  sucl::xccl::preferences wanted;
  std::shared_ptr<sucl::xccl::endings> ending = std::make_shared<sucl::xccl::endings>();
};

namespace sucl::xccl {

/// Device memory for what cannot be done in place, for the operations on one stream. The library
/// orders its own work across streams, but not copies beside it.
struct stream_scratch {
  stream_handle stream = nullptr;
  void* memory = nullptr;
  std::size_t capacity = 0;
};

}  // namespace sucl::xccl

/// An operation on the communicator's own stream.
struct sucl_request {
  sucl::xccl::event_handle event = nullptr;
};

struct sucl_backend_comm {
  sucl_state* state = nullptr;
  int rank = 0;
  int size = 1;
  int device = 0;
  sucl::xccl::context_handle context = nullptr;
  /// Null until an operation comes that the library executes: it takes hundreds of MiB, and longer
  /// than all the rest of a communicator.
  sucl::xccl::comm_handle native = nullptr;
  sucl_oob* oob = nullptr;
  std::atomic<bool> given_up{false};
  /// For operations that come without a stream.
  sucl::xccl::stream_handle stream = nullptr;
  std::vector<std::unique_ptr<sucl_request>> requests;
  std::vector<sucl_request*> unused;
  std::vector<sucl::xccl::stream_scratch> scratch;
  /// Of all scratch memory. What was outgrown is kept, because work that was issued before may
  /// still use it.
  std::vector<void*> memory;
};

namespace sucl::xccl {

/// Makes the communicator's device the calling thread's, and at the end what it was before.
class on_device {
 public:
  on_device(const device_api& device, context_handle context) : m_device(device) {
    m_device.push_context(context);
  }
  ~on_device() {
    context_handle mine = nullptr;
    m_device.pop_context(&mine);
  }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;

 private:
  const device_api& m_device;
};

/// Keeps the details of a failed call of the library.
sucl_status failed(const sucl_backend_comm& comm, int result, const char* call);
/// The same for the device's own library.
sucl_status device_failed(const sucl_backend_comm& comm, int result, const char* call);

/// Makes the library's communicator, on the first call. Collective: every rank gets here with the
/// same operation, because it is chosen alike which backend executes that.
sucl_status connect(sucl_backend_comm& comm);

/// Enqueues an operation on a stream.
sucl_status enqueue(sucl_backend_comm& comm, const sucl_operation& o, stream_handle stream);

}  // namespace sucl::xccl
