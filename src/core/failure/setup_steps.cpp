// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/setup_steps.hpp"

#include "base/log.hpp"
#include "base/threads/blocked_signals.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/support/forked.hpp"
#include "core/support/output.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto between_checks = 2ms;
// A rank that leaves in good order has sent all that others wait for; it may not have arrived yet.
constexpr auto grace_time = 500ms;
// A thread that has not polled for so long is inside a call that cannot be cancelled.
constexpr auto poll_timeout = 500ms;
constexpr auto presence_after_failure = 1500ms;
// Ranks that have all arrived may have much to do, such as compiling kernels.
constexpr auto wait_for_present_ranks = 120s;

thread_local setup_step* t_current = nullptr;

std::string have(const std::vector<int>& ranks, const char* one, const char* several) {
  return ranks_text(ranks) + (ranks.size() == 1 ? one : several);
}

std::string in_seconds(std::chrono::nanoseconds t) {
  return std::to_string(std::chrono::duration<double>(t).count()).substr(0, 5) + " s";
}

}  // namespace

setup_steps::~setup_steps() {
  {
    const std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_changed.notify_all();
  if (m_thread.joinable()) m_thread.join();
}

void setup_steps::begin(std::chrono::nanoseconds timeout, std::function<void()> given_up) {
  m_timeout = timeout;
  m_given_up = std::move(given_up);
  if (timeout.count() == 0) return;
  m_presence = std::make_unique<presence>();
  const base::blocked_signals blocked;
  m_thread = std::thread([this] { watch(); });
  pthread_setname_np(m_thread.native_handle(), "sucl-setup");
}

// The steps that are going on then are those of the start, which all ranks take.
void setup_steps::set_peers(std::shared_ptr<peer_processes> peers) {
  const std::lock_guard lock(m_mutex);
  m_peers = std::move(peers);
  for (setup_step* s : m_steps) {
    s->m_line = m_peers->enter(s->m_label);
    for (int r = 0; r < m_peers->size(); ++r) s->m_members.push_back(r);
  }
}

void setup_steps::add(setup_step& s) {
  {
    const std::lock_guard lock(m_mutex);
    m_steps.push_back(&s);
    // Steps with the same label are numbered, so that a failure of one is not taken for another.
    auto& begun = s.m_begun ? *s.m_begun : m_begun;
    const auto before = s.m_members.empty() ? 0 : begun[s.m_label]++;
    s.m_number = before + 1;
    if (before > 0) s.m_label += " (#" + std::to_string(before + 1) + ")";
    if (m_peers) s.m_line = m_peers->enter(s.m_label);
  }
  if (m_timeout.count() > 0) m_changed.notify_all();
}

std::vector<setup_steps::long_wait> setup_steps::waits_since(clock::time_point since) const {
  std::vector<long_wait> found;
  const std::lock_guard lock(m_mutex);
  for (const setup_step* s : m_steps)
    if (!s->m_begun && !s->m_members.empty() && s->m_may_leave == may_leave::none && !s->m_paused &&
        s->m_since.load() <= since)
      found.push_back({s->m_what, s->m_number, s->m_members, s->m_label});
  return found;
}

std::uint64_t setup_steps::begun(const std::string& what) const {
  const std::lock_guard lock(m_mutex);
  const auto known = m_begun.find(what);
  return known == m_begun.end() ? 0 : known->second;
}

void setup_steps::remove(setup_step& s) {
  const std::lock_guard lock(m_mutex);
  m_steps.erase(std::find(m_steps.begin(), m_steps.end(), &s));
  if (m_peers) m_peers->exit(s.m_line);
}

// Why waiting in this step is useless; nothing while it is not.
std::optional<diagnosis> setup_steps::diagnose(setup_step& s, clock::time_point now) const {
  if (!m_peers) return diagnose_late(s, now);
  const std::string what = s.m_label + " cannot be done: ";
  peer_processes::departures gone;
  if (s.m_may_leave == may_leave::any) return diagnose_late(s, now);
  if (s.m_may_leave == may_leave::finalized) {
    gone.died = died_in_finalize(s);
  } else {
    // A process that has ended may not belong to a step whose members are unknown.
    gone = m_peers->gone(s.m_members);
    add_leaving(s, gone);
    if (const auto why = failed_in(s)) gone.failure = why;
  }
  if (!gone.died.empty())
    return diagnosis{errc::peer_lost, what + have(gone.died, " has died", " have died")};
  if (gone.empty()) {
    s.m_left.reset();
    return diagnose_late(s, now);
  }
  // Why it has left goes before that it is late.
  if (!s.m_left) s.m_left = now;
  if (now - *s.m_left <= grace_time) return std::nullopt;
  if (gone.failure) return diagnosis{gone.failure->code, what + gone.failure->text};
  return diagnosis{errc::peer_lost, what + have(gone.left, " has left", " have left")};
}

// Adds the members that are ending their runtime, and so will not arrive any more.
void setup_steps::add_leaving(const setup_step& s, peer_processes::departures& gone) const {
  for (std::size_t i = 0; i < s.m_members.size(); ++i) {
    const int r = s.m_members[i];
    if (r == m_peers->rank() || m_peers->has_ended(r) || !m_peers->is_leaving(r)) continue;
    if (m_peers->is_in(r, s.m_label) == false) gone.left.push_back(static_cast<int>(i));
  }
}

// The failure of another rank in this step: its own, or one that it got from a third rank.
std::optional<diagnosis> setup_steps::failed_in(const setup_step& s) const {
  for (const int r : s.m_members) {
    auto why = r == m_peers->rank() ? std::nullopt : m_peers->failure_in(r, s.m_label);
    if (!why) continue;
    if (why->code == errc::timeout || why->code == errc::peer_lost) return why;
    return diagnosis{why->code, "rank " + std::to_string(r) + " has failed: " + why->text};
  }
  return std::nullopt;
}

// Members that died while they ended their runtime.
std::vector<int> setup_steps::died_in_finalize(const setup_step& s) const {
  std::vector<int> died;
  for (const int r : s.m_members)
    if (r != m_peers->rank() && m_peers->has_ended(r) && !m_peers->has_finalized(r))
      died.push_back(r);
  return died;
}

// Why waiting is useless once the timeout is over.
std::optional<diagnosis> setup_steps::diagnose_late(const setup_step& s,
                                                    clock::time_point now) const {
  const auto waited = now - s.m_since.load();
  if (m_timeout.count() == 0 || waited < m_timeout) return std::nullopt;
  const std::string what = s.m_label + " was not done within " + in_seconds(m_timeout) + ": ";
  if (!m_peers) {
    const auto why = missing_at_start(waited < m_timeout + wait_for_present_ranks);
    return why.empty() ? std::nullopt : std::optional(diagnosis{errc::timeout, what + why});
  }
  const bool all_known = !s.m_members.empty();
  const int n = all_known ? static_cast<int>(s.m_members.size()) : m_peers->size();
  std::vector<int> gone, stopped, late, far, leaving;
  for (int i = 0; i < n; ++i) {
    const int r = all_known ? s.m_members[static_cast<std::size_t>(i)] : i;
    if (r == m_peers->rank()) continue;
    if (m_peers->has_ended(r))
      gone.push_back(i);
    else if (m_peers->is_stopped(r))
      stopped.push_back(i);
    else if (const auto present = m_peers->is_in(r, s.m_label); !present)
      far.push_back(i);
    else if (!*present)
      (m_peers->is_leaving(r) ? leaving : late).push_back(i);
  }
  const auto timed_out = [&](const std::string& why) {
    return diagnosis{errc::timeout, what + why};
  };
  if (!stopped.empty()) return timed_out(have(stopped, " is stopped", " are stopped"));
  if (!late.empty()) return timed_out(have(late, " has not arrived", " have not arrived"));
  if (!gone.empty() && s.m_may_leave == may_leave::none)
    return timed_out(have(gone, " has gone", " have gone"));
  if (!leaving.empty() && !all_known)
    return timed_out(have(leaving, " is ending its runtime", " are ending their runtimes"));
  if (!far.empty())
    return timed_out("nothing has arrived from " + ranks_text(far) +
                     ", on other machines or out of sight");
  if (waited < m_timeout + wait_for_present_ranks) return std::nullopt;
  return timed_out("every rank has arrived, but it did not go on");
}

// Before the processes are connected only the launcher's data is known. Empty: all have arrived and
// there is time left. A library that connects them has much to do on a busy machine.
std::string setup_steps::missing_at_start(bool have_time) const {
  const auto found = m_presence ? m_presence->poll() : presence::report{};
  if (!found.stopped.empty()) return have(found.stopped, " is stopped", " are stopped");
  if (!found.missing.empty())
    return have(found.missing, " has not arrived or has died", " have not arrived or have died");
  if (!found.known) return "some rank has not arrived or has died";
  return have_time ? "" : "every rank has arrived, but the control plane did not start";
}

// For steps whose thread is inside a call that cannot be cancelled.
void setup_steps::watch() {
  std::unique_lock lock(m_mutex);
  while (!m_stop) {
    if (m_steps.empty()) {
      m_changed.wait(lock, [&] { return m_stop || !m_steps.empty(); });
      continue;
    }
    const auto now = clock::now();
    for (setup_step* s : m_steps)
      if (!s->m_paused && now - s->m_last_poll.load() > poll_timeout && end_if_stuck(*s, now))
        std::_Exit(EXIT_FAILURE);
    m_changed.wait_for(lock, 50ms, [&] { return m_stop; });
  }
}

bool setup_steps::end_if_stuck(setup_step& s, clock::time_point now) {
  const auto why = diagnose(s, now);
  if (!why) {
    s.m_failing_since.reset();
    return false;
  }
  // For a moment the thread may still return from its call and throw this itself.
  if (!s.m_failing_since) s.m_failing_since = now;
  if (m_peers && now - *s.m_failing_since < grace_time) return false;
  if (m_peers) m_peers->fail(*why);
  base::log(base::log_level::error, "setup", error(info_of(*why)).what(),
            ". The library below cannot be called back, so this process ends");
  hand_over_output();
  // Without a board, ranks that begin a moment later would blame this one.
  if (!m_peers) std::this_thread::sleep_for(presence_after_failure);
  return true;
}

setup_step::setup_step(setup_steps& all, std::string label, std::vector<int> members,
                       may_leave leaving, step_counts* begun)
    : m_label(std::move(label)),
      m_what(m_label),
      m_members(std::move(members)),
      m_may_leave(leaving),
      m_begun(begun) {
  if (t_current || forked()) return;
  m_all = &all;
  m_since = m_last_poll = clock::now();
  t_current = this;
  supervise_waits(this);
  all.add(*this);
}

setup_step::~setup_step() {
  if (!m_all) return;
  t_current = nullptr;
  supervise_waits(nullptr);
  m_all->remove(*this);
}

void setup_step::fail(const error_info& why) {
  if (!m_all) return;
  const std::lock_guard lock(m_all->m_mutex);
  if (m_all->m_peers) m_all->m_peers->fail_in(m_label, {why.code, why.message});
}

setup_pause::setup_pause() {
  if (t_current) t_current->m_paused = true;
}

setup_pause::~setup_pause() {
  if (!t_current) return;
  t_current->m_since = t_current->m_last_poll = setup_step::clock::now();
  t_current->m_paused = false;
}

void setup_step::note_progress() noexcept { m_since = clock::now(); }

// Without a board, ranks that have begun a moment later would blame this one, or be ended with it.
void setup_step::stay_present() {
  const auto until = clock::now() + presence_after_failure;
  for (auto now = clock::now(); now < until; now = clock::now()) {
    m_last_poll = now;  // the thread is not stuck
    std::this_thread::sleep_for(std::min<clock::duration>(until - now, poll_timeout / 10));
  }
}

sucl_status setup_step::keep_waiting() noexcept try {
  const auto now = clock::now();
  if (now - m_last_poll.load() < between_checks) return SUCL_SUCCESS;
  m_last_poll = now;
  std::optional<diagnosis> why;
  bool connected = false;
  {
    const std::lock_guard lock(m_all->m_mutex);
    connected = m_all->m_peers != nullptr;
    why = m_all->diagnose(*this, now);
    if (why && connected) m_all->m_peers->fail(*why);
  }
  if (!why) return SUCL_SUCCESS;
  if (!connected) stay_present();
  if (m_all->m_given_up) m_all->m_given_up();
  return keep(info_of(*why));
} catch (const std::exception& e) {
  return services().fail(SUCL_ERROR_INTERNAL, 0, e.what(), nullptr);
}

}  // namespace sucl::core
