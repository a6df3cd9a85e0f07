// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Errors of CUDA and HIP devices that are reported only on request: SYCL runtimes check
/// neither every launch nor, before they wait, whether a kernel has failed.
#pragma once

#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <optional>
#include <string>

namespace sucl::core {

/// Functions of the vendor, which agree in their arguments. Null where there are none.
struct device_error_functions {
  int (*take_last)() = nullptr;          ///< the last error of this thread's calls; forgets it
  const char* (*name)(int) = nullptr;    ///< of such an error
  int (*query_stream)(void*) = nullptr;  ///< whether all on it is done, or why it never will be
  int (*push_context)(void*) = nullptr;  ///< makes it the thread's
  int (*pop_context)(void**) = nullptr;  ///< and what was before
  int (*exchange_mode)(int*) = nullptr;  ///< what the thread may call while streams are captured
};

/// Queries one device. Any thread.
class SUCL_CORE_API device_errors {
 public:
  /// `context` and `stream`: of the device, with nothing on it.
  device_errors(const device_error_functions& functions, void* context, void* stream)
      : m_call(functions), m_context(context), m_stream(stream) {}

  /// That of a device of this process, made once and kept.
  static const device_errors& of(bool is_hip, int device);

  /// Before a launch: forgets what earlier calls of this thread have left, which may have been
  /// handled long ago; logs what an unchecked launch has left. Whether a kernel has
  /// failed.
  std::optional<error_info> clear() const;
  /// After a launch in this thread: why the kernel does not run.
  std::optional<error_info> launch() const;
  /// Whether a kernel of this process has failed, so that none will ever run again.
  std::optional<error_info> pending() const;

 private:
  error_info fault(int code) const;
  std::string text_of(int code) const;

  device_error_functions m_call;
  void* m_context;
  void* m_stream;
};

}  // namespace sucl::core
