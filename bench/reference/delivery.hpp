// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What each kind of operation delivers: which elements a rank contributes, which it gets, and
/// whose they are. The one description that measurements and tests compare results with; nothing
/// here is taken from the library.
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::reference {

/// A run of elements of a memory.
struct block {
  std::uint64_t at;
  std::uint64_t count;
};

/// What a rank contributes: blocks of its recv if it calls in place, else of its send.
std::vector<block> contributed(const sucl_operation& o, int rank, int ranks);

/// A run of elements that a rank gets, at `at` of its recv: those from `offset` on of block
/// `number` of what each of the ranks first to last contributes, reduced if they are several.
struct piece {
  std::uint64_t at;
  std::uint64_t count;
  int first;
  int last;
  std::size_t number;
  std::uint64_t offset;
};

std::vector<piece> delivered(const sucl_operation& o, int rank, int ranks);

/// How many elements a memory needs to hold all of them.
std::uint64_t end_of(const std::vector<block>& blocks);
std::uint64_t end_of(const std::vector<piece>& pieces);

}  // namespace sucl::reference
