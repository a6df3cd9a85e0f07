// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans that are the same for every rank, written down for one.
/// docs/design/plans/symmetric-plans.md says what they are and why proving one rank proves all.
#pragma once

#include "plan/ir/schedule.hpp"
#include "plan/symmetric/digits.hpp"
#include "plan/verify/verify.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::plan {

/// A part of a space: cells of equal size, an array with a dimension for each of these digits, the
/// last one contiguous. A translation moves each cell by its digits in these dimensions.
struct region {
  space where = space::none;
  std::uint64_t offset = 0;
  std::uint64_t cell = 0;       ///< bytes
  std::vector<int> dimensions;  ///< digits; none: one cell
  std::uint64_t cells = 1;
  /// Copies and reduces read its cells where they are, on every rank, and all of them one after the
  /// other: so all ranks fold them in the same order.
  bool folded = false;

  std::uint64_t end() const { return offset + cell * cells; }
  friend bool operator==(const region&, const region&) = default;
};

/// A plan of which rank 0's program is known. That of another rank is its translation: peers are
/// moved by the rank's number, cells by the digits of their dimensions.
struct symmetric_schedule {
  problem what;
  std::string algorithm;
  std::vector<level> levels;
  digits ranks;
  std::vector<region> regions;  ///< of all spaces, by space and offset
  std::uint64_t scratch_bytes = 0;
  std::vector<channel> channels;  ///< of rank 0
};

/// Where the cells of an instruction lie: of `in`, `count` from the first on, all that differ in
/// the last `inner` dimensions only.
struct cells_at {
  const region* in = nullptr;  ///< null: no whole cells of one region
  std::uint64_t first = 0, count = 0;
  int inner = 0;
};
cells_at cells_of(const symmetric_schedule& s, space where, std::uint64_t offset,
                  std::uint64_t bytes);

/// The cell to which a translation takes cell number `cell` of a region.
std::uint64_t translated(const digits& ranks, const region& in, std::uint64_t cell, int by);

/// The program of a rank. Throws invalid_argument where an instruction has no translation, which
/// prove() finds.
program program_of(const symmetric_schedule& s, int rank);

/// Instructions of all ranks.
std::uint64_t instruction_count(const symmetric_schedule& s);

/// The schedule of all ranks. Throws out_of_memory beyond max_instructions.
schedule expand(const symmetric_schedule& s);

/// A hash over all but `algorithm`.
std::uint64_t hash(const symmetric_schedule& s);

/// Proves that the plan computes what `what` says, on every rank, by executing one of them. Takes
/// time and memory in proportion to one rank's instructions and the cells that they touch. Refuses
/// some plans that verify() passes: those that read or write peers' memory, that access one cell
/// from two channels, or whose results have the same bits for a reason that it does not see.
verdict prove(const symmetric_schedule& s);

/// Proves a schedule of all ranks: that the claim is right, and that each rank's program is the one
/// that the claim gives it.
verdict prove(const schedule& s, const symmetric_schedule& claim);

}  // namespace sucl::plan
