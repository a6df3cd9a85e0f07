// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The verifier: proves a schedule right by symbolic execution, or says what is wrong with it.
#pragma once

#include "plan/ir/fold_rules.hpp"
#include "plan/ir/schedule.hpp"
#include "plan/symbolic/proof_cost.hpp"

#include <cstdint>
#include <string>

namespace sucl::plan {

/// What is wrong.
enum class fault : std::uint8_t {
  none,
  malformed,      ///< a field that makes no sense: peer, space, level, alignment
  out_of_bounds,  ///< beyond the end of a space
  read_only,      ///< a write to the user's input
  unset_read,     ///< a read of memory that nothing was written to
  race,           ///< two accesses of the same memory, one a write, that nothing orders
  length,         ///< a send and its receive differ in length
  unmatched,      ///< a message or signal that no rank takes
  deadlock,       ///< waits that nothing will end
  unfinished,     ///< a transfer that no fence finishes
  twice,          ///< a contribution combined a second time
  order,          ///< contributions combined out of the allowed order
  result,         ///< a result that is not what it must be
  differs         ///< ranks that receive the same element combine it differently
};

/// As in "unset_read".
const char* name(fault f) noexcept;

/// The verdict. The location is that of the first fault found.
struct verdict {
  fault what = fault::none;
  int rank = -1;
  int channel = -1;
  std::int64_t instruction = -1;  ///< index in the channel; -1: at the end of the program
  space where = space::none;
  std::uint64_t offset = 0;  ///< byte range
  std::uint64_t bytes = 0;
  std::string message;  ///< all of it in words

  /// Ranks that receive the reduction of the same elements receive the same expression, so they
  /// hold the same bits. True of all schedules that pass, but those with ordering::free.
  bool identical = false;
  std::uint64_t peak_values = 0;  ///< how many different symbolic values there were
  std::uint64_t steps = 0;        ///< what the proof cost; of a right plan

  explicit operator bool() const { return what == fault::none; }
};

/// What is known when a rank executes its first instruction.
enum class entry : std::uint8_t {
  apart,    ///< nothing of other ranks: one may be far ahead of another that has not begun
  together  ///< that all ranks have begun, as after a barrier that each of them has passed
};

/// Proves that `s` computes what s.what says for every input and every timing, or finds a fault.
/// The same schedule gives the same verdict on every rank. Throws only where s.what itself makes no
/// sense. Without rules those of elements of this size hold.
verdict verify(const schedule& s, entry how = entry::apart);
verdict verify(const schedule& s, entry how, fold_rules rules);
/// The same, and an error (errc::out_of_memory) where the proof costs more than the limits.
verdict verify(const schedule& s, proof_limits limits);

/// What verify() has proved of a schedule that it passed, about bits: "every rank that ...". Empty
/// where nothing is reduced.
std::string what_is_identical(const schedule& s, const verdict& v);

/// verify(), and an error (errc::internal) that names the fault where there is one. The verdict.
verdict verify_or_fail(const schedule& s, entry how = entry::apart);

}  // namespace sucl::plan
