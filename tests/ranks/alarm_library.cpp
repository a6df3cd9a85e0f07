// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "alarm_library.hpp"

#include <atomic>
#include <csignal>

namespace sucl_test {
namespace {

std::atomic<sem_t*> g_which{nullptr};

void post(int /*number*/) { sem_post(g_which); }

}  // namespace

void post_at_alarm(sem_t* which) {
  g_which = which;
  std::signal(SIGALRM, post);
}

}  // namespace sucl_test
