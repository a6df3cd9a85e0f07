// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Native streams of CUDA and HIP devices: what libsucl knows of a device that has them.
#pragma once

#include <sucl/sycl.hpp>
#ifndef SYCL_IMPLEMENTATION_ACPP
#include <sycl/ext/oneapi/backend/hip.hpp>
#endif

#include <chrono>
#include <mutex>
#include <optional>

namespace sucl::glue {

#ifndef SYCL_IMPLEMENTATION_ACPP
/// Whether this DPC++ lets a command put native work on its stream.
template <class Handler>
concept with_native_commands = requires(Handler& h, void (*f)(::sycl::interop_handle)) {
  h.ext_codeplay_enqueue_native_command(f);
};
#endif

/// Whether commands can be enqueued on native streams of this device.
bool has_native_streams(const ::sycl::device& d);

/// The device's number in the API of its vendor; only for devices with native streams.
int native_number(const ::sycl::device& d);

/// Keeps an eye on operations that are on streams, where the core does not see them. Any thread.
class stream_tracker {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// An operation was put on a stream, behind all the ones before it. The queue is the user's.
  void add(const ::sycl::event& done, const ::sycl::queue& queue);

  /// What the next operation must wait for if it goes to this queue; nothing if the queue itself
  /// sees to that.
  std::optional<::sycl::event> before(const ::sycl::queue& queue) const;

  /// Since when an operation has been seen unfinished.
  std::optional<time_point> pending_since();

  /// Returns when all are done.
  void drain() const;

 private:
  mutable std::mutex m_mutex;
  std::optional<::sycl::event> m_last;
  std::optional<::sycl::queue> m_queue;    ///< of the last one
  std::optional<::sycl::event> m_watched;  ///< an older one, not known to be done
  bool m_fresh = false;                    ///< the last one was added after the watched one
  time_point m_since;
};

}  // namespace sucl::glue
