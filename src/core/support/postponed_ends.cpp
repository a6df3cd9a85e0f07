// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/postponed_ends.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace sucl::core {

std::atomic<bool> any_postponed{false};

namespace {

thread_local bool this_thread_postpones = false;

struct postponed {
  std::mutex mutex;
  std::vector<std::function<void()>> ends;
};
postponed& all() {
  static auto& they = *new postponed;  // for threads that may outlive the end of this library
  return they;
}

}  // namespace

void postpone_ends_of_this_thread() noexcept { this_thread_postpones = true; }

void end_or_postpone(std::function<void()> end) {
  if (!this_thread_postpones) return end();
  const std::lock_guard lock(all().mutex);
  all().ends.push_back(std::move(end));
  any_postponed.store(true, std::memory_order_release);
}

void end_all_postponed() {
  if (this_thread_postpones) return;
  std::vector<std::function<void()>> mine;
  {
    const std::lock_guard lock(all().mutex);
    mine.swap(all().ends);
    any_postponed.store(false, std::memory_order_relaxed);
  }
  for (const auto& end : mine) end();
}

}  // namespace sucl::core
