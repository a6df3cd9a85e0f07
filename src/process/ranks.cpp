// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Several ranks of one process, each of which is a job's member as a process is.
#include "base/error.hpp"
#include "base/threads/concurrently.hpp"
#include "core/control/local_ranks.hpp"
#include "process/process.hpp"

#include <algorithm>
#include <string>
#include <system_error>

namespace sucl::core {

/// What the processes of a new job of ranks agree on, and then what one rank is given of it.
struct process::rank_start {
  rank_counts counts;
  std::uint64_t key = 0;  ///< of the new job
  sucl_group* everyone = nullptr;
  std::shared_ptr<peer_processes> peers;
};

// Collective; throws on every process what is wrong with one.
process::rank_start process::exchange_rank_counts(sucl_group* over, std::size_t count) const {
  struct words {
    std::uint64_t count, runtime, key;
  };
  const words mine{count, m_key, random_key()};
  std::vector<words> all(over ? static_cast<std::size_t>(m_control->group_size(over)) : 1);
  sucl_oob oob{over ? m_control : nullptr, over};
  if (const auto status = services().oob_allgather(&oob, &mine, all.data(), sizeof mine))
    throw_last(status, "", "world", m_rank);
  rank_start found;
  found.key = all.front().key;
  found.counts.process = over ? m_control->group_rank(over) : 0;
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (all[p].count == 0)
      base::fail(errc::invalid_argument, "process " + std::to_string(p) + " has passed no queue",
                 "Pass at least one on each process");
    if (all[p].runtime != all.front().runtime)
      base::fail(errc::invalid_argument,
                 "process " + std::to_string(p) + " belongs to another runtime than process 0",
                 "Make communicators of processes that have started one sucl::runtime together");
    found.counts.of_each.push_back(static_cast<int>(all[p].count));
  }
  return found;
}

std::vector<std::shared_ptr<process>> process::start_ranks(std::size_t count, native_group over) {
  if (m_ended)
    base::fail(errc::shut_down, "the runtime has been shut down", "Create communicators before");
  if (over.handle) check_adoption();
  sucl_group* group = m_control ? group_of(over, "world() with several queues") : nullptr;
  const rank_start exchanged = exchange_rank_counts(group, count);
  const auto& counts = exchanged.counts.of_each;
  if (std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; })) {
    if (group) m_control->group_free(group);
    return {shared_from_this()};
  }
  if (!has_own_thread())  // the same on every process
    base::fail(errc::unavailable,
               "several ranks in a process need MPI_THREAD_MULTIPLE, and MPI was initialised for "
               "less on some process",
               "Call MPI_Init_thread with MPI_THREAD_MULTIPLE, or let SuCL initialise MPI");
  const auto peers = peer_processes::of_ranks({group ? m_control : nullptr, group},
                                              exchanged.counts.process, counts);
  const auto groups = make_rank_groups(m_control, group, exchanged.counts);
  std::vector<std::shared_ptr<process>> made, unused;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    made.push_back(std::shared_ptr<process>(new process));
    made.back()->begin_as_rank(*this, {exchanged.counts, exchanged.key, groups[i], peers[i]});
  }
  const std::lock_guard lock(m_mutex);  // those that end do so without it
  for (auto& r : m_ranks)
    if (r.use_count() == 1) unused.push_back(std::move(r));
  std::erase(m_ranks, nullptr);
  m_ranks.insert(m_ranks.end(), made.begin(), made.end());
  return made;
}

// What is the same for all ranks of a process is the process's own: settings and tuning table.
void process::begin_as_rank(const process& owner, rank_start&& from) {
  m_process = std::const_pointer_cast<process>(owner.shared_from_this());
  m_public = owner.m_public;
  m_hand_over = owner.m_hand_over;
  m_settings = owner.m_settings;
  m_tuned = owner.m_tuned;
  m_control_description = owner.m_control_description;
  m_control = &local_ranks_control();
  m_everyone = from.everyone;
  m_rank = m_control->group_rank(m_everyone);
  m_size = m_control->group_size(m_everyone);
  m_key = from.key;
  m_record.begin(m_key, m_rank, m_size, m_settings.record.folder, m_public);
  show_to_local_ranks();
  note_running(true);
  m_registry = std::make_unique<registry>();
  m_steps.begin(m_settings.watchdog.timeout, [this] { m_broken = true; });
  m_peers = std::move(from.peers);
  m_steps.set_peers(m_peers);
  m_compares_calls = m_size > 1 && !m_settings.layers.validate;
  m_ends = owner.m_ends;
  m_compares_ends = owner.m_public;
  if (m_settings.watchdog.timeout.count() > 0) m_watch_thread.watch();
}

void process::show_to_local_ranks() {
  m_shown.emplace(local_rank{
      this,
      [this](const std::function<void(const std::shared_ptr<communicator>&)>& each) {
        for_each_communicator(each);
      },
      [this] { return std::vector{m_progress_thread.number(), m_watch_thread.number()}; }});
}

void process::end_ranks(const std::function<void(process&)>& how) {
  std::vector<std::shared_ptr<process>> ranks;
  {
    const std::lock_guard lock(m_mutex);
    ranks = m_ranks;
  }
  try {
    base::run_concurrently(ranks.size(), [&](std::size_t i) { how(*ranks[i]); });
  } catch (const std::system_error&) {  // no thread: they may wait for each other, but do not often
    for (const auto& r : ranks) how(*r);
  }
}

}  // namespace sucl::core
