// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The simulator: how long a schedule takes on a machine, and where the time goes.
/// docs/design/plans/simulation.md states the model.
#pragma once

#include "plan/ir/schedule.hpp"
#include "plan/symmetric/symmetric.hpp"
#include "sim/model/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::sim {

/// What to keep beside the times of ranks. Each costs memory: a timeline 16 bytes an instruction.
struct simulate_options {
  bool timeline = false;  ///< start and end of every instruction
  bool matrix = false;    ///< bytes from rank to rank
  bool usage = false;     ///< bytes through every port and link
  /// Simulates every rank, also those that do the same as others at the same times. It takes longer
  /// and gives the same, but for rounding and for rates that wait
  /// (docs/design/plans/simulation.md).
  bool every_rank = false;
  /// The simulation ends with prediction::gave_up when the plan turns out to take longer than this
  /// many seconds, which what is left for the busiest link shows early, or when simulating it costs
  /// more than so much work. 0: never.
  double max_seconds = 0;
  std::uint64_t max_work = 0;
};

/// When an instruction ran, in seconds from the start. Transfers end when their last byte is
/// there, which may be after the channel went on; a fence or wait starts when the channel comes to
/// it. Of reduces that run as one kernel each has the times of the kernel.
struct span {
  double start = 0;
  double end = 0;
};

/// Messages that belong to one level of the machine. Copies and reduces that read or write a
/// peer's memory count as messages; signals do not.
struct level_traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// Bytes from one rank's memory to another's.
struct pair_traffic {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint8_t level = 0;  ///< of the machine
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// What a figure of the machine limits, and how much it did.
struct usage {
  enum class part : std::uint8_t {
    memory,    ///< of `member`, a group of ranks that share it
    kernels,   ///< of rank `member`: its copies and reduces
    rank_out,  ///< of rank `member` by one transport
    rank_in,
    port_out,  ///< port `port` of member number `member` of its level
    port_in,
    port_both,
    link,   ///< from member `member` to member `port`
    fabric  ///< of group number `member`
  };
  part what = part::memory;
  std::uint8_t level = 0;      ///< of the machine; of memory and kernels 0
  std::uint8_t transport = 0;  ///< of rank_out and rank_in
  std::int64_t member = 0;
  std::int64_t port = 0;
  double bytes = 0;     ///< that went through it (memory: read and written)
  double capacity = 0;  ///< bytes per second

  /// The part of the time `seconds` in which it was busy, if it was never busy in part.
  double utilisation(double seconds) const { return seconds > 0 ? bytes / capacity / seconds : 0; }
};

/// As in "port_out".
const char* name(usage::part p) noexcept;

struct prediction {
  double seconds = 0;                 ///< until the last rank is done
  std::vector<double> rank_seconds;   ///< until each rank is done
  std::vector<level_traffic> levels;  ///< one a level of the machine
  std::uint64_t events = 0;           ///< steps of the simulation, of one rank of each kind
  std::uint64_t work = 0;             ///< what it cost: events, and rates found for transfers
  bool gave_up = false;               ///< at `seconds`: the plan takes too long, or too much work
  /// What has to go through the busiest limit alone takes; as long in any number of channels.
  double min_seconds = 0;

  std::vector<std::vector<std::vector<span>>> timeline;  ///< [rank][channel][instruction]
  std::vector<pair_traffic> matrix;                      ///< by from and to; those with messages
  std::vector<usage> uses;                               ///< the limits that anything went through
};

/// Times one execution of `s` that all ranks start at once, rank r on the machine's rank r. Takes
/// time in proportion to the instructions, whatever they move. The same input gives the same
/// prediction everywhere.
///
/// Throws invalid_argument where the machine has fewer ranks, where a level of the plan names a
/// transport that the machine's level does not have, and where the plan does not end (verify() says
/// why). The plan should have been verified: a wrong one gives a time too, or such an error.
prediction simulate(const plan::schedule& s, const machine& m, const simulate_options& o = {});

/// Why a machine is not the same for all ranks where their digits are translated: a level begins in
/// the middle of a digit, or ranks that share a port are taken to ranks that do not. Empty if it
/// is.
std::string refusal(const plan::digits& ranks, const machine& m);

/// The same for a plan that is the same for every rank, from rank 0's program alone. Timelines are
/// those of rank 0, and there is no matrix. Throws invalid_argument where there is a refusal.
prediction simulate(const plan::symmetric_schedule& s, const machine& m,
                    const simulate_options& o = {});

}  // namespace sucl::sim
