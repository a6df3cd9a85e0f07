// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Flows of bytes that share what limits them, max-min fair.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace sucl::sim {

/// Simulated time in whole steps: what happens in one step happens together, so that equal ranks
/// stay equal in spite of rounding.
using ticks = std::int64_t;
inline constexpr double ticks_per_second = 1e10;
inline constexpr ticks never = std::numeric_limits<ticks>::max();

/// The limits that a flow goes through, each with how much of it a byte takes; none twice.
class demands {
 public:
  static constexpr std::size_t most = 16;
  struct one {
    std::uint32_t limit = 0;
    std::uint32_t place = 0;  ///< of the flow among those of the limit
    double weight = 0;
  };

  void add(std::uint32_t limit, double weight) {
    for (one& d : *this)
      if (d.limit == limit) {
        d.weight += weight;
        return;
      }
    m_all[m_size++] = {limit, 0, weight};
  }
  one* begin() { return m_all.data(); }
  one* end() { return m_all.data() + m_size; }
  const one* begin() const { return m_all.data(); }
  const one* end() const { return m_all.data() + m_size; }
  bool empty() const { return m_size == 0; }

 private:
  std::array<one, most> m_all;
  std::uint32_t m_size = 0;
};

/// The flows that are under way. Rates are those of progressive filling: all rise together until a
/// limit is reached, whose flows then stay. Only flows that are joined by limits which matter to
/// them are looked at when one starts or ends.
class flows {
 public:
  /// A new limit, in bytes a second.
  std::uint32_t add_limit(double capacity);

  /// A flow of `bytes`; `owner` comes back when it ends. Its rate is known after settle().
  void start(const demands& through, double bytes, std::uint32_t owner, ticks now);

  /// When the next flow ends, or rates must be settled though nothing else happens; a time that is
  /// never reached if there is neither. After settle().
  ticks next() { return std::min(next_end(), m_postponed_to); }
  /// When the next flow ends.
  ticks next_end() const { return m_ends.empty() ? never : m_flows[m_ends.front()].end; }

  /// Ends a flow whose time is `now` and returns its owner. Only where next_end() is now.
  std::uint32_t end_one(ticks now);

  /// Gives all flows their rates again after some started or ended. Where that concerns hundreds of
  /// flows it is put off by up to a hundredth of the time that those take which started or ended:
  /// a flow that starts then waits so long, and what one leaves stays unused so long.
  void settle(ticks now);

  /// Rates found so far: what all this cost.
  std::uint64_t work() const { return m_work; }

  /// What went through a limit so far, and what it can take.
  double taken(std::uint32_t limit) const { return m_limits[limit].taken; }
  double capacity(std::uint32_t limit) const { return m_limits[limit].capacity; }

 private:
  struct limit {
    double capacity = 0;
    double wanted = 0;  // of it, if every flow went as fast as its other limits let it alone
    double taken = 0;
    double left = 0, weight = 0;  // while filling
    bool tight = false;           // wanted more than there was, when last settled
    bool changed = false;         // since then
    bool open = false;            // part of what is being filled
    std::vector<std::uint32_t> flows;
  };
  struct flow {
    demands through;
    double bytes = 0;  // left at `since`
    double rate = 0;
    double bound = 0;  // the rate it would have alone
    ticks since = 0;
    ticks began = 0;
    std::uint32_t owner = 0;
    ticks end = never;
    std::uint32_t place = 0;  // in the heap of ends
    std::uint32_t bound_by = 0;
    bool open = false;
    double next_rate = 0;
  };
  bool ends_before(std::uint32_t a, std::uint32_t b) const {
    const ticks x = m_flows[a].end, y = m_flows[b].end;
    return x != y ? x < y : a < b;
  }
  void put_end(std::size_t at, std::uint32_t flow);
  void move_end(std::size_t at);
  void set_end(std::uint32_t flow, ticks end);
  void remove_end(std::uint32_t flow);
  void touch(std::uint32_t limit);
  void postpone(double part, ticks now);
  double expected(const flow& f) const;
  void remove(std::uint32_t flow);
  void set_rate(std::uint32_t flow, double rate, ticks now);
  void gather(std::uint32_t seed);
  void open_flow(std::uint32_t flow);
  void fill(ticks now);
  void fix(std::uint32_t flow, double rate);

  std::uint64_t m_work = 0;
  std::vector<limit> m_limits;
  std::vector<flow> m_flows;
  std::vector<std::uint32_t> m_free;
  std::vector<std::uint32_t> m_changed;     // limits
  std::vector<std::uint32_t> m_started;     // flows
  ticks m_postponed_to = never;             // when rates must be settled at the latest
  std::size_t m_last_filled = 0;            // flows that got new rates last time
  std::vector<std::uint32_t> m_open_flows;  // what is being filled
  std::vector<std::uint32_t> m_open_limits;
  std::vector<std::uint32_t> m_bounded;                    // flows that a limit outside it may stop
  std::vector<std::pair<double, std::uint32_t>> m_shares;  // a heap
  std::vector<std::uint32_t> m_ends;  // a heap of flows with a rate, the first to end on top
};

}  // namespace sucl::sim
