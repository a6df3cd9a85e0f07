// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Compares the arguments of one collective between the ranks of a communicator: plain data and
/// pure functions, used by the layer `validate`.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// The operation as one rank of `size` issued it.
struct issued {
  const sucl_operation* op = nullptr;
  int rank = 0;
  int size = 1;
};

/// What each rank shows to the others, in its memory's form: one job, one kind of machine.
struct digest {
  std::uint64_t sequence;
  std::uint64_t element_size;
  std::uint64_t count;
  std::uint64_t plan;  ///< of a barrier: the call that it comes before
  std::int32_t kind;
  std::int32_t type;
  std::int32_t op;
  std::int32_t root;
  std::uint32_t flags;
  std::uint32_t blocking;
  std::int32_t tag;     ///< origin and number of encode_tag(), without the form
  std::int32_t status;  ///< what this rank alone knows to be wrong, or 0
  char message[192];    ///< the same in words, cut to fit
};

/// `wrong`: what the rank knows to be wrong, or null.
digest make_digest(const issued& call, const error_info* wrong);

/// What the ranks disagree about, or what is wrong with one rank's arguments: the same answer on
/// every rank. `ordinal` counts the collectives of communicator `comm` from 1.
std::optional<error_info> compare(const std::vector<digest>& all, std::uint64_t ordinal,
                                  std::uint64_t comm);

/// Whether ranks of this kind pass counts of their own, which compare_counts() has to see.
bool has_counts(sucl_kind kind);

/// What this rank sends to each rank, then what it expects from each: 2 * size numbers.
std::vector<std::uint64_t> counts_of(const issued& call);

/// Whether what i sends to j is what j expects from i, given every rank's counts_of(). Needs
/// 16 * size * size bytes, so it is for debugging, as the layer that uses it is.
std::optional<error_info> compare_counts(const std::vector<digest>& all,
                                         const std::vector<std::uint64_t>& counts,
                                         std::uint64_t ordinal, std::uint64_t comm);

/// Ascending ranks as text: "rank 1", "ranks 0,2-5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace sucl::core
