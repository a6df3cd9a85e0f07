// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/watch/watchdog.hpp"

#include "base/log.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/process_context.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/support/output.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::steady_clock::time_point;

constexpr auto longest_grace = 2s;
constexpr auto grace_for_left = 500ms;

// Others wait for ranks that differ, which ends once they get the error.
constexpr auto time_to_come_out = 2s;

// The same, counted in polls where the whole machine may have paused: about two and ten seconds.
constexpr int polls_to_come_out = 100;
constexpr int polls_after_recovery = 500;

}  // namespace

namespace {

// Replays of recorded operations are counted apart from calls; with this bit it is their number.
constexpr std::uint64_t of_replays = std::uint64_t{1} << 63;

std::string died_text(const std::vector<int>& ranks, int size) {
  return ranks_text(ranks) + " of " + std::to_string(size) +
         (ranks.size() == 1 ? " has died" : " have died");
}

// How far a rank has come in what is asked for.
std::uint64_t progress_of(const communicator::status& state, std::uint64_t number) {
  return number & of_replays ? state.replayed | of_replays : state.posted;
}

}  // namespace

void watchdog::notify(const sucl_bootstrap& control, communicator& c, int rank,
                      const control_message& m) {
  const std::size_t bytes =
      m.what == message_kind::diagnosis ? sizeof m : offsetof(control_message, text);
  control.notify(c.control_group(), rank, &m, bytes);
}

namespace {

// A thread that waits in one rank of its process for another one, which it serves too, waits for
// itself. Whether it does cannot be seen, but that it may.
std::string shared_process(const communicator& c, const std::vector<int>& late) {
  const auto& members = c.where().members;
  const auto is_late = [&](const member& m) {
    return std::find(late.begin(), late.end(), m.rank) != late.end();
  };
  for (const int l : late) {
    const member& one = members[static_cast<std::size_t>(l)];
    const auto here = std::find_if(members.begin(), members.end(), [&](const member& m) {
      return m.node == one.node && m.process == one.process && !is_late(m);
    });
    if (here == members.end()) continue;
    return ". Ranks " + std::to_string(here->rank) + " and " + std::to_string(l) +
           " are of one process: a thread that serves both waits in the one for the other, unless "
           "it calls the forms that return events, a sucl::group or sucl::each_rank";
  }
  return {};
}

// CUDA may load a kernel when it is first used, and that waits for what is in flight.
std::string loaded_kernels(const communicator& c) {
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  const bool is_eager = loading && loading == std::string_view("EAGER");
  const member& self = c.where().members[static_cast<std::size_t>(c.rank())];
  if (is_eager || self.platform != "cuda") return {};
  return ". A kernel that is first used meanwhile waits for this operation: set "
         "CUDA_MODULE_LOADING=EAGER, so that all are loaded at the start";
}

}  // namespace

void watchdog::poll(time_point now) {
  if (!m_process.control()) return;
  forget_ended();
  m_each([&](const std::shared_ptr<communicator>& c) {
    if (c->alive()) c->check_device();
    const auto held = c->hold_control_group();
    if (c->alive()) poll_communicator(*c, watched_of(c), now);
  });
}

void watchdog::fail(const std::shared_ptr<communicator>& c, const diagnosis& why) {
  const auto held = c->hold_control_group();
  if (!c->alive()) return;
  if (watched& w = watched_of(c); !w.failed) send_diagnosis(*c, w, why.code, why.text);
}

void watchdog::forget_ended() {
  std::erase_if(m_watched, [](const auto& entry) {
    const auto c = entry.second.who.lock();
    return !c || !c->alive();
  });
}

watchdog::watched& watchdog::watched_of(const std::shared_ptr<communicator>& c) {
  const auto [it, made] = m_watched.try_emplace(c->id());
  if (!made) return it->second;
  it->second.who = c;
  if (c->agreement().compares())
    it->second.calls.emplace(*c, [this, &to = *c](int rank, const call_message& m) {
      m_process.control()->notify(to.control_group(), rank, &m, sizeof m);
    });
  return it->second;
}

void watchdog::poll_communicator(communicator& c, watched& w, time_point now) {
  w.state = c.try_snapshot();
  read_messages(c, w, now);
  if (!w.state) return end_if_taken_for_ever(c, w, now);
  w.vain_polls = 0;
  w.taken_since.reset();
  if (w.unapplied && c.try_fail_all(info_of(*w.unapplied))) w.unapplied.reset();
  take_kept(c, w, now);
  if (m_circles)
    m_circles->send(c, static_cast<std::uint32_t>(message_kind::circle), now,
                    [&](int rank, const circle_message& m) {
                      m_process.control()->notify(c.control_group(), rank, &m, sizeof m);
                    });
  if (c.agreement().compares()) compare_calls(c, w, now);
  if (w.failed) return end_if_inside_for_ever(c, w);
  const peer_processes* peers = m_process.peers();
  if (peers && peers->published_so_far() > 0)
    if (const auto v = peers->published(c.id())) return apply_diagnosis(c, w, *v);
  if (m_process.settings().watchdog.timeout.count() == 0) return;
  const auto& state = *w.state;
  if (!state.busy) {
    w.open.reset();
    if (c.late().is_asked()) c.late().answer("");
    return;
  }
  check_processes(c, w, now);
  if (w.failed) return;
  if (w.open) {
    // Who is stopped does not answer.
    bool all = true;
    for (std::size_t r = 0; r < w.open->answers.size() && all; ++r)
      all = w.open->answers[r].given || (peers && peers->is_stopped(c.where().world_ranks[r]));
    if (all || now >= w.open->deadline) conclude(c, w);
  } else if (now - state.since > m_process.settings().watchdog.timeout) {
    start_query(c, w, now);
  } else if (c.late().is_asked()) {
    start_query(c, w, now);
    w.open->is_asked = true;
  }
}

void watchdog::read_messages(communicator& c, watched& w, time_point now) {
  const auto& control = *m_process.control();
  for (;;) {
    std::array<std::byte,
               std::max({sizeof(control_message), sizeof(call_message), sizeof(circle_message)})>
        data;
    std::int32_t source = -1;
    std::uint64_t bytes = 0;
    const auto status = control.poll(c.control_group(), &source, data.data(), data.size(), &bytes);
    if (status || source < 0) return;
    message_kind what{};
    std::memcpy(&what, data.data(), sizeof what);
    if (what == message_kind::circle) {
      circle_message m;
      if (!m_circles || !w.state || bytes != sizeof m) continue;  // it is sent again
      std::memcpy(static_cast<void*>(&m), data.data(), sizeof m);
      m_circles->take(c, m, now);
    } else if (what < message_kind::of_calls) {
      control_message m{};
      std::memcpy(&m, data.data(), std::min(sizeof m, bytes));
      take(c, w, source, m, now);
    } else if (call_message m; w.calls && bytes == sizeof m) {
      std::memcpy(static_cast<void*>(&m), data.data(), sizeof m);
      w.calls->take(source, m, now);
    }
  }
}

void watchdog::take(communicator& c, watched& w, int source, const control_message& m,
                    time_point now) {
  const bool needs_lock = m.what == message_kind::diagnosis || m.what == message_kind::end;
  if (needs_lock && !w.state) {
    w.kept.emplace_back(source, m);
    return;
  }
  switch (m.what) {
    case message_kind::query: {
      if (!w.state) break;  // this rank does not answer
      control_message reply{};
      reply.what = message_kind::answer;
      reply.sequence = progress_of(*w.state, m.sequence);
      reply.code = w.state->held ? 1 : 0;
      notify(*m_process.control(), c, source, reply);
      break;
    }
    case message_kind::answer:
      if (w.open)
        w.open->answers[static_cast<std::size_t>(source)] = {m.sequence, true, m.code == 1};
      break;
    case message_kind::diagnosis: {
      if (w.failed) break;
      const diagnosis v{static_cast<errc>(m.code),
                        std::string(m.text, strnlen(m.text, sizeof m.text))};
      if (v.code == errc::mismatch && w.calls) return report_mismatch(c, w, v.text, now);
      if (m_process.peers()) m_process.peers()->publish(c.id(), v);
      apply_diagnosis(c, w, v);
      break;
    }
    case message_kind::end:
      if (!c.try_note_end(source,
                          {static_cast<communicator_end::manner>(m.code), m.sequence, m.replays}))
        w.kept.emplace_back(source, m);
      break;
    case message_kind::circle:
    case message_kind::of_calls: break;
  }
}

// ---- what ranks of several nodes have called

void watchdog::compare_calls(communicator& c, watched& w, time_point now) {
  if (w.mismatch_reported) return end_if_stuck(c, w, now);
  if (const auto what = c.ended_too_early()) return report_mismatch(c, w, *what, now);
  w.calls->poll(now);
  const auto difference = w.calls->take_difference();
  if (!difference) return;
  control_message message{};
  message.what = message_kind::diagnosis;
  message.code = static_cast<std::int32_t>(errc::mismatch);
  std::strncpy(message.text, difference->c_str(), sizeof message.text - 1);
  for (int r = 0; r < c.size(); ++r)
    if (r != c.rank()) notify(*m_process.control(), c, r, message);
  report_mismatch(c, w, *difference, now);
}

void watchdog::report_mismatch(communicator& c, watched& w, const std::string& what,
                               time_point now) {
  if (w.mismatch_reported) return;
  w.mismatch_reported = now;
  w.mismatch = what;
  c.report_mismatch(what);
}

// A thread that is inside a blocking function of a library does not see the error.
void watchdog::end_if_stuck(communicator& c, const watched& w, time_point now) const {
  if (c.entered() && now - *w.mismatch_reported >= time_to_come_out)
    end_process(c.label() + ": " + w.mismatch);
}

void watchdog::end_process(const std::string& why) const {
  m_process.record().fail(why);
  base::log(base::log_level::error, "watchdog", why,
            ". A library that this process is inside of cannot be called back, so it ends");
  hand_over_output();
  std::_Exit(EXIT_FAILURE);
}

// ---- a lock that a thread inside a library may never give back

void watchdog::take_kept(communicator& c, watched& w, time_point now) {
  for (const auto& [source, m] : std::exchange(w.kept, {})) take(c, w, source, m, now);
}

// What a thread has called that keeps the lock, as far as the record knows.
std::string watchdog::taken_text(const communicator& c) const {
  std::string call = "a call of " + c.label();
  std::uint64_t newest = 0;
  if (const flight_record* record = m_process.record().memory())
    for (const record_entry& e : record->entries) {
      const auto serial = e.serial.load(std::memory_order_acquire);
      if (e.communicator != static_cast<std::uint32_t>(c.id()) || serial <= newest ||
          !is_open(e.state.load(std::memory_order_acquire)))
        continue;
      newest = serial;
      call = describe_call(e, c);
    }
  const auto seconds = std::chrono::duration<double>(m_process.settings().watchdog.timeout).count();
  return call + " did not finish within " + std::to_string(seconds).substr(0, 5) +
         " s: a thread of rank " + std::to_string(c.rank()) +
         " is inside of a backend that does not return";
}

// Why what has the lock may wait in vain. Where no member has died but another rank of the job, a
// library may have been left in no state to go on.
watchdog::obstacle watchdog::obstacle_of(const communicator& c, const watched& w,
                                         time_point now) const {
  if (w.unapplied) return {polls_to_come_out, w.unapplied};
  for (const auto& [source, m] : w.kept)
    if (m.what == message_kind::diagnosis)
      return {polls_to_come_out,
              diagnosis{static_cast<errc>(m.code), {m.text, strnlen(m.text, sizeof m.text)}}};
  const auto timeout = m_process.settings().watchdog.timeout;
  const peer_processes* peers = m_process.peers();
  const bool too_long = timeout.count() != 0 && now - *w.taken_since > timeout;
  obstacle inside{too_long ? polls_to_come_out : 0,
                  too_long ? std::optional(diagnosis{errc::timeout, taken_text(c)}) : std::nullopt};
  if (!peers) return inside;
  if (auto published = peers->published(c.id())) return {polls_to_come_out, published};
  const auto gone = peers->gone(c.where().world_ranks);
  const auto lost = [&](const std::vector<int>& died, int size, const char* of) {
    return diagnosis{errc::peer_lost, c.label() + " cannot go on: " + died_text(died, size) + of};
  };
  if (!gone.died.empty()) return {polls_to_come_out, lost(gone.died, c.size(), "")};
  if (gone.failure) return {polls_to_come_out, gone.failure};
  std::vector<int> all(static_cast<std::size_t>(peers->size()));
  std::iota(all.begin(), all.end(), 0);
  const auto elsewhere = peers->gone(all);
  if (elsewhere.died.empty()) return inside;
  return {polls_after_recovery, lost(elsewhere.died, peers->size(), " in this job")};
}

// It is the same call as long as the lock is not given back.
void watchdog::end_if_taken_for_ever(communicator& c, watched& w, time_point now) const {
  const std::uint64_t turns = c.lock_turns();
  if (!w.taken_since || std::exchange(w.lock_turns, turns) != turns) w.taken_since = now;
  w.lock_turns = turns;
  const obstacle found = obstacle_of(c, w, now);
  w.vain_polls = found.why ? w.vain_polls + 1 : 0;
  if (!found.why || w.vain_polls < found.polls) return;
  if (m_process.peers()) {
    m_process.peers()->fail(*found.why);
    m_process.peers()->publish(c.id(), *found.why);
  }
  notify_failure(*m_process.control(), c, *found.why);
  end_process(found.why->text);
}

// A caller that waits for other ranks sees the failure; one that does not come out never will.
void watchdog::end_if_inside_for_ever(const communicator& c, watched& w) const {
  w.polls_inside = c.entered() ? w.polls_inside + 1 : 0;
  if (w.polls_inside >= polls_after_recovery) end_process(w.failed->text);
}

void watchdog::apply_diagnosis(communicator& c, watched& w, const diagnosis& v) {
  w.failed = v;
  if (!c.try_fail_all(info_of(v))) w.unapplied = v;
}

void watchdog::check_processes(communicator& c, watched& w, time_point now) {
  if (!m_process.peers()) return;
  const auto gone = m_process.peers()->gone(c.where().world_ranks);
  const auto& state = *w.state;
  if (gone.empty() || !state.busy) {
    w.gone_since.reset();
    return;
  }
  const std::string what = describe(state.oldest) + " of " + c.label() + " cannot finish: ";
  if (!gone.died.empty())
    return send_diagnosis(c, w, errc::peer_lost, what + died_text(gone.died, c.size()));
  // Who has left has sent what the others wait for; it may be on its way.
  if (!w.gone_since) w.gone_since = now;
  if (now - *w.gone_since < grace_for_left) return;
  if (gone.failure) return send_diagnosis(c, w, gone.failure->code, what + gone.failure->text);
  send_diagnosis(c, w, errc::peer_lost,
                 what + ranks_text(gone.left) + " of " + std::to_string(c.size()) +
                     (gone.left.size() == 1 ? " has left" : " have left"));
}

void watchdog::start_query(communicator& c, watched& w, time_point now) {
  const auto& state = *w.state;
  w.open = std::make_unique<progress_query>();
  w.open->operation = describe(state.oldest);
  w.open->sequence = state.turn | (is_replay(state.oldest) ? of_replays : 0);
  w.open->on_stream = state.on_stream;
  w.open->peers = state.peers;
  const auto timeout = m_process.settings().watchdog.timeout;
  w.open->deadline = now + std::min<std::chrono::nanoseconds>(
                               longest_grace, timeout + std::chrono::milliseconds(200));
  w.open->answers.resize(static_cast<std::size_t>(c.size()));
  const answer none_needed{progress_of(state, w.open->sequence), true};
  control_message query{};
  query.what = message_kind::query;
  query.sequence = w.open->sequence;
  // A member that has ended answers no more, and holds up no message between others.
  const auto has_ended = [&](int r) {
    return std::find(state.ended.begin(), state.ended.end(), r) != state.ended.end();
  };
  for (int r = 0; r < c.size(); ++r) {
    if (r == c.rank() || has_ended(r))
      w.open->answers[static_cast<std::size_t>(r)] = none_needed;
    else
      notify(*m_process.control(), c, r, query);
  }
}

void watchdog::conclude(communicator& c, watched& w) {
  const progress_query query = *w.open;
  w.open.reset();
  // What has gone wrong first is why others do not come.
  if (m_process.peers())
    if (const auto gone = m_process.peers()->gone(c.where().world_ranks); gone.failure)
      return send_diagnosis(
          c, w, gone.failure->code,
          query.operation + " of " + c.label() + " cannot finish: " + gone.failure->text);
  std::vector<int> late;
  std::string reasons = reasons_of(c, query, late);
  if (query.is_asked) return c.late().answer(reasons + shared_process(c, late));
  const auto seconds = std::chrono::duration<double>(m_process.settings().watchdog.timeout).count();
  const std::string text = query.operation + " of " + c.label() + " did not finish within " +
                           std::to_string(seconds).substr(0, 5) + " s: ";
  if (reasons.empty()) {
    reasons = "every rank has posted the operation, but it made no progress";
    if (query.on_stream)
      reasons +=
          ". Commands before it on the device's stream may still run; and copies between the "
          "device "
          "and pageable memory (of malloc) in one thread hold up what another thread has launched, "
          "so use pinned memory (sycl::malloc_host) there";
  }
  send_diagnosis(c, w, errc::timeout, text + reasons + shared_process(c, late) + loaded_kernels(c));
}

// Which ranks hold the operation up, by what they have answered; `late`: have not called it.
std::string watchdog::reasons_of(const communicator& c, const progress_query& query,
                                 std::vector<int>& late) const {
  std::vector<int> silent, stopped, held;
  for (int r = 0; r < c.size(); ++r) {
    const auto& a = query.answers[static_cast<std::size_t>(r)];
    if (!a.given) {
      const int world = c.where().world_ranks[static_cast<std::size_t>(r)];
      const bool is_stopped = m_process.peers() && m_process.peers()->is_stopped(world);
      (is_stopped ? stopped : silent).push_back(r);
    } else if (query.sequence > 0 && a.posted < query.sequence) {
      late.push_back(r);
    } else if (a.held) {
      held.push_back(r);
    }
  }
  // Others may be late because they wait for who is stopped.
  if (!stopped.empty()) late.clear();
  std::string reasons;
  const auto add = [&](const std::vector<int>& ranks, const char* what) {
    if (!ranks.empty()) reasons += (reasons.empty() ? "" : "; ") + ranks_text(ranks) + what;
  };
  add(late, late.size() == 1 ? " has not arrived" : " have not arrived");
  add(stopped, stopped.size() == 1 ? " is stopped and has not arrived"
                                   : " are stopped and have not arrived");
  add(silent, silent.size() == 1 ? " does not answer and has not arrived"
                                 : " do not answer and have not arrived");
  add(held, held.size() == 1 ? " still executes commands of the program before it on its device"
                             : " still execute commands of the program before it on their devices");
  if (reasons.empty() && !query.peers.empty())
    reasons = (query.peers.size() > 1 ? "one of " : "") + ranks_text(query.peers) +
              " has not issued the matching operation";
  return reasons;
}

void watchdog::notify_failure(const sucl_bootstrap& control, communicator& c,
                              const diagnosis& why) {
  control_message message{};
  message.what = message_kind::diagnosis;
  message.code = static_cast<std::int32_t>(why.code);
  std::strncpy(message.text, why.text.c_str(), sizeof message.text - 1);
  for (int r = 0; r < c.size(); ++r)
    if (r != c.rank()) notify(control, c, r, message);
}

void watchdog::notify_end(const sucl_bootstrap& control, communicator& c,
                          const peer_processes& peers, const communicator_end& e) {
  control_message message{};
  message.what = message_kind::end;
  message.code = static_cast<std::int32_t>(e.how);
  message.sequence = e.calls;
  message.replays = e.replays;
  for (int r = 0; r < c.size(); ++r)
    if (r != c.rank() && !peers.is_seen(c.where().world_ranks[static_cast<std::size_t>(r)]))
      notify(control, c, r, message);
}

// On the board first: others may find wrong data from when the operation is given up here.
void watchdog::send_diagnosis(communicator& c, watched& w, errc code, const std::string& text) {
  const diagnosis why{code, text};
  if (m_process.peers()) {
    m_process.peers()->fail(why);
    m_process.peers()->publish(c.id(), why);
  }
  notify_failure(*m_process.control(), c, why);
  base::log(base::log_level::error, "watchdog", text);
  apply_diagnosis(c, w, why);
}

}  // namespace sucl::core
