// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/backoff.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sucl::sycl_layer {

/// Copies to the device that streams make once the operations of a communicator that they belong to
/// are done. Any thread.
class pending_copies {
 public:
  /// One that is done once the device has written `value` to a word of the host's memory. Later
  /// values of the word are larger, and wrap around.
  void add(std::uint32_t* word, std::uint32_t value) {
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_copies, [](const copy& c) { return c.is_done(); });
    m_copies.push_back({word, value});
  }
  /// Waits for those that were added before. `check` is called now and then, and throws if they
  /// will never be done.
  template <class Check>
  void wait(const Check& check) {
    std::vector<copy> all;
    {
      const std::lock_guard lock(m_mutex);
      all = m_copies;
    }
    using clock = std::chrono::steady_clock;
    core::backoff pause(0);
    auto next_check = clock::now() + between_checks;
    for (const copy& c : all)
      while (!c.is_done()) {
        pause.after(0);
        if (clock::now() < next_check) continue;
        check();
        next_check = clock::now() + between_checks;
      }
  }

 private:
  static constexpr std::chrono::milliseconds between_checks{10};
  struct copy {
    std::uint32_t* word;
    std::uint32_t value;

    bool is_done() const {
      const std::uint32_t now = std::atomic_ref(*word).load(std::memory_order_acquire);
      return static_cast<std::int32_t>(now - value) >= 0;
    }
  };

  std::mutex m_mutex;
  std::vector<copy> m_copies;
};

}  // namespace sucl::sycl_layer
