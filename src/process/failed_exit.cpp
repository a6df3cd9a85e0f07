// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/failed_exit.hpp"

#include "core/failure/peer_processes.hpp"
#include "core/support/forked.hpp"
#include "core/support/output.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
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

}  // namespace sucl::core
