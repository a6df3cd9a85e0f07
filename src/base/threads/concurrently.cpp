// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/threads/concurrently.hpp"

#include "base/threads/blocked_signals.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace sucl::base {
namespace {

// The parts, and what each has thrown.
class numbered_work {
 public:
  numbered_work(std::size_t count, const std::function<void(std::size_t)>& work)
      : m_work(work), m_thrown(count) {}

  void run(std::size_t i) noexcept {
    try {
      m_work(i);
    } catch (...) {
      m_thrown[i] = std::current_exception();
    }
  }

  void rethrow_first() const {
    for (const std::exception_ptr& e : m_thrown)
      if (e) std::rethrow_exception(e);
  }

 private:
  const std::function<void(std::size_t)>& m_work;
  std::vector<std::exception_ptr> m_thrown;
};

}  // namespace

void run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work) {
  enum class command { wait, begin, leave };
  std::atomic<command> command_sent{command::wait};
  numbered_work parts(count, work);
  const auto send = [&](command c) {
    command_sent = c;
    command_sent.notify_all();
  };
  std::vector<std::jthread> threads;
  try {
    const blocked_signals blocked;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        command_sent.wait(command::wait);
        if (command_sent == command::begin) parts.run(i);
      });
  } catch (...) {
    send(command::leave);
    threads.clear();
    throw;
  }
  send(command::begin);
  threads.clear();
  parts.rethrow_first();
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  const std::size_t limit = threads > 0 ? static_cast<std::size_t>(threads)
                                        : std::max(1u, std::thread::hardware_concurrency());
  numbered_work parts(count, work);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) parts.run(i);
  };
  std::vector<std::jthread> helpers;
  try {
    const blocked_signals blocked;
    while (helpers.size() + 1 < std::min(limit, count)) helpers.emplace_back(take);
  } catch (const std::system_error&) {  // no more threads: those that there are do the work
  }
  take();
  helpers.clear();
  parts.rethrow_first();
}

}  // namespace sucl::base
