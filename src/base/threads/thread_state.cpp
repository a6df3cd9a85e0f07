// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/threads/thread_state.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace sucl::base {
namespace {

std::ifstream file_of(std::int32_t thread, const char* name) {
  return std::ifstream("/proc/self/task/" + std::to_string(thread) + "/" + name);
}

// The futex operation by which a thread waits without a limit: a wait with one is a pause. The file
// has the number of the system call and its arguments.
std::optional<unsigned long> waits_by(std::int32_t thread) {
  auto file = file_of(thread, "syscall");
  long number = -1;
  std::string arguments[4];
  file >> number;
  for (std::string& a : arguments) file >> a;
  if (!file || number != SYS_futex || std::stoul(arguments[3], nullptr, 16) != 0)
    return std::nullopt;
  const unsigned long operation = std::stoul(arguments[1], nullptr, 16);
  const unsigned long what = operation & FUTEX_CMD_MASK;
  return what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET ? std::optional(operation) : std::nullopt;
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

bool waits_for_thread(std::int32_t thread) { return waits_by(thread).has_value(); }

bool waits_for_own_thread(std::int32_t thread) {
  const auto operation = waits_by(thread);
  return operation && (*operation & FUTEX_PRIVATE_FLAG) != 0;
}

std::string name_of_thread(std::int32_t thread) {
  auto file = file_of(thread, "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

bool lives(std::int32_t thread) noexcept {
  return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

// The /proc of another namespace has other numbers.
std::vector<std::int32_t> threads_of_process() {
  std::vector<std::int32_t> all;
  std::error_code none;
  for (std::filesystem::directory_iterator at("/proc/self/task", none), end; !none && at != end;
       at.increment(none))
    all.push_back(std::stoi(at->path().filename().string()));
  const bool known = std::find(all.begin(), all.end(), this_thread_number()) != all.end();
  return none || !known ? std::vector<std::int32_t>() : all;
}

std::chrono::nanoseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace sucl::base
