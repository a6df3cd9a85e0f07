// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// CUDA's driver, found at run time, so that no header of it is needed.
#pragma once

#include "base/system/library.hpp"

namespace sucl::bench {

using cuda_handle = void*;

/// The primary context of a CUDA device. Throws sucl::error where there is no driver, or it fails;
/// `purpose` begins what the error says, and `cure` is what to do about it.
class cuda_context {
 public:
  cuda_context(int device, const char* purpose, const char* cure);
  ~cuda_context();
  cuda_context(const cuda_context&) = delete;
  cuda_context& operator=(const cuda_context&) = delete;

  template <class Function>
  Function find(const char* name) const {
    return m_library.symbol_as<Function>(name);
  }
  /// Throws if `code` is not 0; `what` has failed.
  void check(int code, const char* what) const;

  /// The calling thread is in the context as long as this lives. Where that fails, as at the end of
  /// the process, what is called next fails too, and says so.
  class here {
   public:
    explicit here(const cuda_context& context);
    ~here();
    here(const here&) = delete;
    here& operator=(const here&) = delete;

   private:
    const cuda_context& m_context;
    bool m_entered;
  };

 private:
  base::library m_library = base::library::open("libcuda.so.1");
  int (*m_retain)(cuda_handle*, int) = find<int (*)(cuda_handle*, int)>("cuDevicePrimaryCtxRetain");
  int (*m_release)(int) = find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  int (*m_push)(cuda_handle) = find<int (*)(cuda_handle)>("cuCtxPushCurrent_v2");
  int (*m_pop)(cuda_handle*) = find<int (*)(cuda_handle*)>("cuCtxPopCurrent_v2");
  const int m_device;
  const char* const m_purpose;
  const char* const m_cure;
  cuda_handle m_context = nullptr;
};

}  // namespace sucl::bench
