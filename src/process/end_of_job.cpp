// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// How the processes of a job end together.
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/support/exit_status.hpp"
#include "core/support/output.hpp"
#include "process/process.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <set>
#include <utility>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// At the end of a job without MPI, for ranks that have not come to theirs. It lasts for ranks that
// do the same on a busy machine.
constexpr auto wait_for_ends = 1s;

std::atomic<const sucl_bootstrap*> left_behind{nullptr};

// Without a watchdog the others may wait for this process for ever; not every launcher ends them
// when a process exits without having finalised MPI.
void end_job_at_exit(const sucl_bootstrap& control) {
  if (left_behind.exchange(&control)) return;
  std::atexit([] {
    const sucl_bootstrap* control = left_behind;
    if (forked() || !control->alive()) return;
    hand_over_output();
    control->abort(EXIT_FAILURE);
  });
}

}  // namespace

/// What is left to do when a program finalises MPI itself, maybe long after this object has gone.
struct process::mpi_end {
  std::weak_ptr<process> running;
  bool compares = false;  ///< what follows is set
  std::uint64_t key = 0;
  int size = 1;
  const sucl_bootstrap* control = nullptr;
  sucl_group* everyone = nullptr;
  std::shared_ptr<peer_processes> peers;
  std::shared_ptr<end_comparison> ends;
  bool has_ended = false;
  std::shared_ptr<process> ended;  ///< kept for its record
  bool unsure = false;

  std::string name() const { return "," + std::to_string(key) + ","; }
};

namespace {

std::mutex guards_mpi_ends;

}  // namespace

// Of runtimes that run or have ended, until their processes have compared.
std::vector<std::shared_ptr<process::mpi_end>>& process::mpi_ends() {
  static auto* const those = new std::vector<std::shared_ptr<mpi_end>>;
  return *those;
}

// The processes of each come here, whatever has become of them. A process may be in several, in no
// order: it shows itself in all before it waits in any. Those that differ are gone through in the
// order of their keys, which is the same everywhere.
void process::compare(std::vector<std::shared_ptr<mpi_end>> ends) {
  std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a->key < b->key; });
  std::deque<finalize_barrier> barriers;  // which do not move
  for (const auto& e : ends) {
    call_checksum mine = e->ends->checksum();
    mine.unsure |= e->unsure ? 1 : 0;
    barriers.emplace_back(*e->control, e->everyone, e->peers, 0ns, 0ns).start(mine);
  }
  std::vector<finalize_barrier::outcome> found;
  for (finalize_barrier& b : barriers) found.push_back(b.wait());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (found[i].all.empty()) continue;
    mpi_end& e = *ends[i];
    const auto kept = std::move(e.ended);
    const auto why = difference({e.control, e.everyone}, *e.ends, found[i].all, kept.get());
    if (why) report_at_last(*why);
    e.control->group_free(e.everyone);
  }
}

// MPI_Finalize is collective, so all processes of each runtime are here.
void process::end_with_mpi() {
  std::vector<std::shared_ptr<mpi_end>> ends;
  {
    const std::lock_guard lock(guards_mpi_ends);
    ends.swap(mpi_ends());
  }
  for (const auto& e : ends)
    if (const auto p = e->running.lock()) p->shut_down();
  compare(std::move(ends));
}

// Runtimes that have ended here and whose processes have not compared.
std::string process::keys_of_ended() {
  const std::lock_guard lock(guards_mpi_ends);
  std::string keys;
  for (const auto& e : mpi_ends())
    if (e->has_ended) keys += e->name();
  return keys;
}

// What has ended on all processes that start something now is compared: they may start and end any
// number, and what each keeps until then does not add up.
void process::compare_ended(const std::vector<std::string>& keys) {
  std::vector<std::shared_ptr<mpi_end>> ends;
  {
    const std::lock_guard lock(guards_mpi_ends);
    std::erase_if(mpi_ends(), [&](const std::shared_ptr<mpi_end>& e) {
      const bool everywhere =
          e->has_ended && static_cast<std::size_t>(e->size) == keys.size() &&
          std::all_of(keys.begin(), keys.end(), [&](const std::string& of_rank) {
            return of_rank.find(e->name()) != std::string::npos;
          });
      if (everywhere) ends.push_back(e);
      return everywhere;
    });
  }
  compare(std::move(ends));
}

// MPI keeps what it shall call at its end, and programs may start any number of runtimes: there is
// one call for all of them. Whether this one ends with its control plane.
bool process::ends_with_control() {
  // Never destroyed: MPI may be finalised when all else is.
  static auto& hooked = *new std::set<const sucl_bootstrap*>;
  static auto& running = *new std::vector<std::weak_ptr<process>>;
  const auto hook = [](void* arg) {
    const auto* const control = static_cast<const sucl_bootstrap*>(arg);
    std::vector<std::shared_ptr<process>> those;  // let go of without the lock
    {
      const std::lock_guard lock(guards_mpi_ends);
      hooked.erase(control);
      for (const auto& one : running) those.push_back(one.lock());
    }
    for (auto last = those.rbegin(); last != those.rend(); ++last)
      if (const auto& p = *last; p && p->m_control == control) p->shut_down();
    end_with_mpi();
  };
  const std::lock_guard lock(guards_mpi_ends);
  if (!hooked.contains(m_control)) {
    auto* const arg = const_cast<sucl_bootstrap*>(m_control);
    if (m_control->at_finalize(hook, arg) != SUCL_SUCCESS) return false;
    hooked.insert(m_control);
  }
  std::erase_if(running, [](const auto& one) { return one.expired(); });
  running.push_back(weak_from_this());
  return true;
}

// Before anything is compared.
void process::prepare_end() {
  auto at_end = std::make_shared<mpi_end>();
  at_end->running = weak_from_this();
  // A process that still waits for the others, as in world(), must not take that for theirs.
  if (m_size > 1 && (m_finalise || m_compares_ends))
    if (const auto status = m_control->group_split(m_everyone, 0, m_rank, &m_ending))
      throw_last(status, m_control->name, "initialisation");
  if (m_finalise && m_size > 1) {
    const auto timeout = m_settings.watchdog.timeout;
    const std::chrono::nanoseconds limit = m_launch && timeout.count() == 0 ? wait_for_ends : 0s;
    m_finalize_barrier =
        std::make_unique<finalize_barrier>(*m_control, m_ending, m_peers, timeout, limit);
  } else if (m_ending) {
    at_end->compares = true;
    at_end->key = m_key;
    at_end->size = m_size;
    at_end->control = m_control;
    at_end->everyone = m_ending;
    at_end->peers = m_peers;
    at_end->ends = m_ends;
  }
  if (!ends_with_control()) return;
  if (!at_end->compares) return;
  const std::lock_guard lock(guards_mpi_ends);
  mpi_ends().push_back(at_end);
  m_at_mpi_end = std::move(at_end);
}

// Of this process, or of a rank of it.
const flight_record* process::record_of(const ended_calls& c) {
  const std::lock_guard lock(m_mutex);
  std::vector<const process*> owners{this};
  for (const auto& r : m_ranks) owners.push_back(r.get());
  for (const process* p : owners) {
    const flight_record* const record = p->m_record.memory();
    if (!record || p->m_key != c.job) continue;
    const auto& members = record->head.members;
    if (std::any_of(members.begin(), members.end(), [&](const record_member& m) {
          return m.communicator == c.communicator && m.rank == c.rank;
        }))
      return record;
  }
  return nullptr;
}

// What ranks have called differently, though none has waited for it.
std::optional<error_info> process::difference(const sucl_oob& oob, const end_comparison& ends,
                                              const std::vector<call_checksum>& all,
                                              process* recorder) {
  if (!end_comparison::may_differ(all)) return std::nullopt;
  try {
    const auto what = ends.find(oob, all, [&](const ended_calls& c) {
      return recorder ? recorder->record_of(c) : nullptr;
    });
    if (what) return mismatch_error(*what);
  } catch (const error& e) {
    base::log(base::log_level::warn, "runtime",
              "ranks may have called different operations, but cannot compare them: ", e.what());
  }
  return std::nullopt;
}

// Whether they have; says so.
bool process::end_differently(const finalize_barrier::outcome& found) {
  std::optional<error_info> why;
  if (found.over_limit) {
    if (const auto what = end_comparison::find_alone(found.all)) why = mismatch_error(*what);
  } else {
    const setup_step step(m_steps, "the comparison of calls", everyone());
    why = difference({m_control, m_ending}, *m_ends, found.all, this);
    m_control->group_free(m_ending);
  }
  if (!why) return false;
  note_failure(*why);
  m_record.fail(why->message);
  report_at_last(*why);
  return true;
}

void process::finalise() {
  if (m_recovered) return m_control->finalize();
  std::string obstacle;
  bool new_to_all = false;
  if (m_broken) {
    obstacle = m_obstacle;
    const bool others_find_out = m_settings.watchdog.timeout.count() > 0;
    if (m_finalize_barrier && others_find_out)
      m_finalize_barrier->leave();
    else if (m_size > 1 && !others_find_out)
      end_job_at_exit(*m_control);
  } else if (m_finalize_barrier) {
    const auto found = m_finalize_barrier->wait(m_ends->checksum());
    obstacle = found.obstacle;
    new_to_all = found.is_new;
    // Messages that no rank receives may be left behind.
    if (!found.all.empty() && end_differently(found))
      obstacle = "ranks have called different operations";
  }
  if (obstacle.empty()) {
    const setup_step step(m_steps, "the end of SuCL", everyone(), may_leave::finalized);
    return m_control->finalize();
  }
  base::log(new_to_all ? base::log_level::error : base::log_level::warn, "runtime", m_control->name,
            " is not finalised: ", obstacle);
  if (new_to_all && m_public) fail_at_exit();
}

// MPI goes on, and with it what is left to do at its end.
void process::leave_to_mpi() {
  if (!m_at_mpi_end) return;
  const std::lock_guard lock(guards_mpi_ends);
  m_at_mpi_end->unsure = m_broken || m_recovered;
  m_at_mpi_end->ended = weak_from_this().lock();
  m_at_mpi_end->has_ended = true;
  m_at_mpi_end.reset();
}

}  // namespace sucl::core
