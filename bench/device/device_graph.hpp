// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A CUDA graph, as a program without SYCL would make it of the calls of a library.
#pragma once

#include <functional>
#include <memory>

namespace sucl::bench {

/// What a function puts on a stream of a CUDA device, captured to be launched again and again.
/// Throws sucl::error where the driver fails.
class device_graph {
 public:
  /// Calls `issue` once; what it puts on `stream` is captured and not executed.
  device_graph(int device, void* stream, const std::function<void()>& issue);
  ~device_graph();
  device_graph(const device_graph&) = delete;
  device_graph& operator=(const device_graph&) = delete;

  void launch();  ///< puts all of it on the stream

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace sucl::bench
