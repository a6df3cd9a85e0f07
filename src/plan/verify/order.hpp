// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Happens-before among the channels of a schedule, by vector clocks (Lamport 1978; Mattern 1989)
/// with an epoch for each access (Flanagan and Freund, FastTrack, 2009).
#pragma once

#include "plan/ir/schedule.hpp"
#include "plan/symbolic/symbolic.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sucl::plan {

/// The clocks of all threads; a thread is a channel of a rank. A clock only covers the threads of
/// its sharing group: those of ranks that are joined by naming each other's memory.
///
/// A thread's time has two parts: an epoch, which advances when it publishes what it did, for
/// copies and reductions; and the number of posted transfers it has finished, which finish in
/// order.
///
/// What a thread publishes is a *base*, which many threads share, and what it knows beyond that.
/// After a barrier all know the same: their bases are one, and the next barrier only adds to it.
class clocks {
 public:
  using base = std::shared_ptr<const std::vector<std::uint32_t>>;
  struct publication {
    base common;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> updates;  // index in the clock, value
  };
  using snapshot = std::shared_ptr<const publication>;

  /// `cost` must outlive this object.
  clocks(const schedule& s, proof_cost& cost);

  std::uint32_t threads() const { return static_cast<std::uint32_t>(m_threads.size()); }
  std::uint32_t thread_of(int rank, int channel) const {
    return m_first[static_cast<std::size_t>(rank)] + static_cast<std::uint32_t>(channel);
  }

  /// Whether only this thread ever touches the memory of its rank.
  bool alone(std::uint32_t t) const { return m_threads[t].width == 1; }
  /// Whether only channels of this rank ever touch its memory.
  bool is_private(int rank) const { return !m_shared[static_cast<std::size_t>(rank)]; }
  /// Whether channels of `rank` keep what thread `t` publishes: they share memory.
  bool observes(int rank, std::uint32_t t) const {
    return m_threads[t].width > 1 && m_threads[t].group == m_group[static_cast<std::size_t>(rank)];
  }

  /// The write that the start of a rank makes to all its memory; no thread's where it is private.
  access start_of(int rank) const;

  /// The present of `t`, for a copy or reduction.
  access now(std::uint32_t t);
  /// The present of `t`, for the transfer it posts with this ticket (counted from 0).
  access posting(std::uint32_t t, std::uint32_t ticket);

  /// `t` has finished its first `count` transfers.
  void finish(std::uint32_t t, std::uint32_t count);

  /// Whether `past` happens before the present of `t`.
  bool ordered(std::uint32_t t, access past) const {
    const thread& me = m_threads[t];
    if (past.thread == access::no_thread) return true;
    const std::uint32_t ticket = past.stamp & ~access::posted;
    if (past.thread == t) return (past.stamp & access::posted) == 0 || ticket < me.finished;
    return covered(me, past);
  }

  /// What `t` publishes with a signal or a send; null where no thread could use it.
  snapshot release(std::uint32_t t);
  /// Raises the clock of `t` to what was published.
  void acquire(std::uint32_t t, const snapshot& s);

  /// Joins the clocks of all channels of `rank` into its channel 0: the end of the rank.
  void join(int rank);

 private:
  struct thread {
    std::uint32_t group = 0;
    std::uint32_t index = 0;  // in the group
    std::uint32_t width = 0;  // clocks in the group; 1: alone
    std::uint32_t epoch = 1;
    std::uint32_t finished = 0;
    bool changed = true;                 // since the last release
    std::vector<std::uint32_t> clock;    // epochs, then finished transfers
    base common;                         // what it holds at least
    std::vector<base> merged;            // other such bases, the latest
    std::vector<std::uint32_t> updates;  // entries that may hold more than the base
    snapshot published;
  };

  bool covered(const thread& me, access past) const;
  base keep(const std::vector<std::uint32_t>& clock);
  base share(const std::vector<std::uint32_t>& clock);
  static void raise_entry(thread& me, std::uint32_t address, std::uint32_t value);
  void merge(thread& me, const base& other);
  void make_groups(const schedule& s);

  proof_cost& m_cost;
  std::vector<thread> m_threads;
  std::vector<std::uint32_t> m_first;  // thread of channel 0 of each rank
  std::vector<std::uint32_t> m_group;  // of each rank
  std::vector<std::uint32_t> m_start;  // index of a rank's start in its group
  std::vector<bool> m_shared;
  std::vector<std::weak_ptr<const std::vector<std::uint32_t>>> m_bases;  // by hash
};

}  // namespace sucl::plan
