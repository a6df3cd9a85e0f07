// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The schedule: what every rank does, instruction by instruction, as plain data. The meaning of
/// each field is fixed by docs/reference/plan-ir.md; this header is its C++ form.
#pragma once

#include "plan/ir/problem.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::plan {

/// What an instruction does. The numbers are part of the hash: append only.
enum class opcode : std::uint8_t {
  copy = 0,     ///< dst = src; done when the channel goes on
  reduce = 1,   ///< dst = dst op src; done when the channel goes on
  send = 2,     ///< starts sending src to `peer`
  receive = 3,  ///< starts receiving from `peer` into dst
  put = 4,      ///< starts writing src into the peer's dst
  get = 5,      ///< starts reading the peer's src into dst
  signal = 6,   ///< raises `peer`'s flag number dst_offset; publishes everything done before it
  wait = 7,     ///< until `peer` has raised the own flag number dst_offset once more
  fence = 8     ///< until all transfers this channel started are done, but the latest `bytes` ones
};
inline constexpr int opcode_count = 9;

/// A memory that an instruction names. The peer_* spaces are those of the instruction's peer.
enum class space : std::uint8_t {
  none = 0,
  send = 1,     ///< the user's input: read only
  recv = 2,     ///< the user's output; with in_place, also the input
  scratch = 3,  ///< the plan's own memory, undefined at the start
  peer_send = 4,
  peer_recv = 5,
  peer_scratch = 6
};
inline constexpr int space_count = 7;

/// Whether `s` is memory of the instruction's peer.
constexpr bool is_remote(space s) { return s >= space::peer_send; }
/// The space as its owner calls it: peer_recv becomes recv.
constexpr space local_form(space s) {
  return is_remote(s) ? static_cast<space>(static_cast<int>(s) - 3) : s;
}
/// The space as a peer calls it: recv becomes peer_recv.
constexpr space remote_form(space s) {
  return is_remote(s) || s == space::none ? s : static_cast<space>(static_cast<int>(s) + 3);
}

/// One instruction: 32 bytes of plain data. Offsets and lengths are in bytes. Fields that an
/// opcode does not use are zero (`peer` -1), so equal meaning is equal bytes.
struct instruction {
  opcode op = opcode::fence;
  space dst = space::none;
  space src = space::none;
  std::uint8_t level = 0;        ///< index into schedule::levels: which backend executes it
  std::int32_t peer = -1;        ///< the other rank
  std::uint64_t dst_offset = 0;  ///< where in dst; the flag number of signal and wait
  std::uint64_t src_offset = 0;  ///< where in src
  std::uint64_t bytes = 0;       ///< length; of fence: how many transfers may stay unfinished

  friend bool operator==(const instruction&, const instruction&) = default;
};
static_assert(sizeof(instruction) == 32);

/// Whether `op` starts something that only a fence finishes.
constexpr bool is_posted(opcode op) { return op >= opcode::send && op <= opcode::get; }

/// One channel: instructions run in order; channels of a rank run independently of each other.
using channel = std::vector<instruction>;

/// What one rank does.
struct program {
  std::uint64_t scratch_bytes = 0;  ///< size of this rank's scratch space
  std::vector<channel> channels;

  friend bool operator==(const program&, const program&) = default;
};

/// A level of the machine as the plan sees it, outermost first.
struct level {
  std::string name;         ///< as in "node"
  std::string via = "any";  ///< the transport that moves its instructions, as in "mpi", "ipc"

  friend bool operator==(const level&, const level&) = default;
};
inline constexpr std::size_t max_levels = 255;

/// A complete schedule: the same data on every rank.
struct schedule {
  problem what;                ///< what it must compute
  std::string algorithm;       ///< how it was made, as in "ring" or "multi_leader(group=4)"
  std::vector<level> levels;   ///< never empty
  std::vector<program> ranks;  ///< one program a rank

  friend bool operator==(const schedule&, const schedule&) = default;
};

/// Instructions of all ranks and channels together.
std::uint64_t instruction_count(const schedule& s);

/// Most channels that any rank has.
int channel_count(const schedule& s);

/// The identity of a schedule: a 64-bit hash over everything but `algorithm`, which is a remark.
std::uint64_t hash(const schedule& s);

const char* name(opcode op) noexcept;  ///< as in "receive"; "unknown" if it is
const char* name(space s) noexcept;    ///< as in "peer.recv"

}  // namespace sucl::plan
