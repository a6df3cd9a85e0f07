// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Flows of bytes that share what limits them, max-min fair.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

namespace sucl::sim {

/// Simulated time in whole steps: what happens in one step happens together, so that equal ranks
/// stay equal in spite of rounding.
using ticks = std::int64_t;
inline constexpr double ticks_per_second = 1e10;
inline constexpr ticks never = std::numeric_limits<ticks>::max();
/// Where a simulation ends as too long, a tenth of what the clock counts: what is added to a time
/// before it is checked again is less than the rest.
inline constexpr ticks latest = never / 10;
inline double to_seconds(ticks t) { return static_cast<double>(t) / ticks_per_second; }

/// What a flow takes of a limit.
struct demand {
  std::uint32_t limit = 0;
  std::uint32_t position = 0;  ///< of the flow's bundle among those of the limit
  double weight = 0;           ///< of the limit for each byte
};

/// The limits that a flow goes through; none twice.
class demands {
 public:
  static constexpr std::size_t most = 16;

  void add(std::uint32_t limit, double weight) {
    for (demand& d : *this)
      if (d.limit == limit) {
        d.weight += weight;
        return;
      }
    m_all[m_size++] = {limit, 0, weight};
  }
  demand* begin() { return m_all.data(); }
  demand* end() { return m_all.data() + m_size; }
  const demand* begin() const { return m_all.data(); }
  const demand* end() const { return m_all.data() + m_size; }
  bool empty() const { return m_size == 0; }
  std::size_t size() const { return m_size; }

 private:
  std::array<demand, most> m_all;
  std::uint32_t m_size = 0;
};

/// The flows that are in flight. Rates are those of progressive filling: all rise together until a
/// limit is reached, whose flows then stay. When flows start or end, only those get new rates whose
/// share changes. Flows through the same limits have the same rate, so they are one bundle, which
/// costs as much as a single flow.
class flows {
 public:
  /// A new limit, in bytes a second.
  std::uint32_t add_limit(double capacity);

  /// The number of the bundle of all flows through these limits.
  std::uint32_t bundle_of(const demands& through);

  /// A flow of `bytes` in a bundle; `owner` comes back when it ends. Its rate is known after
  /// settle().
  void start(std::uint32_t bundle, double bytes, std::uint32_t owner, ticks now);

  /// When the next flow ends, or rates must be settled though nothing else happens; a time that is
  /// never reached if there is neither. After settle().
  ticks next() { return std::min(next_end(), m_postponed_to); }
  /// When the next flow ends.
  ticks next_end() const { return m_ends.empty() ? never : m_bundles[m_ends.front()].end; }

  /// Ends a flow whose time is `now` and returns its owner. Only where next_end() is now.
  std::uint32_t end_one(ticks now);

  /// Gives flows their rates again after some started or ended. Where that concerns dozens of
  /// bundles it is put off by up to 1/200 of the time that those take which started or ended: a
  /// flow that starts then waits so long, and what one leaves stays unused so long.
  void settle(ticks now);

  /// Rates found so far: what all this cost.
  std::uint64_t work() const { return m_work; }

  /// What went through a limit so far, and what it can take.
  double taken(std::uint32_t limit) const { return m_limits[limit].taken; }
  double capacity(std::uint32_t limit) const { return m_limits[limit].capacity; }

  /// By limit, what still has to go through it of the flows that were started.
  std::vector<double> under_way(ticks now) const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct limit {
    double capacity = 0;
    double wanted = 0;  // of it, if every flow went as fast as its other limits let it alone
    double used = 0;    // of it, by the rates of the settled flows; known while it is tight
    double taken = 0;
    std::uint32_t count = 0;   // of flows
    std::uint32_t filled = 0;  // where it is among the open limits
    std::vector<std::uint32_t> bundles;
  };
  // Whether a limit wanted more than there was, when last settled, and is being filled.
  enum class state : std::uint8_t { loose, tight, open };
  // An open limit: what the bundles that are not open leave of it, and what the open ones take of
  // that; while filling what is left, and what those without a new rate take of it.
  struct filling {
    double free = 0, wanted = 0;
    double left = 0, weight = 0;
    double share = 0;  // at the begin of a round
    std::uint32_t limit = 0;
    std::uint32_t opened = 0;  // bundles
  };
  struct flow {
    double until = 0;  // what a flow of its bundle was served since the bundle began, at its end
    ticks began = 0;
    std::uint32_t owner = 0;
    std::uint32_t number = 0;  // in the order in which they started
  };
  struct bundle {
    std::uint32_t first = 0, last = 0;  // of m_demands
    std::uint32_t alike = none;         // the next bundle whose limits have the same hash
    std::vector<flow> members;          // a heap: the first to end in front
    double rate = 0;                    // of each flow
    double served = 0;                  // bytes of each flow since there was none, at `since`
    double bound = 0;                   // the rate that a flow would have alone
    ticks since = 0;
    ticks end = never;           // of the first flow
    std::uint32_t position = 0;  // in the heap of ends
    std::uint32_t bound_by = 0;
    std::uint32_t settled = 0;  // flows that the rates were found for
    bool changed = false;       // may have other flows than that
    std::uint16_t tight = 0;    // which of its demands are of tight limits, a bit each
    static_assert(demands::most <= 16);
    std::uint32_t first_share = 0, last_share = 0;  // while filling

    double count() const { return static_cast<double>(members.size()); }
  };
  // What a bundle takes of an open limit for each byte a second of its rate.
  struct share {
    std::uint32_t filled = 0;
    double weight = 0;
  };
  static bool ends_later(const flow& a, const flow& b) {
    return a.until != b.until ? a.until > b.until : a.number > b.number;
  }
  bool ends_before(std::uint32_t a, std::uint32_t b) const {
    const ticks x = m_bundles[a].end, y = m_bundles[b].end;
    return x != y ? x < y : a < b;
  }
  std::span<demand> through(const bundle& b) {
    return {m_demands.data() + b.first, m_demands.data() + b.last};
  }
  std::uint16_t bit_of(const bundle& b, const demand& d) const {
    return static_cast<std::uint16_t>(1u << (&d - (m_demands.data() + b.first)));
  }
  void join(std::uint32_t bundle, double bytes);
  void leave(std::uint32_t bundle);
  void serve(bundle& b, ticks now);
  void set_first_end(std::uint32_t bundle, ticks now);
  void put_end(std::size_t at, std::uint32_t bundle);
  void move_end(std::size_t at);
  void set_end(std::uint32_t bundle, ticks end);
  void remove_end(std::uint32_t bundle);
  void touch(std::uint32_t bundle);
  void set_state(std::uint32_t limit, bool tight);
  void postpone(double part, ticks now);
  double expected(const bundle& b, double bytes);
  void set_rate(std::uint32_t bundle, double rate, ticks now);
  void count_again(bundle& b);
  void open_changed();
  void open_bundle(std::uint32_t bundle);
  bool open_unfair();
  double min_share();
  void fill();
  void apply(ticks now);
  void fix(std::uint32_t bundle, double rate, std::uint32_t held_by);

  std::uint64_t m_work = 0;
  std::uint32_t m_number = 0;
  std::vector<limit> m_limits;
  std::vector<state> m_states;  // by limit, apart from it: read far more often
  std::vector<bundle> m_bundles;
  std::vector<demand> m_demands;                                 // of all bundles
  std::unordered_map<std::uint64_t, std::uint32_t> m_by_limits;  // bundles by the hash of these
  std::vector<std::uint32_t> m_changed;                          // bundles
  std::vector<std::uint32_t> m_again;                            // tight limits of these
  ticks m_postponed_to = never;               // when rates must be settled at the latest
  std::size_t m_last_filled = 0;              // bundles that got new rates last time
  std::vector<std::uint32_t> m_open_bundles;  // what is being filled
  std::vector<filling> m_open_limits;
  std::vector<share> m_shares;           // of the open bundles
  std::vector<std::uint8_t> m_is_open;   // by bundle, apart from it: read far more often
  std::vector<double> m_next_rate;       // by bundle too; below 0: not known yet
  std::vector<std::uint32_t> m_held_by;  // by bundle: the limit that is full at its rate, or none
  std::vector<std::uint32_t> m_unfair;   // bundles
  std::size_t m_unfixed = 0;             // open bundles without their new rate
  std::vector<std::uint32_t> m_bounded;  // those that a limit outside it may stop
  std::vector<std::uint32_t> m_filling;  // open limits with flows that have no new rate yet
  std::vector<std::uint32_t> m_ends;     // a heap of bundles with a rate, the first to end on top
};

}  // namespace sucl::sim
