// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/inspection/late_ranks.hpp"

#include <utility>

namespace sucl::core {

std::string late_ranks::ask(std::chrono::milliseconds time) {
  if (m_context.size() == 1 || !m_context.watched()) return {};
  const std::lock_guard one(m_one);
  std::unique_lock lock(m_mutex);
  m_answer.reset();
  m_is_asked = true;
  m_context.owner->poll_now();
  m_answered.wait_for(lock, time, [&] { return m_answer.has_value(); });
  m_is_asked = false;
  return m_answer.value_or("");
}

void late_ranks::answer(std::string text) {
  const std::lock_guard lock(m_mutex);
  m_answer = std::move(text);
  m_is_asked = false;
  m_answered.notify_all();
}

}  // namespace sucl::core
