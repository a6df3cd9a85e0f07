// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Writing schedules: a builder that appends instructions to the programs of all ranks.
#pragma once

#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::plan {

/// The most instructions of a plan that is built; they take 3.2 GB.
inline constexpr std::uint64_t max_instructions = 100'000'000;

/// The address of a byte: its space and its offset there.
struct address {
  space where = space::none;
  std::uint64_t offset = 0;

  address operator+(std::uint64_t bytes) const { return {where, offset + bytes}; }
  friend bool operator==(const address&, const address&) = default;
};

/// The same byte as a peer names it.
constexpr address remote(address p) { return {remote_form(p.where), p.offset}; }

/// Collects the programs of all ranks. Every function appends to the present channel at the present
/// level. Zero bytes append nothing, nor do copies of an address to itself, nor fences with nothing
/// to finish.
class builder {
 public:
  /// Checks the problem. `levels` empty: one level, "all" via "any".
  explicit builder(problem what, std::vector<level> levels = {});

  const problem& what() const { return m_schedule.what; }
  int ranks() const { return m_schedule.what.ranks; }
  std::uint64_t element() const { return m_schedule.what.element_bytes; }

  /// Whether the input will lie in the output, where results must not overwrite it too early.
  bool in_place() const { return m_in_place; }
  void set_in_place() { m_in_place = true; }

  /// Goes on in another channel, whose scratch is its own: what was released is not taken again.
  void set_channel(int c);
  void set_level(int l) { m_level = static_cast<std::uint8_t>(l); }

  void copy(int rank, address dst, address src, std::uint64_t bytes, int peer = -1);
  void reduce(int rank, address dst, address src, std::uint64_t bytes, int peer = -1);
  void send(int rank, int peer, address src, std::uint64_t bytes);
  void receive(int rank, int peer, address dst, std::uint64_t bytes);
  void put(int rank, int peer, address remote_dst, address src, std::uint64_t bytes);
  void get(int rank, int peer, address dst, address remote_src, std::uint64_t bytes);
  void signal(int rank, int peer, std::uint64_t flag);
  void wait(int rank, int peer, std::uint64_t flag);
  /// Finishes all transfers of the channel but the `keep` latest.
  void fence(int rank, std::uint64_t keep = 0);

  /// New scratch of a rank, aligned for its elements and to 16 bytes.
  address scratch(int rank, std::uint64_t bytes);

  /// Marks and returns to a point of the scratch allocation of a rank, so that what was taken in
  /// between is taken again.
  std::uint64_t scratch_mark(int rank) const;
  void scratch_release(int rank, std::uint64_t mark);

  /// The schedule so far; the builder is empty afterwards.
  schedule finish(std::string algorithm);

 private:
  struct progress {
    std::uint64_t posted = 0;
    std::uint64_t finished = 0;
  };

  channel& code(int rank);
  void append(int rank, const instruction& i);
  progress& progress_of(int rank);
  void post(int rank, instruction i);

  schedule m_schedule;
  bool m_in_place = false;
  std::size_t m_channel = 0;
  std::uint64_t m_count = 0;  // instructions
  std::uint8_t m_level = 0;
  std::vector<std::uint64_t> m_top;               // scratch in use, a rank
  std::vector<std::vector<progress>> m_progress;  // a rank, a channel
};

/// Cuts `bytes` into `parts` ranges of whole elements whose sizes differ by one element at most;
/// parts + 1 ends. Earlier parts are the longer ones.
std::vector<std::uint64_t> cut_evenly(std::uint64_t bytes, std::uint64_t element, int parts);

}  // namespace sucl::plan
