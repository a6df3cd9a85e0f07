// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/side_by_side.hpp"

#include "base/system/blocked_signals.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace sucl::core {

void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  enum class command { wait, begin, leave };
  std::atomic<command> command_sent{command::wait};
  std::vector<std::exception_ptr> thrown(count);
  const auto send = [&](command w) {
    command_sent = w;
    command_sent.notify_all();
  };
  std::vector<std::jthread> threads;
  try {
    const base::blocked_signals blocked;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        command_sent.wait(command::wait);
        if (command_sent == command::leave) return;
        try {
          work(i);
        } catch (...) {
          thrown[i] = std::current_exception();
        }
      });
  } catch (...) {
    send(command::leave);
    threads.clear();
    throw;
  }
  send(command::begin);
  threads.clear();
  for (const auto& e : thrown)
    if (e) std::rethrow_exception(e);
}

}  // namespace sucl::core
