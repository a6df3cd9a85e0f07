// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/failed_exit.hpp"

#include "base/log.hpp"
#include "base/threads/blocked_signals.hpp"
#include "base/threads/thread_state.hpp"
#include "core/failure/peer_processes.hpp"
#include "core/support/forked.hpp"
#include "core/support/output.hpp"
#include "process/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_report = 500ms;
constexpr auto poll_interval = 1ms;

struct failed_runtimes {
  std::mutex mutex;
  std::vector<std::shared_ptr<peer_processes>> peers;
  bool registered = false;
};
// Never destroyed: it is looked at when all else is.
failed_runtimes& all_failed() {
  static auto* const those = new failed_runtimes;
  return *those;
}

bool some_report(const peer_processes& peers) {
  for (int r = 0; r < peers.size(); ++r)
    if (peers.is_reporting(r)) return true;
  return false;
}

void wait_for_reports() {
  if (forked()) return;
  hand_over_output();
  const std::lock_guard lock(all_failed().mutex);
  const auto& those = all_failed().peers;
  for (const auto& peers : those) peers->end_report();
  const auto end = std::chrono::steady_clock::now() + time_to_report;
  while (std::any_of(those.begin(), those.end(), [](const auto& p) { return some_report(*p); }) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(poll_interval);
}

}  // namespace

void exit_after_reports(std::shared_ptr<peer_processes> peers) {
  const std::lock_guard lock(all_failed().mutex);
  all_failed().peers.push_back(std::move(peers));
  if (std::exchange(all_failed().registered, true)) return;
  std::atexit(wait_for_reports);
}

namespace {

using clock = std::chrono::steady_clock;

// How long a thread may take, which the exit may wait for: where nothing can end the runtime any
// more, and where it may be ended yet.
constexpr auto longest_exit = 5s, longest_end = 20s;
constexpr auto exit_poll_interval = 100ms;

// No other rank waits for a process whose runtime the exit has ended: it may take its time.
void end_once_stuck(std::int32_t thread, int status, bool left) {
  const auto limit = clock::now() + (left ? longest_exit : longest_end);
  while (clock::now() < limit) {
    std::this_thread::sleep_for(exit_poll_interval);
    if (base::trace_of_thread(thread).empty()) return;
  }
  const char* const cure = "Return from main() instead, or have other threads tell main() to";
  if (!process::any_runs())
    return base::log(base::log_level::error, "runtime", "exit() has not ended after ",
                     std::chrono::seconds(longest_end).count(),
                     " s: it never does where it was called in a thread that the exit waits for, "
                     "such as one that executes a host task. ",
                     cure);
  process::leave_all(true);
  base::log(base::log_level::error, "runtime",
            "exit() does not end: it was called in a thread that the exit waits for, such as one "
            "that executes a host task. The process ends here. ",
            cure);
  hand_over_output();
  std::_Exit(status != 0 ? status : EXIT_FAILURE);
}

void begin_exit(int status, void*) {
  static std::atomic<bool> begun{false};
  if (forked() || begun.exchange(true)) return;
  const bool left = process::leave_all(false);
  const std::int32_t thread = base::this_thread_number();
  if (thread == getpid()) return;  // no other thread waits for that of main()
  try {
    const base::blocked_signals blocked;
    std::thread([=] { end_once_stuck(thread, status, left); }).detach();
  } catch (const std::system_error& e) {
    base::log(base::log_level::warn, "runtime", "the exit is not watched: ", e.what());
  }
}

// Before those of the program, so that it is called after them.
[[maybe_unused]] const int watches_end_of_exit = on_exit(
    [](int status, void*) {
      if (forked() || !process::leave_all(true) || status != 0) return;
      hand_over_output();
      std::_Exit(EXIT_FAILURE);
    },
    nullptr);

}  // namespace

void watch_exit() { on_exit(begin_exit, nullptr); }

bool is_on_stack(const void* object) noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  const auto* const at = static_cast<const char*>(object);
  const auto* const low = static_cast<const char*>(lowest);
  return known && at >= low && at < low + bytes;
}

}  // namespace sucl::core
