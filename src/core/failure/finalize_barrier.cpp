// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/finalize_barrier.hpp"

#include "base/log.hpp"
#include "core/operation/agreement.hpp"

#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// A process that ends in good order has sent all that the others need before.
constexpr auto grace = 500ms;
constexpr auto pause = 1ms;
constexpr auto between_polls = 20ms;

}  // namespace

finalize_barrier::finalize_barrier(const sucl_bootstrap& control, sucl_group* everyone,
                                   std::shared_ptr<peer_processes> peers,
                                   std::chrono::nanoseconds timeout)
    : m_control(control),
      m_everyone(everyone),
      m_peers(std::move(peers)),
      m_timeout(timeout),
      m_rank(control.group_rank(everyone)),
      m_size(control.group_size(everyone)) {}

void finalize_barrier::leave() {
  const char left = 1;
  for (int r = 0; r < m_size; ++r)
    if (r != m_rank) m_control.notify(m_everyone, r, &left, sizeof left);
}

finalize_barrier::obstacle finalize_barrier::look(bool late) const {
  std::vector<int> stopped;
  for (int r = 0; r < m_size; ++r) {
    if (r == m_rank) continue;
    if (m_peers->has_ended(r)) {
      if (const auto why = m_peers->failure(r)) return {why->text};
      if (!m_peers->is_through(r)) return {"rank " + std::to_string(r) + " has died", true};
    } else if (late && m_peers->is_stopped(r)) {
      stopped.push_back(r);
    }
  }
  if (stopped.empty()) return {};
  return {ranks_text(stopped) + (stopped.size() == 1 ? " is stopped" : " are stopped"), true};
}

void finalize_barrier::warn_of_late() const {
  std::vector<int> late;
  for (int r = 0; r < m_size; ++r)
    if (r != m_rank && m_peers->is_near(r) && !m_peers->is_leaving(r)) late.push_back(r);
  if (!late.empty())
    base::log(base::log_level::warn, "runtime", "this rank has ended its work and waits for ",
              ranks_text(late));
}

finalize_barrier::obstacle finalize_barrier::wait() {
  // Static: given up, the exchange may still write to them.
  static char mine = 1;
  static std::vector<char> all;
  all.assign(static_cast<std::size_t>(m_size), 0);
  sucl_oob_request* request = nullptr;
  if (m_control.allgather_start(m_everyone, &mine, all.data(), 1, &request))
    return {"the control plane failed"};
  const auto begin = clock::now();
  auto looked = begin;
  bool warned = false;
  std::optional<clock::time_point> found_at;
  for (;;) {
    std::int32_t done = 0;
    if (m_control.test(m_everyone, request, &done)) return {"the control plane failed"};
    if (done) {
      m_control.group_free(m_everyone);
      return {};
    }
    char message = 0;
    std::int32_t source = -1;
    std::uint64_t bytes = 0;
    if (!m_control.poll(m_everyone, &source, &message, sizeof message, &bytes) && source >= 0) {
      const auto why = m_peers->failure(source);
      return {why ? why->text : "rank " + std::to_string(source) + " has left after an error"};
    }
    const auto now = clock::now();
    if (now - looked > between_polls) {
      looked = now;
      const bool late = now - begin > m_timeout;
      const obstacle found = look(late);
      if (!found.text.empty() && !found_at) found_at = now;
      if (!found.text.empty() && now - *found_at > grace) return found;
      if (late && !std::exchange(warned, true)) warn_of_late();
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace sucl::core
