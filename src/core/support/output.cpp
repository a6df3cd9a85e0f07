// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/output.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// On Linux FIONREAD also works on the write end of a pipe.
bool is_unread(int descriptor) {
  struct stat kind{};
  int bytes = 0;
  return fstat(descriptor, &kind) == 0 && S_ISFIFO(kind.st_mode) &&
         ioctl(descriptor, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

void hand_over_output() noexcept {
  std::fflush(nullptr);
  const auto end = std::chrono::steady_clock::now() + 500ms;
  while ((is_unread(STDOUT_FILENO) || is_unread(STDERR_FILENO)) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
}

}  // namespace sucl::core
