// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/finalize_barrier.hpp"

#include "base/log.hpp"
#include "core/operation/argument_comparison.hpp"

#include <deque>
#include <mutex>
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

// What it writes to. Never destroyed: given up, it may still do so.
struct finalize_barrier::exchange {
  call_checksum own;
  std::vector<call_checksum> all;
  sucl_oob_request* request = nullptr;

  static exchange* make(const call_checksum& own, int size) {
    static auto* const those = new std::deque<exchange>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    return &those->emplace_back(
        exchange{own, std::vector<call_checksum>(static_cast<std::size_t>(size))});
  }
};

finalize_barrier::finalize_barrier(const sucl_bootstrap& control, sucl_group* everyone,
                                   std::shared_ptr<peer_processes> peers,
                                   std::chrono::nanoseconds timeout, std::chrono::nanoseconds limit)
    : m_control(control),
      m_everyone(everyone),
      m_peers(std::move(peers)),
      m_timeout(timeout),
      m_limit(limit),
      m_rank(control.group_rank(everyone)),
      m_size(control.group_size(everyone)) {}

void finalize_barrier::leave() {
  const char left = 1;
  for (int r = 0; r < m_size; ++r)
    if (r != m_rank) m_control.notify(m_everyone, r, &left, sizeof left);
}

finalize_barrier::outcome finalize_barrier::poll_members(bool late) const {
  std::vector<int> stopped;
  for (int r = 0; r < m_size; ++r) {
    if (r == m_rank) continue;
    if (m_peers->has_ended(r)) {
      if (const auto why = m_peers->failure(r)) return {why->text};
      if (!m_peers->has_finalized(r)) return {"rank " + std::to_string(r) + " has died", true};
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

void finalize_barrier::start(const call_checksum& mine) {
  m_peers->show(mine);
  exchange* const e = exchange::make(mine, m_size);
  if (!m_control.allgather_start(m_everyone, &e->own, e->all.data(), sizeof e->own, &e->request))
    m_exchange = e;
}

finalize_barrier::outcome finalize_barrier::wait() {
  outcome found = wait_for_all();
  if (m_limit.count() == 0) return found;
  // The control plane ends without the others, which may have ended already.
  found.obstacle.clear();
  found.over_limit = found.all.empty();
  if (found.over_limit) found.all = m_peers->checksums();
  return found;
}

finalize_barrier::outcome finalize_barrier::wait_for_all() {
  if (!m_exchange) return {"the control plane failed"};
  const auto begin = clock::now();
  auto last_poll = begin;
  bool warned = false;
  std::optional<clock::time_point> found_at;
  for (;;) {
    std::int32_t done = 0;
    if (m_control.test(m_everyone, m_exchange->request, &done)) return {"the control plane failed"};
    if (done) return {{}, false, std::move(m_exchange->all), false};
    char message = 0;
    std::int32_t source = -1;
    std::uint64_t bytes = 0;
    if (!m_control.poll(m_everyone, &source, &message, sizeof message, &bytes) && source >= 0) {
      const auto why = m_peers->failure(source);
      return {why ? why->text : "rank " + std::to_string(source) + " has left after an error"};
    }
    const auto now = clock::now();
    if (m_limit.count() > 0 && now - begin > m_limit) return {};
    if (now - last_poll > between_polls) {
      last_poll = now;
      const bool late = m_timeout.count() > 0 && now - begin > m_timeout;
      const outcome found = poll_members(late);
      if (!found.obstacle.empty() && !found_at) found_at = now;
      if (!found.obstacle.empty() && now - *found_at > grace) return found;
      if (late && !std::exchange(warned, true)) warn_of_late();
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace sucl::core
