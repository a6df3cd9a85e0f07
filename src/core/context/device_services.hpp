// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the device side of a communicator provides to it.
#pragma once

#include "core/exchange/topology.hpp"
#include "core/staging/scratch_pool.hpp"
#include "core/staging/staged_operation.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

namespace sucl::core {

class device_errors;
struct kernel_device;
struct hierarchical_queue;

/// What the device side of a communicator knows of operations that it has put on native streams:
/// for the core these are over once they are posted. Functions may be null.
struct stream_work {
  void* context = nullptr;
  /// Since when the oldest of them has been unfinished, as far as is known; nothing if none is.
  /// Never blocks.
  std::optional<std::chrono::steady_clock::time_point> (*pending_since)(void* context) = nullptr;
  /// How many of them were unfinished then.
  std::size_t (*unfinished)(void* context) = nullptr;
  /// Whether commands of the program stand before the oldest of them. Never blocks.
  bool (*is_held)(void* context) = nullptr;
  /// Returns when all of them are done.
  void (*drain)(void* context) = nullptr;
};

/// What the device side of a communicator provides to it.
struct device_services {
  /// Keeps what the others point to: a thread of the core may be the last to let go of the
  /// communicator.
  std::shared_ptr<void> owner;
  self_description self;
  device_copier* copier = nullptr;  ///< null if the host reads all device memory
  void* native_device = nullptr;
  void* native_context = nullptr;
  kernel_device* kernels = nullptr;            ///< null: the device runs no kernels of SuCL's
  hierarchical_queue* hierarchical = nullptr;  ///< null: the device has no native streams
  const device_errors* errors = nullptr;       ///< of a device with native streams
  stream_work streams;
  /// How to allocate host memory that the device reaches, for staging; null: ordinary memory.
  scratch_pool::allocate_function allocate = nullptr;
  scratch_pool::free_function free = nullptr;
  void* memory_context = nullptr;
};

}  // namespace sucl::core
