// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/inspection/call_agreement.hpp"

#include "core/support/backoff.hpp"

#include <chrono>

namespace sucl::core {

bool call_agreement::is_reached() const {
  const std::uint64_t last = calls_made();
  return agreed() >= last &&
         (m_context.rank() != 0 || last == 0 || m_is_sent.load(std::memory_order_acquire));
}

void call_agreement::await() {
  constexpr auto longest = std::chrono::milliseconds(100);
  if (!compares() || m_queue.failed_or_ended()) return;
  m_is_awaited = true;
  const auto until = clock::now() + longest;
  backoff rest(m_context.owner->settings().progress.spin_us);
  while (!is_reached() && clock::now() < until && !m_context.backends.mismatched()) {
    m_context.owner->poll_now();
    m_context.owner->waiting();
    rest.after(0);
  }
}

}  // namespace sucl::core
