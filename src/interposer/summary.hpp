// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What was done with a program's collectives.
#pragma once

#include <sucl/abi/backend.h>

#include <array>
#include <cstdint>

namespace sucl::pmpi {

/// What became of a call: SuCL carried it, or why it was passed on.
enum class fate {
  served,
  tried,           ///< MPI's turn in a trial
  slower,          ///< MPI is faster, or selected
  early,           ///< before SuCL set itself up for the communicator
  stranger,        ///< a communicator that SuCL does not serve
  oversubscribed,  ///< no room for one communicator or one request more
  unknown,         ///< a type, an op or a form that SuCL does not carry
  count
};

/// The calls of one kind.
struct tally {
  std::array<std::uint64_t, static_cast<std::size_t>(fate::count)> calls{};
  double saved = 0;  ///< seconds, from the medians of the trials
  void operator+=(const tally& other);
};
using tallies = std::array<tally, SUCL_KIND_COUNT>;

/// Sums the tallies of all ranks and has the first print them. Collective.
void print_summary(tallies mine, int rank);

}  // namespace sucl::pmpi
