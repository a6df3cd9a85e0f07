// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tracer.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>

namespace sucl::ipc {
namespace {

// The parent that /proc says a process has; 0 if it says nothing.
std::int32_t parent_of(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name stands in brackets, and may hold any character: the last bracket ends it.
  const auto end = text.rfind(')');
  constexpr std::size_t to_parent = 4;  // ") S "
  if (end == std::string::npos || end + to_parent >= text.size()) return 0;
  return static_cast<std::int32_t>(std::strtol(text.c_str() + end + to_parent, nullptr, 10));
}

bool has(const ancestry& list, std::int32_t pid) {
  return std::find(list.begin(), list.end(), pid) != list.end();
}

}  // namespace

ancestry own_ancestry() {
  ancestry own{};
  std::int32_t pid = getpid();
  for (auto& slot : own) {
    if (pid <= 1) break;
    slot = pid;
    pid = parent_of(pid);
  }
  return own;
}

std::int32_t tracer_of(const std::vector<ancestry>& peers) {
  if (peers.empty()) return 0;
  for (const std::int32_t pid : peers.front()) {
    if (pid == 0) break;
    if (std::all_of(peers.begin(), peers.end(), [&](const ancestry& p) { return has(p, pid); }))
      return pid;
  }
  return 0;
}

void allow_reading(const std::vector<ancestry>& peers) {
#ifdef PR_SET_PTRACER
  static std::mutex mutex;
  static auto& allowed = *new std::vector<ancestry>;
  const std::lock_guard lock(mutex);
  for (const ancestry& p : peers)
    if (std::find(allowed.begin(), allowed.end(), p) == allowed.end()) allowed.push_back(p);
  if (const std::int32_t pid = tracer_of(allowed))
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(pid), 0, 0, 0);
#endif
}

}  // namespace sucl::ipc
