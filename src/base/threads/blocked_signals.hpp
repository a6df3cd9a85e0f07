// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Threads that take no signals.
#pragma once

#include <sucl/export.hpp>

#include <csignal>

namespace sucl::base {

/// While it lives, the calling thread takes no signals that are sent to the process, nor do the
/// threads that it starts ever. A program may have its handlers run on certain threads, or wait in
/// sigwait() with its own threads' signals blocked: one that a thread of the library took would end
/// it. Faults of a thread itself are not blocked.
class SUCL_CORE_API blocked_signals {
 public:
  blocked_signals() noexcept;
  ~blocked_signals();
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

 private:
  sigset_t m_before;
};

}  // namespace sucl::base
