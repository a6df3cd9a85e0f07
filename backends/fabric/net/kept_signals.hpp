// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What signals do in the program.
#pragma once

#include <signal.h>

#include <array>

namespace sucl::fabric {

/// Puts back, at its end, what each signal did at its beginning. Providers of libfabric are loaded
/// whether or not they are chosen, and some install handlers: that of PSM ends a crashed process by
/// exit(1), so that no launcher sees the signal, and destructors run in what is broken.
class kept_signals {
 public:
  kept_signals() {
    for (int s = 1; s < count; ++s)
      m_known[index(s)] = sigaction(s, nullptr, &m_actions[index(s)]) == 0;
  }
  ~kept_signals() {
    for (int s = 1; s < count; ++s)
      if (m_known[index(s)] && changed(s)) sigaction(s, &m_actions[index(s)], nullptr);
  }
  kept_signals(const kept_signals&) = delete;
  kept_signals& operator=(const kept_signals&) = delete;

 private:
  static constexpr int count = 32;  // without those of real time, whose numbers vary
  static std::size_t index(int s) { return static_cast<std::size_t>(s); }
  bool changed(int s) const {
    struct sigaction now{};
    const struct sigaction& before = m_actions[index(s)];
    return sigaction(s, nullptr, &now) == 0 &&
           (now.sa_handler != before.sa_handler || now.sa_flags != before.sa_flags);
  }

  std::array<struct sigaction, count> m_actions{};
  std::array<bool, count> m_known{};
};

}  // namespace sucl::fabric
