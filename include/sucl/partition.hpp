// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Work shared among ranks of unlike speed: which rank has which part of a range or of a box, what
/// moves from one partition to another, and when that pays off. Plain C++; only the template
/// balancer::update() communicates.
///
/// Everything is a function of its arguments: ranks that pass the same numbers get the same shares.
#pragma once

#include <sucl/export.hpp>
#include <sucl/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl {

/// Which rank has which part of [0, size): one run each, in order of rank. Some may be empty.
class SUCL_CORE_API partition {
 public:
  partition() = default;
  /// Shares as equal as they can be: the first ones have one more. Throws errc::invalid_count for
  /// less than one rank.
  partition(std::size_t size, int ranks);
  /// The counts of all ranks.
  explicit partition(counts of_ranks);

  /// Shares by speed (units of work that a rank does in a second, of any scale): the largest of
  /// `count / speed` is minimal (bisection). Shares are multiples of `unit` but for the last that
  /// is not empty, and none is smaller than `least` as long as there is enough. A rank with speed 0
  /// gets no more than that. Throws errc::invalid_argument for a speed that is negative or not
  /// finite, where all are 0, and for unit 0.
  static partition by_speed(std::size_t size, const std::vector<double>& speeds,
                            std::size_t unit = 1, std::size_t least = 0);

  [[nodiscard]] int ranks() const { return static_cast<int>(m_counts.size()); }
  [[nodiscard]] std::size_t size() const { return m_size; }
  /// A rank's part. Each throws errc::invalid_rank if there is no such rank.
  [[nodiscard]] std::size_t count(int rank) const { return m_counts[index(rank)]; }
  [[nodiscard]] std::size_t begin(int rank) const { return m_begins[index(rank)]; }
  [[nodiscard]] std::size_t end(int rank) const { return begin(rank) + count(rank); }
  /// The rank that has element `i`. Throws errc::invalid_count if there is no such element.
  [[nodiscard]] int owner(std::size_t i) const;

  /// As allgatherv, gatherv and scatterv take them.
  [[nodiscard]] const sucl::counts& counts_of_ranks() const { return m_counts; }
  [[nodiscard]] const sucl::counts& displacements() const { return m_begins; }

  friend bool operator==(const partition& a, const partition& b) {
    return a.m_counts == b.m_counts;
  }
  friend bool operator!=(const partition& a, const partition& b) { return !(a == b); }

 private:
  std::size_t index(int rank) const {
    if (rank < 0 || rank >= ranks()) refuse(rank, ranks());
    return static_cast<std::size_t>(rank);
  }
  [[noreturn]] static void refuse(int rank, int ranks);
  std::size_t m_size = 0;
  sucl::counts m_counts, m_begins;
};

/// What one rank sends and receives, as alltoallv takes it, so that memory that lies by one
/// partition lies by another. What stays with the rank is a block to itself. Displacements count
/// from the beginning of the rank's own part.
struct migration {
  counts send_counts, send_displs;
  counts recv_counts, recv_displs;
  std::size_t moved = 0;  ///< elements that change their owner, over all ranks

  /// Throws errc::mismatch for partitions of different sizes or numbers of ranks.
  SUCL_CORE_API migration(const partition& from, const partition& to, int rank);
};

/// A box of cells shared by a grid of ranks, the last dimension varying fastest: each dimension is
/// cut by planes that go through all of it, so that neighbours are those of the grid.
struct box_partition {
  std::array<partition, 3> along;

  /// Throws errc::invalid_count where the grid is not for as many ranks as there are speeds, else
  /// as partition::by_speed().
  SUCL_CORE_API static box_partition by_speed(const std::array<std::size_t, 3>& cells,
                                              const std::array<int, 3>& grid,
                                              const std::vector<double>& speeds,
                                              std::size_t least = 1);

  friend bool operator==(const box_partition& a, const box_partition& b) {
    return a.along == b.along;
  }
  friend bool operator!=(const box_partition& a, const box_partition& b) { return !(a == b); }
};

/// How a balancer decides.
struct balance_options {
  double smoothing = 0.5;   ///< how much the newest measurement counts in a rank's speed, (0, 1]
  double threshold = 0.05;  ///< work moves if the slowest rank's time falls by this share at least,
  int confirmations = 2;    ///< as many updates in a row say
  std::size_t unit = 1;     ///< shares are multiples of it
  std::size_t least = 1;    ///< no rank has less, so that its speed can be measured again
};

/// @cond internal
namespace detail {

/// What balancers know of their ranks.
class SUCL_CORE_API measured_speeds {
 public:
  measured_speeds(int ranks, const balance_options& how);
  const balance_options& options() const { return m_how; }
  const std::vector<double>& known() const { return m_speeds; }
  /// Those that are not known yet count as the others do on average.
  std::vector<double> complete() const;
  void check(const std::vector<double>& seconds, int steps) const;
  void note(const std::vector<double>& seconds, const counts& work);
  /// Whether work moves if the slowest rank has taken so long in each of the last `steps`, and
  /// would then.
  bool is_worth_it(double now, double then, int steps);
  void note_move(const std::vector<double>& seconds);
  bool awaits_confirmation() const {
    return (m_agreeing > 0 && m_agreeing < m_how.confirmations) || m_surprises > 0;
  }

 private:
  balance_options m_how;
  std::vector<double> m_speeds;
  std::vector<bool> m_surprised;  // by the last measurement of a rank, far from its average
  int m_surprises = 0;            // ranks of which that is so
  int m_agreeing = 0;             // updates in a row that would move work
  double m_lost = 0;              // seconds that their shares would have saved in these steps
  double m_cost = 0;              // seconds of the last move
  std::int64_t m_since = 0;       // steps since then
  bool m_changed = false;         // a rank's speed, since when shares have lost time
};

/// The times of all ranks, from those and what each has passed as `steps`, which is 0 in
/// note_move(). Throws errc::mismatch where these differ, as ranks would decide differently.
SUCL_CORE_API std::vector<double> agreed_times(const std::vector<double>& times_and_steps);

/// The time of every rank.
template <class Communicator>
std::vector<double> times_of_ranks(const Communicator& all, double mine, int steps) {
  const std::array<double, 2> own{mine, static_cast<double>(steps)};
  std::vector<double> of_ranks(2 * static_cast<std::size_t>(all.size()));
  all.blocking().allgather(own.data(), of_ranks.data(), own.size());
  return agreed_times(of_ranks);
}

}  // namespace detail
/// @endcond

/// Decides from measured times when to partition anew. Every rank has one, and passes the same
/// numbers to it. Where it knows what a move takes it moves work once the present shares have lost
/// as much time: then moves and losses together take about twice, at most, of what they would if it
/// was known how long the program goes on. (The rule for renting or buying: Karlin, Manasse,
/// Rudolph, Sleator, "Competitive snoopy caching", Algorithmica 3, 1988.) Where a rank has
/// become 1.5 times slower or faster, as two measurements in a row say, it is taken to stay so for
/// as long as the shares have: then work moves at once if that saves more than a move takes.
class SUCL_CORE_API balancer {
 public:
  /// Throws errc::invalid_argument for options out of range.
  explicit balancer(partition start, const balance_options& how = {});

  [[nodiscard]] const partition& current() const { return m_current; }
  /// Units of work a second, as far as is known; 0: it has had none yet.
  [[nodiscard]] const std::vector<double>& speeds() const { return m_speeds.known(); }
  /// Whether the last update was unlike those before, or would have moved work had one before it
  /// said the same: then measure again at once.
  [[nodiscard]] bool awaits_confirmation() const { return m_speeds.awaits_confirmation(); }

  /// Each rank's time for its own work in a step, without what it has waited for others, and how
  /// many steps there have been since the last update. Whether current() has changed: then migrate,
  /// before the next step. Throws errc::invalid_count for the wrong number of times,
  /// errc::invalid_argument for one that is negative or not finite, and for less than one step.
  bool update(const std::vector<double>& seconds, int steps = 1);

  /// The same from this rank's time. Collective over a communicator of as many ranks. Also throws
  /// errc::mismatch, on all ranks, where they pass different `steps`.
  template <class Communicator>
  bool update(const Communicator& all, double seconds, int steps = 1) {
    return update(detail::times_of_ranks(all, seconds, steps), steps);
  }

  /// How long the move that an update has asked for has taken, each rank's seconds, of which the
  /// longest counts. Until it is known, or for 0, moves count as free. Throws as update().
  void note_move(const std::vector<double>& seconds);
  /// The same from this rank's time. Collective.
  template <class Communicator>
  void note_move(const Communicator& all, double seconds) {
    note_move(detail::times_of_ranks(all, seconds, 0));
  }

 private:
  partition m_current;
  detail::measured_speeds m_speeds;
};

/// The same for a box. `unit` counts for nothing, `least` in each dimension.
class SUCL_CORE_API box_balancer {
 public:
  /// Begins with these speeds. Throws as box_partition::by_speed(), and for options out of range.
  box_balancer(const std::array<std::size_t, 3>& cells, const std::array<int, 3>& grid,
               const std::vector<double>& speeds, const balance_options& how = {});

  [[nodiscard]] const box_partition& current() const { return m_current; }
  [[nodiscard]] const std::vector<double>& speeds() const { return m_speeds.known(); }
  /// As those of balancer, all that follow.
  [[nodiscard]] bool awaits_confirmation() const { return m_speeds.awaits_confirmation(); }
  bool update(const std::vector<double>& seconds, int steps = 1);
  template <class Communicator>
  bool update(const Communicator& all, double seconds, int steps = 1) {
    return update(detail::times_of_ranks(all, seconds, steps), steps);
  }
  void note_move(const std::vector<double>& seconds);
  template <class Communicator>
  void note_move(const Communicator& all, double seconds) {
    note_move(detail::times_of_ranks(all, seconds, 0));
  }

 private:
  std::array<std::size_t, 3> m_cells;
  std::array<int, 3> m_grid;
  box_partition m_current;
  detail::measured_speeds m_speeds;
};

}  // namespace sucl
