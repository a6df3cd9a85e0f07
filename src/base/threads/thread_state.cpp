// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/threads/thread_state.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace sucl::base {
namespace {

std::ifstream file_of(std::int32_t thread, const char* name) {
  return std::ifstream("/proc/self/task/" + std::to_string(thread) + "/" + name);
}

}  // namespace

std::int32_t this_thread_number() noexcept {
  thread_local const auto number = static_cast<std::int32_t>(syscall(SYS_gettid));
  return number;
}

std::string trace_of_thread(std::int32_t thread) {
  auto file = file_of(thread, "status");
  std::string trace, line;
  while (std::getline(file, line))
    if (line.compare(0, 6, "State:") == 0 || line.find("ctxt_switches:") != std::string::npos)
      trace += line + "\n";
  return trace;
}

bool sleeps(const std::string& trace) { return trace.find("(sleeping)") != std::string::npos; }

// The file has the number of the system call and its arguments. A wait with a limit is a pause.
bool waits_for_thread(std::int32_t thread) {
  auto file = file_of(thread, "syscall");
  long number = -1;
  std::string arguments[4];
  file >> number;
  for (std::string& a : arguments) file >> a;
  if (!file || number != SYS_futex) return false;
  const unsigned long operation = std::stoul(arguments[1], nullptr, 16) & FUTEX_CMD_MASK;
  const bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
  return waits && std::stoul(arguments[3], nullptr, 16) == 0;
}

std::chrono::nanoseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace sucl::base
