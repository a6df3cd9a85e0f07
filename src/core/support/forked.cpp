// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/forked.hpp"

#include "base/error.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace sucl::core {

std::atomic<bool> forked_child{false};

namespace {

std::atomic<int> running{0};

// What the libraries registered for the end is for the process that they run in: their threads are
// not in the child, and some of them would be waited for.
void end_child(int status, void*) {
  std::fflush(nullptr);
  std::_Exit(status);
}

void begin_child() {
  if (running == 0) return;
  forked_child = true;
  on_exit(end_child, nullptr);
}

}  // namespace

void throw_forked() {
  base::fail(errc::shut_down,
             "this process was forked from one in which SuCL runs, and SuCL's objects belong to "
             "the process that made them",
             "Fork before sucl::runtime begins, or have the child start a program of its own");
}

void note_running(bool starts) {
  running += starts ? 1 : -1;
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, begin_child);
}

}  // namespace sucl::core
