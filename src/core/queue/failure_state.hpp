// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What has failed in a communicator, and which failures the program has seen.
#pragma once

#include <sucl/error.hpp>

#include <optional>
#include <utility>

namespace sucl::core {

/// Whether a communicator ends like this since the program, on this rank or another, wants it to,
/// which is no failure of any process.
inline bool is_asked_for(const error_info& why) { return why.code == errc::shut_down; }

/// Guarded by the communicator's mutex.
class failure_state {
 public:
  /// Why nothing works any more, once that is so; what the program has asked for counts as seen.
  const std::optional<error_info>& broken() const { return m_broken; }
  void end(const error_info& why, int rank) {
    m_broken = why;
    m_reported = is_asked_for(why);
    m_broken->rank = rank;
  }

  /// An asynchronous operation has failed, which the next call throws; of several, the first
  /// counts. `thrown`: a command has thrown it, so that SYCL reports it.
  void keep(const error_info& failure, bool thrown) {
    if (m_broken || m_pending) return;
    m_pending = failure;
    m_thrown = thrown;
  }
  /// Drops a failure that has the same message as the end of the communicator.
  void drop(errc code) {
    if (m_pending && m_pending->code == code) m_pending.reset();
  }

  /// Whether a call has something to throw.
  bool any() const { return m_broken || m_pending; }
  /// Throws it: the end every time, any other failure once. Only if there is any.
  [[noreturn]] void rethrow() {
    if (m_broken) {
      m_reported = true;
      throw error(*m_broken);
    }
    const error_info info = *std::exchange(m_pending, std::nullopt);
    throw error(info);
  }
  /// A call throws the end, or reports it in another way.
  void note_reported() { m_reported = m_reported || m_broken.has_value(); }

  /// What no call has thrown.
  std::optional<error_info> unreported() const {
    return m_broken && !m_reported ? m_broken : m_pending;
  }
  bool is_thrown() const { return !m_broken && m_pending && m_thrown; }

 private:
  std::optional<error_info> m_broken;
  bool m_reported = false;
  std::optional<error_info> m_pending;
  bool m_thrown = false;
};

}  // namespace sucl::core
