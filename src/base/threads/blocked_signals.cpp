// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/threads/blocked_signals.hpp"

#include <initializer_list>

namespace sucl::base {

blocked_signals::blocked_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &m_before);
}

blocked_signals::~blocked_signals() { pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }

}  // namespace sucl::base
