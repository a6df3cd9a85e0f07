// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/side_by_side.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace sucl::core {

void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  enum class word { wait, begin, leave };
  std::atomic<word> said{word::wait};
  std::vector<std::exception_ptr> thrown(count);
  const auto say = [&](word w) {
    said = w;
    said.notify_all();
  };
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        said.wait(word::wait);
        if (said == word::leave) return;
        try {
          work(i);
        } catch (...) {
          thrown[i] = std::current_exception();
        }
      });
  } catch (...) {
    say(word::leave);
    threads.clear();
    throw;
  }
  say(word::begin);
  threads.clear();
  for (const auto& e : thrown)
    if (e) std::rethrow_exception(e);
}

}  // namespace sucl::core
