// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which ranks an operation waits for, for a thread that asks.
#pragma once

#include "core/context/communicator_context.hpp"

#include <sucl/export.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

namespace sucl::core {

/// Hands the question of a thread to the watchdog, and the watchdog's answer back.
class SUCL_CORE_API late_ranks {
 public:
  /// It must outlive this object.
  explicit late_ranks(communicator_context& c) : m_context(c) {}

  /// Whom the oldest operation in flight waits for, as "rank 1 has not arrived", by what the other
  /// ranks answer; empty where there is no watchdog, nothing is in flight, or nothing is known
  /// within `time`. The operation goes on. Any thread but those of SuCL; one at a time, so others
  /// wait.
  std::string ask(std::chrono::milliseconds time);

  /// For the watchdog: whether a thread asks.
  bool is_asked() const { return m_is_asked; }
  /// For the watchdog: the answer.
  void answer(std::string text);

 private:
  communicator_context& m_context;
  std::mutex m_one;  ///< thread asks at a time
  std::mutex m_mutex;
  std::condition_variable m_answered;
  std::optional<std::string> m_answer;
  std::atomic<bool> m_is_asked{false};
};

}  // namespace sucl::core
