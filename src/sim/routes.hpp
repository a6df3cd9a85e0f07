// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The routes that the instructions of a schedule take through a machine, each computed once.
#pragma once

#include "plan/ir/schedule.hpp"
#include "plan/symmetric/digits.hpp"
#include "sim/limits.hpp"
#include "sim/model/paths.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace sucl::sim {

/// Latency and overhead as whole steps.
ticks to_ticks(double seconds);

/// How many instructions from `pc` on are one kernel: reduces to the same address.
std::uint32_t kernel_length(const plan::channel& code, std::uint32_t pc);

/// What all instructions have in common that move bytes, or raise a flag, between the same ranks in
/// the same manner.
struct route {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::int32_t from = 0, to = 0;  ///< whose memory is read, and whose written
  std::uint32_t level = 0;        ///< of the machine, where the two meet
  std::uint32_t bundle = none;    ///< of the flows; none: not needed yet
  ticks latency = 0, overhead = 0;
  std::uint32_t first = 0, last = 0;  ///< of all demands
  double bytes = 0;                   ///< of all instructions
  std::uint64_t messages = 0;         ///< instructions that move bytes
  bool back = false;                  ///< they move as much in the other direction
  bool limited = false;               ///< its demands are known
  std::int32_t queue[2] = {-1, -1};   ///< the pair whose queue it uses; -1: not needed yet

  bool crosses() const { return from != to; }
  bool free() const { return first == last; }
};

class symmetry;

/// All routes of a schedule.
class routes {
 public:
  /// Throws invalid_argument where a level of the plan names a transport that the machine's level
  /// does not have.
  /// `by` not null: only rank 0 has a program, and the others' are its translations; a route into
  /// rank 0 is the one from it that a translation takes there.
  routes(const plan::schedule& s, const machine& m, flows& f, const plan::digits* by = nullptr);

  /// The route of instruction `k` of all, counted by rank, channel and position.
  route& of(std::size_t k) { return m_routes[m_of[k]]; }

  /// Which of the routes that is.
  std::uint32_t number_of(std::size_t k) const { return m_of[k]; }
  const route& at(std::uint32_t number) const { return m_routes[number]; }
  std::size_t count() const { return m_routes.size(); }

  /// What it goes through; nothing if that is not limited.
  std::span<const demand> demands_of(const route& r) const {
    return {m_demands.data() + r.first, m_demands.data() + r.last};
  }
  std::size_t limit_count() const { return m_limits.count(); }
  /// A hash of what a limit is, but for whose.
  std::uint64_t class_of_limit(std::uint32_t limit) const { return m_limits.class_of(limit); }

  /// How many limits are like this one, where one rank stands for all.
  std::uint32_t limits_like(std::uint32_t limit) const { return m_limits.alike(limit); }

  /// The bundle of the flows of all ranks like `rank`, which uses it. Not of a route that is free.
  std::uint32_t bundle(route& r, std::int32_t rank, const symmetry& like);

  /// By limit: bytes of the whole plan; 0 of limits that are like an earlier one.
  std::vector<double> totals(const symmetry& like) const;

  /// What the whole plan moves: by level of the machine, and by pair of ranks.
  std::vector<level_traffic> traffic() const;
  std::vector<pair_traffic> matrix() const;

  std::vector<usage> uses(const symmetry& like) const { return m_limits.uses(like); }

 private:
  // Where a route is kept.
  struct key {
    std::uint64_t pair = 0, manner = 0;
    friend bool operator==(const key&, const key&) = default;
  };
  struct slot {
    key of;
    std::uint32_t route = route::none;
  };

  void join_transports();
  void add_channel(std::int32_t rank, const plan::channel& code);
  void add(std::int32_t rank, const plan::instruction& i, bool first_of_kernel);
  std::uint32_t find(const key& k, std::int32_t from, std::int32_t to, std::uint8_t level);
  slot& slot_of(const key& k);
  void grow();
  void set_way(route& r, std::uint8_t plan_level);
  const path& path_between(std::int32_t from, std::int32_t to);
  void add_message(demands& d, std::int32_t from, std::int32_t to, std::uint8_t plan_level);
  demands of_transfer(const route& r, std::uint8_t plan_level);
  demands of_kernel(const route& r, std::int32_t own, const plan::instruction& i, bool first);
  void limit(route& r, const demands& through);
  std::size_t transport(std::uint8_t plan_level, std::size_t level) const;
  [[noreturn]] void refuse_transport(std::uint8_t plan_level, std::size_t level) const;

  const plan::schedule& m_schedule;
  const plan::digits* m_by;
  const machine& m_machine;
  flows& m_flows;
  limits m_limits;
  paths m_paths;
  std::vector<std::vector<std::uint8_t>> m_transports;  // [level of the plan][of the machine]
  std::vector<route> m_routes;
  std::vector<demand> m_demands;    // of all routes
  std::vector<slot> m_slots;        // open addressing
  std::vector<std::uint32_t> m_of;  // by instruction
};

}  // namespace sucl::sim
