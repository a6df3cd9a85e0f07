// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One rank's part of a verified schedule, as the executor runs it: flat arrays, nothing to look
/// up.
#pragma once

#include "backends/shm_common/placement.hpp"
#include "plan/ir/fold_run.hpp"
#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <vector>

namespace sucl::core {

/// Memory that a step works on: an offset from where a space begins, or from where one of its
/// blocks does.
struct operand {
  plan::space where = plan::space::none;  ///< as the owner calls it; `rank` is the owner
  std::int32_t rank = 0;
  std::int32_t block = -1;  ///< -1: the space is one piece
  std::uint64_t offset = 0;
};

struct step {
  enum class action : std::uint8_t {
    copy,     ///< to <- from
    fold,     ///< to <- the combination of several sources
    signal,   ///< this channel's flag becomes `value`
    wait,     ///< until the flag of channel `channel` of `peer` is at least `value`
    send,     ///< post to transport `channel`, with tag `value` in its run
    receive,  ///< the same
    fence     ///< until those of this channel are done, but `bytes` of them
  };
  action what = action::copy;
  bool own_block = false;    ///< copies a rank's input to its own output
  bool nontemporal = false;  ///< copies to memory that other ranks read
  std::int32_t peer = -1;
  std::uint32_t channel = 0;
  std::uint32_t first = 0;  ///< of program::sources; a copy has one
  std::uint32_t sources = 0;
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
  operand to;
};

/// What one rank does in one run of a schedule.
struct program {
  std::vector<std::vector<step>> channels;
  std::vector<operand> sources;
  std::uint64_t scratch_bytes = 0;  ///< the most that any rank needs
  bool in_place = false;            ///< right too where the input lies in recv
  bool maps_send = false;           ///< peers' inputs are read
  bool maps_recv = false;           ///< peers' outputs are read or written
  bool posts = false;               ///< sends or receives messages
};

/// How the packed spaces of a slice lie in the user's memory: the ends of their blocks in bytes, or
/// nothing where the space is one piece.
struct blocking {
  std::vector<std::uint64_t> send_ends;
  std::vector<std::uint64_t> recv_ends;
};

/// Most channels that a rank may have.
inline constexpr std::size_t max_channels = 16;

/// Most sources of a fold, one for each rank that plans may have. More are combined in several.
inline constexpr std::size_t max_sources = plan::max_fold_sources;

/// Most levels of a schedule that may have messages between nodes.
inline constexpr std::size_t max_message_levels = 16;

/// Tags of the messages of one run: its levels and channels.
inline constexpr std::uint64_t tags_of_run = max_message_levels * max_channels;

/// Tags that tell apart what ranks have called. With those of four runs it is what the MPI library
/// with the fewest tags leaves to a backend.
inline constexpr std::uint64_t history_tags = 127;

/// Lowers the part of this rank. Throws errc::unsupported where the schedule has more channels or
/// signals than the executor counts, errc::invalid_argument where a level names a transport that
/// there is not, or ranks of different nodes touch each other's memory. The schedule must have been
/// verified, as it is here.
program lower(const plan::schedule& s, const placement& where, const blocking& cut);

}  // namespace sucl::core
